package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
)

func (a *app) revert() *cobra.Command {
	var in api.RevertInput
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
	cmd.Flags().StringVar(&in.To, "to", "", "checkpoint (starter checkpoints), or a boundary: pass-35, round-2")
	cmd.Flags().StringVar(&in.To, "checkpoint", "", "same as --to")
	cmd.Flags().BoolVar(&in.StayPaused, "pause", false, "stay paused there")
	cmd.Flags().StringVar(&in.Note, "note", "", "a note for the record")
	cmd.Flags().BoolVar(&in.Force, "force", false,
		"revert a halted run, or one that the settings refuse; needs --reason")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "the reason for --force, which is recorded")
	return a.onNamed(cmd, func(ctx context.Context, name string) error {
		in.Run = name
		done, err := api.Revert(ctx, a.host(), in)
		if done.Message == "" {
			return err
		}
		if done.Warning != "" {
			fmt.Fprintln(a.err, "Warning:", done.Warning)
		}
		for _, text := range done.Actions {
			fmt.Fprintln(a.err, "Warning:", text)
		}
		fmt.Fprintln(a.out, done.Message)
		return err
	})
}

func (a *app) cancel() *cobra.Command {
	return a.onNamed(&cobra.Command{
		Use: "cancel [RUN]", Short: "Cancel a run and end its running call",
		Long: `End a live, paused or interrupted run. Its running call is ended; completed results stay. An interrupted run
is closed in a separate epoch without calls. A cancelled run can be resumed in a new epoch, followed up or forked. If the
directory was deleted, name the run by its id: a worker rebuilds the directory and writes the end there.`,
	}, func(ctx context.Context, name string) error {
		out, err := api.Cancel(ctx, a.host(), api.RunInput{Run: name})
		if err = a.answered(out, err); err == nil && out.Status != run.Cancelled {
			return silentExit(exitAttention)
		}
		return err
	})
}
