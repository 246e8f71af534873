package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) revert() *cobra.Command {
	var r operations.Reverting
	cmd := &cobra.Command{
		Use: "revert [RUN] --to CHECKPOINT", Short: "Revert a paused, failed or cancelled run to a checkpoint",
		Long: `Revert a run to a checkpoint and continue from there: artifact, notes, workspace and position are restored.
It stays the same run. Reverted passes stay in its journal and on disk (pass-025~1), their cost counts as sunk, and a
checkpoint of the state before (cp-REVERT-…) is written first. Pause a live run first (starter pause). A finished run
cannot be reverted: fork it instead.`,
		Example: "  starter revert RUN --to cp-S3          # continue with the next pass\n" +
			"  starter revert RUN --to pass-35        # the position before pass 35\n" +
			"  starter revert RUN --to cp-S3 --pause  # stay paused there",
	}
	cmd.Flags().StringVar(&r.To, "to", "", "checkpoint (starter checkpoints), or a boundary: pass-35, round-2")
	cmd.Flags().StringVar(&r.To, "checkpoint", "", "same as --to")
	cmd.Flags().BoolVar(&r.StayPaused, "pause", false, "stay paused there")
	cmd.Flags().StringVar(&r.Note, "note", "", "a note for the record")
	cmd.Flags().BoolVar(&r.Force, "force", false,
		"revert a halted run, or one that the settings refuse; needs --reason")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "the reason for --force, which is recorded")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if r.To == "" {
			return asUsage(errors.New("name the checkpoint: --to CHECKPOINT; to list them, run: starter checkpoints"))
		}
		return explained(r.Force, r.Reason)
	}
	return a.onServer(cmd, func(ctx context.Context, s *session, d rundir.Dir, _ run.Claim) error {
		done, err := s.Revert(ctx, projector.Dir{Dir: d}, r)
		if err != nil {
			return err
		}
		if done.Warning != "" {
			fmt.Fprintln(a.err, "Warning:", done.Warning)
		}
		for _, text := range done.Actions {
			fmt.Fprintln(a.err, "Warning:", text)
		}
		fmt.Fprintf(a.out, "Run %s goes back to %s (pass %d).\n", done.RunID, done.Checkpoint, done.Pass)
		return awaitDirectory(ctx, d, func(m rundir.Meta) bool { return m.State.Generation >= done.Generation })
	})
}

func (a *app) cancel() *cobra.Command {
	return a.onServer(&cobra.Command{
		Use: "cancel [RUN]", Short: "Cancel a run and end its running call",
		Long: `End a live, paused or interrupted run. Its running call is ended; completed results stay. An interrupted run
is closed in a separate epoch without calls. A cancelled run can be resumed in a new epoch, followed up or forked.`,
	}, a.cancelRun)
}

// cancelRun cancels a run and reports whether it has ended.
func (a *app) cancelRun(ctx context.Context, s *session, d rundir.Dir, claim run.Claim) error {
	if err := s.Cancel(ctx, projector.Dir{Dir: d}); err != nil {
		return err
	}
	cancelled := func(m rundir.Meta) bool { return run.Status(m.Status) == run.Cancelled }
	if err := awaitDirectory(ctx, d, cancelled); err != nil {
		return err
	}
	if m, err := d.Meta(); err != nil || run.Status(m.Status) != run.Cancelled {
		fmt.Fprintf(a.out, "Cancelling run %s: a worker has to process the request. To check: %s status %s\n",
			claim.RunID, program(), shell.Quote(d.Root))
		return quiet(exitAttention)
	}
	fmt.Fprintf(a.out, "Run %s is cancelled. To see it: %s status %s\n", claim.RunID, program(), shell.Quote(d.Root))
	return nil
}
