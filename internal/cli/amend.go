package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
)

func (a *app) amend() *cobra.Command {
	var in api.AmendInput
	cmd := &cobra.Command{
		Use: "amend [RUN] --config FILE", Short: "Let a run adopt a changed definition",
		Long: `Let an open run adopt a changed definition: budgets, limits, thresholds, notifications, agent commands, and
prompts and commands of steps that have not completed. Every step that begins later uses it; a running step keeps what
it has until it begins again. A change of completed steps, of inputs that they have read, or of what the plan consists
of is refused, and the error lists the differing lines and the commands to choose from.`,
		Example: "  starter amend RUN --config pipeline.yaml\n  starter resume RUN",
	}
	cmd.Flags().StringVar(&in.Config, "config", "", "the changed pipeline definition (YAML)")
	cmd.Flags().StringVar(&in.Note, "note", "", "a note for the record")
	asJSON := jsonFlag(cmd)
	return a.onNamed(cmd, func(ctx context.Context, name string) error {
		in.Run = name
		var res operations.Amended
		err := a.askingFor(ctx, func() (err error) {
			res, err = api.Amend(ctx, a.host(), in)
			return err
		})
		if err != nil {
			return err
		}
		return show(a, *asJSON, res, a.printAmended)
	})
}

func (a *app) printAmended(res operations.Amended) {
	fmt.Fprintf(a.out, "Run %s: %s.\n", res.RunID, res.Message)
	for _, d := range res.Differences {
		fmt.Fprintf(a.out, "  %s\n", d)
	}
}
