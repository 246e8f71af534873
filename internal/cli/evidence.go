package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/evidence"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) evidence() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "evidence [RUN]", Short: "Print a record of a run for a pull request or an audit",
		Long: `Print the task, work, checks, decisions and costs of a run as Markdown or JSON, from its directory alone. The
same directory always results in the same record. No server is needed.

With --effects, print the ledger of what the run did outside of it instead: calls, commands, screenshots and deliveries
with their class, call and status.`,
	}
	cmd.Flags().StringVar(&format, "format", "md", "md or json")
	effects := cmd.Flags().Bool("effects", false, "print the ledger of external effects")
	asJSON := cmd.Flags().Bool("json", false, "the same as --format json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *asJSON {
			format = "json"
		}
		if format != "md" && format != "json" {
			return asUsage(fmt.Errorf("--format is md or json, not %q", format))
		}
		return nil
	}
	return a.onRun(cmd, func(_ context.Context, d rundir.Dir) error {
		if *effects {
			l, err := evidence.ReadEffects(d)
			switch {
			case err != nil:
				return err
			case format == "json":
				return a.json(l)
			}
			return l.Markdown(a.out)
		}
		e, err := evidence.Read(d)
		if err != nil {
			return err
		}
		if format == "json" {
			return a.json(e)
		}
		return e.Markdown(a.out)
	})
}
