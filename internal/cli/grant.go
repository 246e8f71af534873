package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/keyfile"
)

func (a *app) grant() *cobra.Command {
	cmd := within(&cobra.Command{
		Use: "grant", Short: "Create the key that lets the hosts of a cluster accept each other's runs",
		Long: `A worker accepts only work that a program with its key granted: runs that the starter started.
By default the key is that of the host, in the state directory. Hosts that work on the same runs share a key: create
one, give the file to the starter and the workers, and set grant.key_file (PASSBOOK_GRANT_KEY_FILE) on all of them.`,
	})
	cmd.AddCommand(&cobra.Command{
		Use: "key", Short: "Print a new key", Args: cobra.NoArgs,
		Long: `Print a new random key in Base64. Put it into a file that only the starter and the workers can read.`,
		RunE: func(*cobra.Command, []string) error {
			key, err := keyfile.New()
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, key)
			return nil
		},
	})
	return cmd
}
