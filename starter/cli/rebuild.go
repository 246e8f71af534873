package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
)

func (a *app) rebuild() *cobra.Command {
	var dir, traces string
	cmd := &cobra.Command{
		Use: "rebuild RUN-ID --output-dir DIR", Short: "Write a lost run directory again, from Temporal's history and the store",
		Long: `Write a run directory that was lost again: events.jsonl byte for byte, and everything that follows from it. What is there already must be
the beginning of it; nothing is cut. Files that follow from it and were damaged are written again, after a copy under run_state_repairs/.

With Temporal's history gone too, --from-traces brings back what a saved traces.jsonl and the store still hold, into a new folder: the whole directory, if
the store has all of the journal; otherwise prompts, replies, costs, and artifact, notes and workspace of the newest checkpoint, with a report
(recovered.json) that names what is missing. No event is made up. No server is asked or needed.

` + exitCodesHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || dir == "" {
				return asUsage(errors.New("say which run and where to: starter rebuild RUN-ID --output-dir DIR"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if traces != "" {
				return a.recover(cmd.Context(), args[0], traces, dir)
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if err := operate.CheckRebuild(args[0], abs); err != nil { // before a server is started
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
				return s.Remake(ctx, rundir.At(abs))
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s holds events 1 to %d.\n", abs, tail.Seq)
			if _, err := a.atHome(rundir.At(abs)); err != nil { // beside the one that is there: that one stays the run's
				fmt.Fprintln(a.out, err)
				return nil
			}
			return operate.Index(a.settings.StateDir, args[0], abs)
		},
	}
	cmd.Flags().StringVar(&dir, "output-dir", "", "where the directory is to be")
	cmd.Flags().StringVar(&traces, "from-traces", "", "a traces.jsonl that is left of the run")
	return cmd
}

// recover brings back what traces and store hold.
func (a *app) recover(ctx context.Context, runID, traces, dir string) error {
	raw, err := os.ReadFile(traces)
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := rundir.Vacant(abs); err != nil {
		return err
	}
	s, err := store.Open(ctx, a.settings.Store)
	if err != nil {
		return err
	}
	defer s.Close()
	out, err := operate.Recover(ctx, s, operate.Recovery{RunID: runID, Traces: raw, Dir: abs})
	if err != nil {
		return err
	}
	if out.Whole {
		fmt.Fprintf(a.out, "The store has all of the journal: %s holds events 1 to %d.\n", abs, out.Events)
		return operate.Index(a.settings.StateDir, runID, abs)
	}
	fmt.Fprintf(a.out, "Recovered into %s: %d prompts and %d replies of %d calls, %s as their agents reported it.\n", abs, out.Prompts, out.Replies, len(out.Calls), usd(out.USD))
	fmt.Fprintf(a.out, "Not recovered (%d):\n", len(out.Missing))
	for _, what := range out.Missing {
		fmt.Fprintln(a.out, "  "+what)
	}
	if out.Checkpoint != "" {
		fmt.Fprintf(a.out, "To go on from event %d: %s fork %s --from %s\n", out.AsOf, program(), runID, shell.Quote(out.Checkpoint))
	}
	return quiet(exitAttention)
}
