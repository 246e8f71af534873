package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// serverEvery is how often an attached terminal asks the server.
const serverEvery = 5 * time.Second

// attach shows the run that this terminal has started until it pauses or finishes, and asks its questions. Ctrl+C pauses
// the run. Detaching never cancels it.
func (a *app) attach(ctx context.Context, s *session, st operations.Started) error {
	if in, out, ok := a.terminal(); ok {
		return a.attachScreen(ctx, s, st, in, out)
	}
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(sigs)
	v := newEventPrinter(a.out, st.Dir)
	tick := time.NewTicker(api.Refresh)
	defer tick.Stop()
	watch := time.NewTicker(serverEvery)
	defer watch.Stop()
	interrupts, gone := 0, 0
	var held notices
	var resting pauseForDisk
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case sig := <-sigs:
			if sig != syscall.SIGINT {
				return a.signalled(st.Dir, sig)
			}
			if interrupts++; interrupts > 2 {
				return silentExit(exitForced) // no answer: the run continues or pauses without this terminal
			}
			go a.interrupt(ctx, s, st.RunID, interrupts, v)
		case now := <-watch.C:
			if text := a.host().HeldUp(ctx, s.Operator, st.Dir, v.state.Status); held.fresh(text, now) {
				v.note("  ! " + run.OneLine(text))
			}
			if err := s.ensure(ctx); err != nil {
				v.note("The server or the worker cannot be started again: " + err.Error())
			}
			if open, err := s.Open(ctx, st.RunID); err == nil && !open {
				if gone++; gone > 2 {
					return fmt.Errorf("run %s is no longer open in Temporal, and its directory records %s; run: %s "+
						"status %s",
						st.RunID, v.state.Status, program(), shell.Quote(st.Dir.Root))
				}
			}
		case now := <-tick.C:
			rests, err := v.update()
			if err != nil {
				return err
			}
			if resting.briefly(v.state, rests, now) {
				continue
			}
			if rests && a.decidedHere(ctx, s, v, sigs) {
				continue
			}
			if rests {
				s.awaitClose(ctx, v.state)
				return a.goodbye(v.dir, v.state, interrupts)
			}
		}
	}
}

// signalled reports the signal that ends this command, and returns its exit code. The run continues.
func (a *app) signalled(d rundir.Dir, sig os.Signal) error {
	fmt.Fprintf(a.out, "Ended by a signal (%s). The run continues. To watch it: %s watch %s\n", sig, program(),
		shell.Quote(d.Root))
	if number, ok := sig.(syscall.Signal); ok {
		return silentExit(exitSignal + int(number))
	}
	return nil
}

// errElsewhere reports that another operator answered a question, or that it expired.
var errElsewhere = errors.New("it was decided elsewhere")

// decidedHere asks the user at the terminal to answer the open question. It returns false without a user or an answer.
func (a *app) decidedHere(ctx context.Context, s *session, v *eventPrinter, sigs <-chan os.Signal) bool {
	q, open := v.state.Asks()
	if !open || v.state.Status.Class() != run.OperatorPause || !a.personThere() {
		return false
	}
	fmt.Fprintln(a.out)
	rest := a.printQuestion(ctx, v.dir, v.state, q, false)
	for {
		m, err := a.askWhileOpen(ctx, v.dir, q, sigs, rest)
		if errors.Is(err, errElsewhere) {
			fmt.Fprintln(a.out, "\nIt was decided elsewhere.")
			return true
		}
		if err != nil {
			fmt.Fprintln(a.out)
			return false
		}
		if _, err = s.Decide(ctx, v.dir, m); err == nil {
			return api.AwaitDirectory(ctx, v.dir, func(m rundir.Meta) bool { return !isOpen(m.State, q) }) == nil
		}
		fmt.Fprintln(a.out, err) // ask again, unless the question was answered meanwhile
	}
}

func isOpen(s run.State, q run.Question) bool {
	now, open := s.Asks()
	return open && now.ID == q.ID
}

// askWhileOpen asks until the user answers, Ctrl+C is pressed, or the question is closed.
func (a *app) askWhileOpen(
	ctx context.Context, d rundir.Dir, q run.Question, sigs <-chan os.Signal, rest []string,
) (contract.Message, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		tick := time.NewTicker(api.Refresh)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-sigs:
				cancel(context.Canceled)
			case <-tick.C:
				if m, err := d.Meta(); err == nil && !isOpen(m.State, q) {
					cancel(errElsewhere)
				}
			}
		}
	}()
	return a.askPerson(ctx, q, contract.Message{}, rest)
}

// awaitClose waits for the workflow of a finished run: its directory does not change afterwards. The directory is final
// in any case, so a server that does not answer is not an error.
func (s *session) awaitClose(ctx context.Context, st run.State) {
	if !st.Status.Closed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.Client.GetWorkflow(ctx, st.RunID, "").Get(ctx, nil); err != nil {
		return
	}
}

// interrupt turns Ctrl+C into a message (requirement 002 §8.4).
func (a *app) interrupt(ctx context.Context, s *session, runID string, nth int, v *eventPrinter) {
	m := contract.Message{Now: nth > 1, Note: "Ctrl+C"}
	for _, line := range interrupted(nth) {
		v.note(line)
	}
	_, err := s.Send(ctx, runID, contract.VerbPause, m)
	var refused *operations.RefusedError
	if err != nil && !errors.As(err, &refused) {
		v.note("The pause did not reach the run: " + err.Error())
	}
}

