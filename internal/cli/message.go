package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) pause() *cobra.Command {
	var m workflows.Message
	cmd := a.message(workflows.VerbPause, "Pause a run after the running pass", &m)
	cmd.Flags().BoolVar(&m.Now, "now", false, "end the running call instead of waiting for it; resume repeats its pass")
	return cmd
}

func (a *app) budget() *cobra.Command {
	var m workflows.Message
	cmd := a.message(workflows.VerbBudget, "Set the budget of a run", &m)
	cmd.Long = `Set budgets of a run. Without RUN and flags, show the budget of the day of this host (per_day in the
settings), and what the calls of today use.`
	cmd.Flags().Float64Var(&m.USD, "usd", 0, "the new cap, in USD")
	cmd.Flags().Int64Var(&m.Tokens, "tokens", 0, "tokens of all kinds that the run may use")
	cmd.Flags().IntVar(&m.Calls, "calls", 0, "calls of agents that the run may make")
	cmd.Flags().Float64Var(&m.Hours, "hours", 0, "hours that the run may work, without pauses and questions")
	deadline := cmd.Flags().String("deadline", "", "time after which it makes no call: 2026-11-25T18:00:00Z, "+
		"or 2026-11-25 18:00 Europe/Berlin")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *deadline != "" {
			at, err := pipeline.ParseDeadline(*deadline)
			if err != nil {
				return asUsage(fmt.Errorf("--deadline: %w", err))
			}
			m.Deadline = at.Format(time.RFC3339)
		}
		if m.Tokens < 0 || m.Calls < 0 || !(m.Hours >= 0) {
			return asUsage(errors.New("--tokens, --calls and --hours must be above 0"))
		}
		if m.USD == 0 && m.BudgetLimits != (workflows.BudgetLimits{}) {
			return nil
		}
		if cmd.Flags().NFlag() == 0 && cmd.Flags().NArg() == 0 {
			return nil // show the budget of the day
		}
		if m.USD == 0 || !run.ValidBudget(m.USD) {
			return asUsage(fmt.Errorf("--usd is %g; it must be above 0 and at most %.0f, as in --usd 500",
				m.USD, run.MaxBudgetUSD))
		}
		return nil
	}
	set := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().NFlag() == 0 && len(args) == 0 {
			return a.showDay(cmd.Context())
		}
		return set(cmd, args)
	}
	return cmd
}

// message makes a verb that sends one message to a live run.
func (a *app) message(verb, short string, m *workflows.Message) *cobra.Command {
	cmd := &cobra.Command{Use: verb + " [RUN]", Short: short}
	cmd.Flags().StringVar(&m.Note, "note", "", "a note for the record")
	return a.onServer(cmd, func(ctx context.Context, s *session, d rundir.Dir, claim run.Claim) error {
		return a.send(ctx, s, d, claim, verb, *m)
	})
}

// send sends a message to an open run and prints the answer.
func (a *app) send(
	ctx context.Context, s *session, d rundir.Dir, claim run.Claim, verb string, m workflows.Message,
) error {
	text, err := a.speak(ctx, s, d, claim, verb, m)
	if err == nil {
		fmt.Fprintln(a.out, text)
	}
	return err
}

// speak sends a message to an open run and returns the answer. After a resume it returns when the directory records it.
func (a *app) speak(
	ctx context.Context, s *session, d rundir.Dir, claim run.Claim, verb string, m workflows.Message,
) (string, error) {
	switch err := s.MayExecute(ctx, projector.Dir{Dir: d}, claim); {
	case err == nil:
		if err := operations.Index(a.settings.StateDir, claim.RunID, d.Root); err != nil {
			return "", err
		}
	case verb == workflows.VerbResume || verb == workflows.VerbAmend: // they grant the plan in the directory
		return "", err
	}
	before, err := d.Meta()
	if err != nil {
		before = rundir.Meta{} // the directory follows as soon as it can be read
	}
	ack, err := s.SendUpdate(ctx, projector.Dir{Dir: d}, verb, m)
	if err != nil {
		return alreadyRunning(d, verb, err)
	}
	text := fmt.Sprintf("Run %s: %s.", claim.RunID, ack.Message)
	if verb != workflows.VerbResume || ack.Status != run.Paused {
		return text, nil
	}
	held, err := s.followed(ctx, d, before)
	if err != nil {
		return text, err
	}
	lines := []string{text}
	if held != "" {
		lines = append(lines, held)
	}
	now, err := d.Now()
	if err != nil {
		return strings.Join(lines, "\n"), err
	}
	return strings.Join(append(lines, damageLines(d, now.State)...), "\n"), nil
}
