package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
)

func (a *app) allow() *cobra.Command {
	var source string
	cmd := &cobra.Command{
		Use: "allow PIPELINE", Short: "Allow a pipeline what it asks for beyond the settings",
		Long: `Allow a pipeline what it asks for beyond the settings of this host, such as an agent without a sandbox. It is
recorded for the repository and for the content of the definition, of its files, and of the files of the repository that
its commands name: after a change it is asked for again. starter run asks at a terminal; other starts are refused until
then.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return asUsage(errors.New("name one pipeline: starter allow PIPELINE"))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "the repository to work on (default: the definition's folder)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		def, err := a.host().LoadFile(args[0])
		if err != nil {
			return err
		}
		def.WorkOn = source
		asked, err := def.Requests(a.settings)
		if err != nil {
			return err
		}
		if len(asked.Requests) == 0 {
			fmt.Fprintf(a.out, "%s asks for nothing beyond the settings.\n", asked.Definition)
			return nil
		}
		return a.confirm(cmd.Context(), asked)
	}
	return cmd
}

// confirm records what a definition asks for.
func (a *app) confirm(ctx context.Context, asked allow.Confirmation) error {
	if err := host.OpenState(ctx, a.settings.StateDir); err != nil {
		return err
	}
	file, err := operations.BoundsOf(a.settings).Confirm(asked)
	if err != nil {
		return err
	}
	for _, r := range asked.Requests {
		fmt.Fprintf(a.out, "Allowed: %s\n", r)
	}
	fmt.Fprintf(a.out, "To withdraw it, remove %s\n", file)
	return nil
}

// askingFor calls f. At a terminal it asks whether to allow what the definition needs beyond the settings, and if so
// calls f again.
func (a *app) askingFor(ctx context.Context, f func() error) error {
	for {
		err := f()
		var refused *operations.RequestError
		if !errors.As(err, &refused) || !a.personThere() {
			return err
		}
		fmt.Fprintf(a.out, "%s asks for more than the settings of this host allow:\n", refused.Asked.Definition)
		for _, r := range refused.Asked.Requests {
			fmt.Fprintf(a.out, "  %s\n", r)
		}
		answer, failed := a.prompted(ctx, "Allow it, until the definition or its files change? [y/N] ")
		if failed != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
			return errors.Join(err, failed)
		}
		if err := a.confirm(ctx, refused.Asked); err != nil {
			return err
		}
	}
}
