package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) pause() *cobra.Command {
	var m workflows.Message
	cmd := a.message(workflows.VerbPause, "Pause a run after the running pass", &m)
	cmd.Flags().BoolVar(&m.Now, "now", false, "end the running call instead of waiting for it; its pass is done again on resume")
	return cmd
}

func (a *app) budget() *cobra.Command {
	var m workflows.Message
	cmd := a.message(workflows.VerbBudget, "Set the budget of a run", &m)
	cmd.Flags().Float64Var(&m.USD, "usd", 0, "the new cap, in USD")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if m.USD == 0 || !run.ValidBudget(m.USD) {
			return asUsage(fmt.Errorf("--usd is %g; say the new cap, a number above 0 and at most %.0f: --usd 500", m.USD, run.MaxBudgetUSD))
		}
		return nil
	}
	return cmd
}

// message sends one message to a live run.
func (a *app) message(verb, short string, m *workflows.Message) *cobra.Command {
	var dir string
	cmd := a.target(&cobra.Command{Use: verb + " [RUN]", Short: short, Long: short + ".\n\n" + exitCodesHelp}, &dir)
	cmd.Flags().StringVar(&m.Note, "note", "", "a word for the record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.reach(cmd.Context(), named(args, dir), func(s *session, d rundir.Dir, claim run.Claim) error {
			return a.send(cmd.Context(), s, d, claim, verb, *m)
		})
	}
	return cmd
}

// reach finds a run and connects to its server, for something that is to be done with it.
func (a *app) reach(ctx context.Context, name string, do func(*session, rundir.Dir, run.Claim) error) error {
	d, err := a.find(name)
	if err != nil {
		return err
	}
	claim, err := a.atHome(d)
	if err != nil {
		return err
	}
	s, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s, d, claim)
}

// atHome gives the claim of a directory that is no copy.
func (a *app) atHome(d rundir.Dir) (run.Claim, error) {
	claim, err := d.Claim()
	if err == nil {
		err = operate.AtHome(a.settings.StateDir, claim, d)
	}
	return claim, err
}

// send sends a message to an open run, and says what it answered.
func (a *app) send(ctx context.Context, s *session, d rundir.Dir, claim run.Claim, verb string, m workflows.Message) error {
	text, err := a.speak(ctx, s, d, claim, verb, m)
	if err == nil {
		fmt.Fprintln(a.out, text)
	}
	return err
}

// speak sends a message to an open run and gives what it answered. After a resume it returns when the directory says that the run goes on.
func (a *app) speak(ctx context.Context, s *session, d rundir.Dir, claim run.Claim, verb string, m workflows.Message) (string, error) {
	if err := operate.Index(a.settings.StateDir, claim.RunID, d.Root); err != nil {
		return "", err
	}
	before, err := d.Meta()
	if err != nil {
		before = rundir.Meta{} // the directory has followed as soon as it can be read
	}
	ack, err := s.Tell(ctx, d, verb, m)
	if err != nil {
		return goesOnAnyway(d, verb, err)
	}
	text := fmt.Sprintf("Run %s: %s.", claim.RunID, ack.Said)
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
