package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/identity"
)

func (a *app) identity() *cobra.Command {
	return &cobra.Command{
		Use: "identity", Short: "Print the identity with which you sign decisions", Args: cobra.NoArgs,
		Long: `The starter signs each message to a run, and the journal records who signed it. A worker knows the identity in
its state directory. To be known by the workers of a cluster, give them the printed entry in the setting
decide.identities (PASSBOOK_DECIDE_IDENTITIES, separated by commas).`,
		RunE: func(*cobra.Command, []string) error {
			own, err := identity.Load(a.settings.StateDir)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s=%s\n", own.Name, own.Public())
			return nil
		},
	}
}
