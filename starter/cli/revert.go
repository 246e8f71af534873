package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) revert() *cobra.Command {
	var r operate.Reverting
	var dir string
	cmd := a.target(&cobra.Command{
		Use: "revert [RUN] --to CHECKPOINT", Short: "Take a run that rests, failed or was cancelled back to a checkpoint",
		Long: `Take a run back to a checkpoint, and go on from there: artifact, notes, workspace and place become what they were. It is the same run; what is left
behind stays in its journal and on disk (pass-025~1), its cost is counted as sunk, and a checkpoint of what was (cp-REVERT-…) is made first.
A live run is paused first (starter pause). A run that is done stays as it is: fork it instead.

` + exitCodesHelp,
		Example: "  starter revert RUN --to cp-S3          # next is the pass behind it\n  starter revert RUN --to pass-35        # the place before pass 35\n" +
			"  starter revert RUN --to cp-S3 --pause  # stay paused there",
	}, &dir)
	cmd.Flags().StringVar(&r.To, "to", "", "checkpoint (starter checkpoints), or a boundary: pass-35, cycle-2")
	cmd.Flags().StringVar(&r.To, "checkpoint", "", "the same as --to")
	cmd.Flags().BoolVar(&r.Rest, "pause", false, "stay paused there, instead of going on")
	cmd.Flags().StringVar(&r.Note, "note", "", "a word for the record")
	cmd.Flags().BoolVar(&r.Force, "force", false, "revert a halted run, or one that the settings refuse; needs --reason")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why --force is used; recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.To == "" {
			return asUsage(errors.New("say where to: --to CHECKPOINT (starter checkpoints lists them)"))
		}
		if err := explained(r.Force, r.Reason); err != nil {
			return err
		}
		return a.reach(cmd.Context(), named(args, dir), func(s *session, d rundir.Dir, _ run.Claim) error {
			done, err := s.Revert(cmd.Context(), d, r)
			if err != nil {
				return err
			}
			if done.Warning != "" {
				fmt.Fprintln(a.err, "Warning:", done.Warning)
			}
			fmt.Fprintf(a.out, "Run %s goes back to %s (pass %d).\n", done.RunID, done.Checkpoint, done.Pass)
			return awaitDirectory(cmd.Context(), d, func(m rundir.Meta) bool { return m.State.Generation >= done.Generation })
		})
	}
	return cmd
}

func (a *app) cancel() *cobra.Command {
	var dir string
	cmd := a.target(&cobra.Command{
		Use: "cancel [RUN]", Short: "End a run for good: its running call is ended, and it is closed as cancelled",
		Long: "End a run that is live, paused or interrupted. Its running call is ended; what was answered stays. An interrupted run is closed in an epoch of its own, in\nwhich nothing is called. A cancelled run can be resumed as a new epoch, followed up or forked.\n\n" + exitCodesHelp,
	}, &dir)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.reach(cmd.Context(), named(args, dir), func(s *session, d rundir.Dir, claim run.Claim) error {
			return a.cancelRun(cmd.Context(), s, d, claim)
		})
	}
	return cmd
}

// cancelRun cancels a run, and says whether it has ended.
func (a *app) cancelRun(ctx context.Context, s *session, d rundir.Dir, claim run.Claim) error {
	if err := s.Cancel(ctx, d); err != nil {
		return err
	}
	if err := awaitDirectory(ctx, d, func(m rundir.Meta) bool { return run.Status(m.Status) == run.Cancelled }); err != nil {
		return err
	}
	if m, err := d.Meta(); err != nil || run.Status(m.Status) != run.Cancelled {
		fmt.Fprintf(a.out, "Run %s was asked to end, and its directory does not say so yet: a worker has to take it up. Look: %s status %s\n", claim.RunID, program(), shell.Quote(d.Root))
		return quiet(exitAttention)
	}
	fmt.Fprintf(a.out, "Run %s is cancelled. What there is of it: %s status %s\n", claim.RunID, program(), shell.Quote(d.Root))
	return nil
}
