package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) resume() *cobra.Command {
	var m workflows.Message
	var dir, reason string
	var here bool
	cmd := a.target(&cobra.Command{
		Use: "resume [RUN]", Short: "Go on with a run that rests, failed, was cancelled or was interrupted",
		Long: `Go on with a run. A paused one goes on where it rests, once the cause is gone. One that failed, was cancelled or was interrupted (its workflow was
terminated, has timed out, or Temporal's database is gone) goes on in a new epoch from the last thing that settled; nothing that was answered
is paid for again. A directory that was moved is named by its new place: --output-dir NEW; one that was moved to another host, there, with --here.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().StringVar(&m.Note, "note", "", "a word for the record")
	cmd.Flags().BoolVar(&m.Force, "force", false, "resume a run whose pass failed repeatedly, that was halted, whose old server is out of reach, or that the settings refuse; needs --reason")
	cmd.Flags().BoolVar(&here, "here", false, "the directory was moved to this host: from now on it is written here")
	cmd.Flags().StringVar(&reason, "reason", "", "why --force is used; recorded")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		claim, err := a.atHome(d)
		if err != nil {
			return err
		}
		if err := explained(m.Force, reason); err != nil {
			return err
		}
		if err := writableHere(d, claim, here); err != nil { // before a server is started
			return err
		}
		if here, err := a.look(ctx, d); err == nil && a.personThere() {
			if q, open := a.showQuestion(here, false); open {
				a.showQuestion(here, true)
				if m, err = a.askPerson(ctx, q, m); err != nil {
					return err
				}
				return a.sendDecision(ctx, here, m)
			}
		}
		s, err := a.connect(ctx, true)
		if err != nil {
			return err
		}
		defer s.Close()
		open, err := s.Open(ctx, claim.RunID)
		if err != nil {
			return err
		}
		if open {
			m.Reason = reason
			if here {
				home := workflows.Message{Dir: d.Root, Queue: work.QueuesOf(claim.TaskQueue, s.Host).Dir, Note: m.Note}
				if _, err := s.Send(ctx, claim.RunID, workflows.VerbRehome, home); err != nil {
					return err
				}
			}
			return a.send(ctx, s, d, claim, workflows.VerbResume, m)
		}
		return a.reopen(ctx, s, d, operate.Reopening{Force: m.Force, Reason: reason, Note: m.Note})
	}
	return cmd
}

// explained refuses force without a reason, before a server is started.
func explained(force bool, reason string) error {
	if force && strings.TrimSpace(reason) == "" {
		return asUsage(errors.New("--force needs --reason TEXT, which is recorded"))
	}
	return nil
}

// writableHere refuses a directory that this user cannot write, if it will be written on this machine. An open run elsewhere only gets a message.
func writableHere(d rundir.Dir, claim run.Claim, here bool) error {
	m, err := d.Meta()
	if here || claim.Embedded || err == nil && run.Status(m.Status).Closed() {
		return d.MayWrite()
	}
	return nil
}

// reopen opens the run's next epoch and waits until its directory says so.
func (a *app) reopen(ctx context.Context, s *session, d rundir.Dir, r operate.Reopening) error {
	text, err := reopened(ctx, s, d, r)
	if text != "" {
		fmt.Fprintln(a.out, text)
	}
	return err
}

func reopened(ctx context.Context, s *session, d rundir.Dir, r operate.Reopening) (string, error) {
	re, err := s.Reopen(ctx, d, r)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Run %s was %s and goes on in epoch %d.", re.RunID, re.From, re.Epoch)
	if re.Restored > 0 {
		text = fmt.Sprintf("The store had lost what the run needs: %d files of the directory were put into it again.\n", re.Restored) + text
	}
	text = reopenedWith(re) + text
	return text, awaitDirectory(ctx, d, func(m rundir.Meta) bool { return m.Epoch >= re.Epoch })
}

// reopenedWith names what a new epoch repaired and overruled.
func reopenedWith(re operate.Reopened) string {
	text := ""
	for _, what := range re.Repaired {
		text += fmt.Sprintf("Warning: the journal was damaged and was restored: %s\n", what)
	}
	for _, what := range re.Overruled {
		text += fmt.Sprintf("Overruled with --force, and recorded: %s\n", what)
	}
	return text
}

// goesOnAnyway tells somebody who resumes a run that goes on already what there is to do instead; everything else is the error that it is.
func goesOnAnyway(d rundir.Dir, verb string, err error) (string, error) {
	var refused *operate.RefusedError
	m, unread := d.Meta()
	if verb != workflows.VerbResume || !errors.As(err, &refused) || unread != nil || m.State.Status != run.Running {
		return "", err
	}
	return fmt.Sprintf("Run %s is running: there is nothing to resume. Watch it: %s watch %s", m.RunID, program(), shell.Quote(d.Root)), nil
}

// awaitDirectory returns when the directory says that the run goes on, so that whoever looks next does not see what was before. If no worker
// takes the run up for a while, the message is not lost.
func awaitDirectory(ctx context.Context, d rundir.Dir, there func(rundir.Meta) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return every(ctx, refresh, func(time.Time) (bool, error) {
		m, err := d.Meta()
		return err == nil && there(m), nil //nolint:nilerr // meta.json may be replaced at this moment
	})
}
