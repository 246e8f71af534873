package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/shell"
)

func (a *app) serverEnv() *cobra.Command {
	cmd := &cobra.Command{
		Use: "env", Short: "Print the variables with which temporal and tctl reach the embedded server",
		Args: cobra.NoArgs,
		Long: `Print shell commands that set the address and the certificates of the embedded server, for this terminal:

	eval "$(starter server env)"

If TEMPORAL_ADDRESS or a profile names another server, nothing is printed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := host.FindConnection(a.settings)
			if err != nil {
				return err
			}
			if conn.Explicit {
				a.progress("TEMPORAL_ADDRESS or a profile names " + conn.Options.HostPort + ": nothing to set")
				return nil
			}
			s, err := host.LastServer(a.settings.StateDir)
			if err != nil {
				return err
			}
			if s.Address == "" {
				return errors.New("find the embedded server: none has run; start it: " + program() + " server start")
			}
			s.Namespace = conn.Options.Namespace
			if err := s.Certs.Ensure(cmd.Context(), time.Now()); err != nil {
				return err
			}
			a.printEnv(s)
			return a.printCodecAuth()
		},
	}
	return cmd
}

// printCodecAuth exports what the temporal CLI sends to the codec endpoint, if there are keys.
func (a *app) printCodecAuth() error {
	if len(a.settings.Codec.Keys) == 0 {
		return nil
	}
	token, _, err := a.codecToken()
	if err != nil {
		return err
	}
	if a.settings.Codec.Endpoint != "" {
		fmt.Fprintf(a.out, "export TEMPORAL_CODEC_ENDPOINT=%s\n", shell.Quote(a.settings.Codec.Endpoint))
	}
	fmt.Fprintf(a.out, "export TEMPORAL_CODEC_AUTH=%s\n", shell.Quote("Bearer "+token))
	return nil
}

func (a *app) printEnv(s host.Server) {
	for _, pair := range s.Env() {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(a.out, "export %s=%s\n", name, shell.Quote(value))
	}
}
