package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) resume() *cobra.Command {
	var m workflows.Message
	var reason string
	var here, now bool
	cmd := &cobra.Command{
		Use: "resume [RUN]", Short: "Resume a paused, failed, cancelled or interrupted run",
		Long: `Resume a run. A paused run continues where it paused, once the cause is fixed. A failed, cancelled or
interrupted run (its workflow was terminated or timed out, or Temporal's database is lost) continues in a new epoch
from the last completed step; answered calls are not paid for again. Name a moved directory by its new path:
--output-dir NEW. After a move to another host, run the command there with --here.

A run that waits for a usage limit tries at once. In a new epoch it continues to wait, unless --now is given.`,
	}
	cmd.Flags().StringVar(&m.Note, "note", "", "a note for the record")
	cmd.Flags().BoolVar(&m.Force, "force", false,
		"resume despite repeated failures, a halt, an unreachable server or changed settings; needs --reason")
	cmd.Flags().BoolVar(&now, "now", false, "try at once instead of waiting for a usage limit to reset")
	cmd.Flags().BoolVar(&here, "here", false, "the directory was moved to this host, which writes it from now on")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason for --force, which is recorded")
	asJSON := startedFlag(cmd)
	resume := func(ctx context.Context, d rundir.Dir) error {
		claim, err := a.atHome(d)
		if err != nil {
			return err
		}
		a.started = &Started{RunID: claim.RunID, Directory: d.Root}
		if err := explained(m.Force, reason); err != nil {
			return err
		}
		if err := writableHere(d, claim, here); err != nil { // before a server is started
			return err
		}
		if here, err := a.inspect(ctx, d); err == nil && a.personThere() && !*asJSON {
			if q, open := a.showQuestion(ctx, here, false); open {
				a.showQuestion(ctx, here, true)
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
				home := workflows.Message{Dir: d.Root, Queue: contract.HostQueues(claim.TaskQueue, s.Host).Dir,
					Note: m.Note}
				if _, err := s.Send(ctx, claim.RunID, workflows.VerbRehome, home); err != nil && !closedMeanwhile(err) {
					return err
				}
			}
			err := a.send(ctx, s, d, claim, workflows.VerbResume, m)
			if !closedMeanwhile(err) {
				return err
			}
		}
		return a.reopen(ctx, s, d, operations.Reopening{Force: m.Force, Reason: reason, Note: m.Note, Now: now})
	}
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		return a.asJSON(*asJSON, func() error { return resume(ctx, d) })
	})
}

// closedMeanwhile reports whether a message was refused because the run's workflow has ended since it was found open.
func closedMeanwhile(err error) bool {
	var refused *operations.RefusedError
	return errors.As(err, &refused) && refused.Closed
}

// explained refuses force without a reason, before a server is started.
func explained(force bool, reason string) error {
	if force && strings.TrimSpace(reason) == "" {
		return asUsage(errors.New("--force needs --reason TEXT, which is recorded"))
	}
	return nil
}

// writableHere refuses a directory that this user cannot write, if this machine will write it. An open run elsewhere
// only gets a message.
func writableHere(d rundir.Dir, claim run.Claim, here bool) error {
	m, err := d.Meta()
	if here || claim.Embedded || err == nil && run.Status(m.Status).Closed() {
		return projector.MayWrite(d)
	}
	return nil
}

// reopen opens the next epoch of a run and waits until its directory records it.
func (a *app) reopen(ctx context.Context, s *session, d rundir.Dir, r operations.Reopening) error {
	text, err := reopened(ctx, s, d, r)
	if text != "" {
		fmt.Fprintln(a.out, text)
	}
	return err
}

func reopened(ctx context.Context, s *session, d rundir.Dir, r operations.Reopening) (string, error) {
	re, err := s.Reopen(ctx, projector.Dir{Dir: d}, r)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Run %s was %s and continues in epoch %d.", re.RunID, re.From, re.Epoch)
	if re.Restored > 0 {
		text = fmt.Sprintf("%d files that the store had lost were restored from the directory.\n", re.Restored) + text
	}
	text = reopenedWith(re) + text
	return text, awaitDirectory(ctx, d, func(m rundir.Meta) bool { return m.Epoch >= re.Epoch })
}

// reopenedWith lists what a new epoch repaired and overruled.
func reopenedWith(re operations.Reopened) string {
	text := ""
	for _, what := range re.Repaired {
		text += fmt.Sprintf("Warning: the journal was damaged and was restored: %s\n", what)
	}
	for _, what := range re.Overruled {
		text += fmt.Sprintf("Overruled with --force, and recorded: %s\n", what)
	}
	return text
}

// alreadyRunning returns a hint instead of the error if the run that is to be resumed is running.
func alreadyRunning(d rundir.Dir, verb string, err error) (string, error) {
	var refused *operations.RefusedError
	m, unread := d.Meta()
	if verb != workflows.VerbResume || !errors.As(err, &refused) || unread != nil || m.State.Status != run.Running {
		return "", err
	}
	return fmt.Sprintf("Run %s is running: there is nothing to resume. To watch it: %s watch %s",
		m.RunID, program(), shell.Quote(d.Root)), nil
}

// awaitDirectory returns when the directory records a change, so that the next reader sees it. Without a worker it
// stops waiting after a while; the message is not lost.
func awaitDirectory(ctx context.Context, d rundir.Dir, there func(rundir.Meta) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return every(ctx, refresh, func(time.Time) (bool, error) {
		m, err := d.Meta()
		return err == nil && there(m), nil //nolint:nilerr // meta.json may be replaced at this moment
	})
}
