package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

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

func (a *app) resume() *cobra.Command {
	var m workflows.Message
	cmd := a.message(workflows.VerbResume, "Go on with a paused run", &m)
	cmd.Flags().BoolVar(&m.Force, "force", false, "although the same pass has failed again and again; its failures are forgiven")
	return cmd
}

func (a *app) budget() *cobra.Command {
	var m workflows.Message
	cmd := a.message(workflows.VerbBudget, "Set the budget of a run", &m)
	cmd.Flags().Float64Var(&m.USD, "usd", 0, "the new cap, in USD")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if m.USD <= 0 {
			return asUsage(errors.New("say the new cap: --usd 500"))
		}
		return nil
	}
	return cmd
}

// goesOnAnyway tells somebody who resumes a run that goes on already what there is to do instead; everything else is the error that it is.
func (a *app) goesOnAnyway(d rundir.Dir, verb string, err error) error {
	var refused *operate.RefusedError
	m, unread := d.Meta()
	if verb != workflows.VerbResume || !errors.As(err, &refused) || unread != nil || m.State.Status != run.Running {
		return err
	}
	fmt.Fprintf(a.out, "Run %s is running: there is nothing to resume. Watch it: %s watch %s\n", m.RunID, program(), d.Root)
	return nil
}

// awaitResumed returns when the directory says that the run goes on, so that whoever looks next does not see the pause. If no worker takes
// the run up for a while, the message is not lost.
func awaitResumed(ctx context.Context, d rundir.Dir) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return every(ctx, refresh, func(time.Time) (bool, error) {
		m, err := d.Meta()
		return err == nil && m.State.Status != run.Paused, nil //nolint:nilerr // meta.json may be replaced at this moment
	})
}

// message sends one message to a live run.
func (a *app) message(verb, short string, m *workflows.Message) *cobra.Command {
	var dir string
	cmd := a.target(&cobra.Command{Use: verb + " [RUN]", Short: short, Long: short + ".\n\n" + exitCodesHelp}, &dir)
	cmd.Flags().StringVar(&m.Note, "note", "", "a word for the record")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := operate.Find(a.settings.StateDir, named(args, dir))
		if err != nil {
			return err
		}
		claim, err := d.Claim()
		if err != nil {
			return err
		}
		s, err := a.connect(cmd.Context(), true)
		if err != nil {
			return err
		}
		defer s.Close()
		if claim.Host == s.Host { // elsewhere the same folder may have another name
			m.Dir = d.Root
		}
		if err := operate.Index(a.settings.StateDir, claim.RunID, d.Root); err != nil {
			return err
		}
		ack, err := s.Send(cmd.Context(), claim.RunID, verb, *m)
		if err != nil {
			return a.goesOnAnyway(d, verb, err)
		}
		fmt.Fprintf(a.out, "Run %s: %s.\n", claim.RunID, ack.Said)
		if verb != workflows.VerbResume {
			return nil
		}
		return awaitResumed(cmd.Context(), d)
	}
	return cmd
}
