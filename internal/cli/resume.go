package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func (a *app) resume() *cobra.Command {
	var in api.ResumeInput
	cmd := &cobra.Command{
		Use: "resume [RUN]", Short: "Resume a paused, failed, cancelled or interrupted run",
		Long: `Resume a run. A paused run continues where it paused, once the cause is fixed. A failed, cancelled or
interrupted run (its workflow was terminated or timed out, or Temporal's database is lost) continues in a new epoch
from the last completed step; answered calls are not paid for again. A failed run is to be inspected first: the command
asks at a terminal, and needs --force elsewhere. The command does not wait for the run: starter watch RUN shows it.

To move a run, pause it, move its directory and name the new path, on another host with --trust: the run continues there
in a new epoch. If the old host is gone, add --force --reason TEXT.

A run that waits for a usage limit tries at once. In a new epoch it continues to wait, unless --now is given.`,
	}
	cmd.Flags().StringVar(&in.Note, "note", "", "a note for the record")
	cmd.Flags().BoolVar(&in.Force, "force", false,
		"resume a failed run, or despite repeated failures, a halt, a lost server or host or changed settings; needs --reason")
	cmd.Flags().BoolVar(&in.Now, "now", false, "try at once instead of waiting for a usage limit to reset")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "the reason for --force, which is recorded")
	asJSON := startedFlag(cmd)
	return a.onNamed(cmd, func(ctx context.Context, name string) error {
		in.Run = name
		return a.asJSON(*asJSON, func() error { return a.resumeRun(ctx, in, !*asJSON) })
	})
}

// resumeRun resumes a run. If a question is open, and ask is set, it first asks the user at the terminal.
func (a *app) resumeRun(ctx context.Context, in api.ResumeInput, ask bool) error {
	d, claim, err := api.MayResume(a.host(), in)
	if claim.RunID != "" {
		a.started = &Started{RunID: claim.RunID, Directory: d.Root}
	}
	if err != nil {
		return err
	}
	if here, err := a.inspect(ctx, d); err == nil && a.personThere() && ask {
		if _, open := here.Now.State.Asks(); open {
			q, _, rest := a.showQuestion(ctx, here, true, false)
			m, err := a.askPerson(ctx, q, contract.Message{Note: in.Note}, rest)
			if err != nil {
				return err
			}
			return a.answered(api.Decide(ctx, a.host(), decision(d.Root, m)))
		}
		if here.Effective.Status == run.Failed && !in.Force {
			fmt.Fprintf(a.out, "The run failed: %s\n", here.Now.State.Reason)
			answer, err := a.prompted(ctx, "Resume it? Inspect it first: starter diagnose. [y/N] ")
			if err != nil {
				return err
			}
			in.Yes = strings.HasPrefix(strings.ToLower(answer), "y")
		}
	}
	return a.answered(api.Resume(ctx, a.host(), in))
}