// interrupted returns the response to the nth Ctrl+C.
func interrupted(nth int) []string {
	switch nth {
	case 1:
		return []string{"Graceful shutdown requested. Finishing current pass...", "Press Ctrl+C again to force exit."}
	case 2:
		return []string{"Force exit. State saved at last completed pass."}
	}
	return nil
}

// reusedWords counts the results that a replay took from the record: of calls, commands, screenshots and deliveries.
func reusedWords(s run.State) string {
	if s.Reused == 0 {
		return ""
	}
	return run.Plural(s.Reused, "result") + " from the record, "
}

// nextAfter returns the next command for a run that was watched.
func nextAfter(d rundir.Dir, s run.State) string {
	next := run.NextCommands(s, run.Situation{EffectiveStatus: run.EffectiveStatus{ShownStatus: s.Status.Shown()}, Dir: d.Root})
	c, asks := run.Offers(next, run.Decide)
	if q, _ := s.Asks(); len(next) > 0 && (!asks || q.Trigger == run.TriggerBlocked) {
		c = next[0]
	}
	return strings.Join(shell.Next(program(), []run.Command{c}), "")
}

func nextLine(next string) string {
	if next == "" {
		return ""
	}
	return "Next: " + next + "\n"
}

// goodbye prints the status of a run and the next command.
func (a *app) goodbye(d rundir.Dir, s run.State, interrupts int) error {
	next := nextAfter(d, s)
	q, undecided := s.Asks()
	switch {
	case s.Status == run.Done:
		title := "Done"
		if s.NotApproved() {
			title = "Done, not approved"
		}
		fmt.Fprintf(a.out, "\n%s: %s, %s, %s.%s\n%s", title,
			view.WorkText(s), ofCalls(s.Spent.Calls), reusedWords(s)+s.CostWords(), view.ScoreText(s),
			resultLines(d, s)+unmetWords(s)+unrecoveredWords(d))
	case s.Status == run.Paused && s.Reason == run.UserRequested:
		fmt.Fprintf(a.out, "\nPipeline paused by user. Resume with: %s\n", next)
	case s.Status == run.Paused && s.Reason == run.BudgetThreshold:
		fmt.Fprintf(a.out, "\nPaused: %s.\n%s", run.OneLine(s.BudgetWords()), nextLine(next))
	case s.Status == run.Paused && s.Reason == run.ConsecutiveFailures:
		why := fmt.Sprintf("%d passes in a row were given up", s.Passes.InRow)
		if f := s.Failure; f != nil {
			why = f.Text(s.Wording)
		}
		fmt.Fprintf(a.out, "\nPaused: %s.\n%s", run.OneLine(why), nextLine(next))
	case s.Status == run.Paused && s.Reason == run.DiskFull:
		fmt.Fprintf(a.out, "\nPaused: a disk was full%s.\n%s", view.ProblemText(s), nextLine(next))
	case s.Status == run.Paused && s.Reason == run.SetupFailed:
		fmt.Fprintf(a.out, "\nPaused%s.\n%s", view.ProblemText(s), nextLine(next))
	case s.Status == run.WaitingLimit:
		fmt.Fprintf(a.out, "\nThe run %s.\n%s", s.LimitText(clock(time.Now())), nextLine(next))
	case undecided && !s.Status.Settled():
		fmt.Fprintf(a.out, "\nIt waits for a decision: %s\n%s", q.Words(), nextLine(next))
	case s.Status.Class() == run.OperatorPause:
		fmt.Fprintf(a.out, "\nPaused (%s).\n%s", s.Reason, nextLine(next))
	default:
		fmt.Fprintf(a.out, "\nThe run is %s.\n%s", s.Status.Words(), nextLine(next))
	}
	for _, line := range a.host().DamageLines(d, s) {
		fmt.Fprintln(a.out, line)
	}
	if interrupts > 1 && s.Status == run.Paused {
		return silentExit(exitForced)
	}
	return outcome(s)
}

// resultLines name what a finished run leaves, and the command that shows its changes.
func resultLines(d rundir.Dir, s run.State) string {
	result := view.Result(d, s)
	if result == "" {
		return ""
	}
	result = "Result: " + run.OneLine(result) + "\n"
	if s.Delivery != nil && s.Delivery.Delivered {
		result += fmt.Sprintf("To see it: %s diff %s\n", program(), shell.Quote(d.Root))
	}
	return result
}

// unmetWords describes why a finished run is not approved.
func unmetWords(s run.State) string {
	if !s.NotApproved() {
		return ""
	}
	return "Its last loop ended without " + run.OneLine(s.Unmet) + ".\n"
}

// unrecoveredWords describes the errors of a finished run that no other attempt made good. They may be why its artifact
// is as it was.
func unrecoveredWords(d rundir.Dir) string {
	m, err := d.Meta()
	if err != nil || m.Summary.Unrecovered == 0 {
		return "" // without meta.json, the lines about damage name it
	}
	return fmt.Sprintf("%s: %s status %s\n", run.Plural(m.Summary.Unrecovered, "unrecovered error"), program(),
		shell.Quote(d.Root))
}

func usd(v float64) string { return fmt.Sprintf("$%.2f", v) }
