package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) rebuild() *cobra.Command {
	var dir, traces string
	cmd := &cobra.Command{
		Use: "rebuild RUN-ID --output-dir DIR", Short: "Rebuild a lost run directory from Temporal and the store",
		Long: `Rebuild a lost run directory from Temporal's history and the store: events.jsonl byte for byte, and all
derived files. An existing events.jsonl must be a prefix of the history; nothing is cut. Damaged derived files are
rebuilt after a copy under run_state_repairs/.

If Temporal's history is lost too, --from-traces recovers into a new folder what a saved traces.jsonl and the store
contain: the whole directory, if the store has the whole journal; otherwise prompts, replies, costs, and the artifact,
notes and workspace of the newest checkpoint, with a report of what is missing (recovered.json). No event is made up.
No server is needed.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || dir == "" {
				return asUsage(errors.New("name the run and the directory: starter rebuild RUN-ID --output-dir DIR"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args = []string{operations.CompleteID(a.settings.StateDir, args[0])}
			if traces != "" {
				return a.recover(cmd.Context(), args[0], traces, dir)
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if err := operations.CheckRebuild(args[0], abs); err != nil { // before a server is started
				return err
			}
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.Close()
			var tail run.Tail
			err = a.metered(cmd.Context(), "Reading the run's history", func(ctx context.Context) error {
				if tail, err = s.Rebuild(ctx, args[0], abs); err != nil {
					return err
				}
				return s.RewriteDerived(ctx, projector.At(abs))
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s holds events 1 to %d.\n", abs, tail.Seq)
			if _, err := a.atHome(rundir.At(abs)); err != nil { // an existing directory stays the directory of the run
				fmt.Fprintln(a.out, err)
				return nil
			}
			return operations.Index(a.settings.StateDir, args[0], abs)
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "the directory to write")
	cmd.Flags().StringVar(&traces, "from-traces", "", "a saved traces.jsonl of the run")
	return cmd
}

// recover restores what the traces and the store contain.
func (a *app) recover(ctx context.Context, runID, traces, dir string) error {
	raw, err := os.ReadFile(traces)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := projector.Vacant(abs); err != nil {
		return err
	}
	s, err := store.Open(ctx, a.settings.Store)
	if err != nil {
		return err
	}
	out, err := operations.Recover(ctx, s, operations.Recovery{RunID: runID, Traces: raw, Dir: abs})
	if err != nil {
		return err
	}
	if out.Whole {
		fmt.Fprintf(a.out, "The store has the whole journal: %s holds events 1 to %d.\n", abs, out.Events)
		return operations.Index(a.settings.StateDir, runID, abs)
	}
	fmt.Fprintf(a.out, "Recovered into %s: %d prompts and %d replies of %d calls, %s as reported by their agents.\n",
		abs, out.Prompts, out.Replies, len(out.Calls), usd(out.USD))
	fmt.Fprintf(a.out, "Not recovered (%d):\n", len(out.Missing))
	for _, what := range out.Missing {
		fmt.Fprintln(a.out, "  "+what)
	}
	if out.Checkpoint != "" {
		fmt.Fprintf(a.out, "To continue from event %d: %s fork %s --from %s\n",
			out.AsOf, program(), runID, shell.Quote(out.Checkpoint))
	}
	return silentExit(exitAttention)
}
