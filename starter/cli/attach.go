package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

const (
	refresh     = 150 * time.Millisecond // how often an attached terminal looks at the directory
	serverEvery = 5 * time.Second        // how often it asks the server
)

// What Ctrl+C means at an attached terminal.
const (
	pauses   = false // the terminal that started the run
	detaches = true
)

// attach shows a run until it rests or is over, and asks what it asks. Detaching never cancels it; Ctrl+C pauses it, or only detaches.
func (a *app) attach(ctx context.Context, s *session, st operate.Started, leave bool) error {
	if in, out, ok := a.terminal(); ok {
		return a.attachScreen(ctx, s, st, leave, in, out)
	}
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(sigs)
	v := newView(a.out, st.Dir)
	defer v.clear()
	tick := time.NewTicker(refresh)
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
				return nil // the terminal is gone: the run goes on
			}
			if leave {
				v.say(fmt.Sprintf("Detached: the run goes on. To pause it: %s pause %s", program(), shell.Quote(st.Dir.Root)))
				return nil
			}
			if interrupts++; interrupts > 2 {
				return quiet(exitForced) // nobody answers: the run goes on or rests without us
			}
			go a.interrupt(ctx, s, st.RunID, interrupts, v)
		case now := <-watch.C:
			if text := s.heldUp(ctx, st.Dir, v.state.Status); held.fresh(text, now) {
				v.say("  ! " + run.OneLine(text))
			}
			if err := s.ensure(ctx); err != nil {
				v.say("The server or the worker cannot be started again: " + err.Error())
			}
			if open, err := s.Open(ctx, st.RunID); err == nil && !open {
				if gone++; gone > 2 {
					return fmt.Errorf("run %s is not open in Temporal any more, and its directory says %s: look with `%s status %s`", st.RunID, v.state.Status, program(), shell.Quote(st.Dir.Root))
				}
			}
		case now := <-tick.C:
			rests, err := v.update(now)
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
				v.clear()
				return a.goodbye(v.dir, v.state, interrupts)
			}
		}
	}
}

// errElsewhere says that a question was answered by somebody else, or has expired.
var errElsewhere = errors.New("it was decided elsewhere")

// decidedHere has the person at the terminal decide what the run waits for. false: nobody is there, or wants to.
func (a *app) decidedHere(ctx context.Context, s *session, v *view, sigs <-chan os.Signal) bool {
	q, open := v.state.Asks()
	if !open || v.state.Status.Class() != run.OperatorPause || !a.personThere() {
		return false
	}
	v.clear()
	fmt.Fprintln(a.out)
	a.printQuestion(v.dir, q)
	for {
		m, err := a.askWhileOpen(ctx, v.dir, q, sigs)
		if errors.Is(err, errElsewhere) {
			fmt.Fprintln(a.out, "\nIt was decided elsewhere.")
			return true
		}
		if err != nil {
			fmt.Fprintln(a.out)
			return false
		}
		if _, err = s.Decide(ctx, v.dir, m); err == nil {
			return awaitDirectory(ctx, v.dir, func(m rundir.Meta) bool { return !isOpen(m.State, q) }) == nil
		}
		fmt.Fprintln(a.out, err) // and once more, unless that is because it is not open any more
	}
}

func isOpen(s run.State, q run.Question) bool {
	now, open := s.Asks()
	return open && now.ID == q.ID
}

// askWhileOpen asks until the person answers, Ctrl+C is pressed, or the question is not open any more.
func (a *app) askWhileOpen(ctx context.Context, d rundir.Dir, q run.Question, sigs <-chan os.Signal) (workflows.Message, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		tick := time.NewTicker(refresh)
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
	return a.askPerson(ctx, q, workflows.Message{})
}

// awaitClose gives a run that is over a moment to close its books: the directory does not change after that. What the directory says of the run
// holds in any case, so a server that does not answer is no error here.
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
func (a *app) interrupt(ctx context.Context, s *session, runID string, nth int, v *view) {
	m := workflows.Message{Now: nth > 1, Note: "Ctrl+C"}
	for _, line := range interrupted(nth) {
		v.say(line)
	}
	_, err := s.Send(ctx, runID, workflows.VerbPause, m)
	var refused *operate.RefusedError
	if err != nil && !errors.As(err, &refused) {
		v.say("The pause did not reach the run: " + err.Error())
	}
}

// interrupted is what the nth Ctrl+C is answered with.
func interrupted(nth int) []string {
	switch nth {
	case 1:
		return []string{"Graceful shutdown requested. Finishing current pass...", "Press Ctrl+C again to force exit."}
	case 2:
		return []string{"Force exit. State saved at last completed pass."}
	}
	return nil
}

// passesWords counts numbered passes, where a pipeline has any.
func passesWords(s run.State) string {
	if s.Passes.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d passes, ", s.Passes.LastSettled, s.Passes.Total)
}

// reusedWords counts what a replay took from the record.
func reusedWords(s run.State) string {
	if s.Reused == 0 {
		return ""
	}
	return fmt.Sprintf("%d of all from the record, ", s.Reused)
}

// goodbye says where the run stands, and what to type next.
func (a *app) goodbye(d rundir.Dir, s run.State, interrupts int) error {
	where := shell.Quote(d.Root)
	q, undecided := s.Asks()
	switch {
	case s.Status == run.Done:
		fmt.Fprintf(a.out, "\nDone: %s%d rounds, %d calls, %s.%s\n", passesWords(s), s.Rounds, s.Spent.Calls, reusedWords(s)+usd(s.Total()), scoreWords(s))
	case s.Status == run.Paused && s.Reason == run.UserRequested:
		fmt.Fprintf(a.out, "\nPipeline paused by user. Resume with: %s resume %s\n", program(), where)
	case s.Status == run.Paused && s.Reason == run.BudgetThreshold:
		fmt.Fprintf(a.out, "\nPaused: %s are spent and the budget is %s.\nRaise it and go on: %s budget %s --usd N && %s resume %s\n",
			usd(s.Total()), usd(s.Budget.CapUSD), program(), where, program(), where)
	case s.Status == run.Paused && s.Reason == run.ConsecutiveFailures:
		why := fmt.Sprintf("%d passes in a row were given up", s.Passes.InRow)
		if f := s.Failure; f != nil {
			why = fmt.Sprintf("%s failed in %d starts, last with %s: %s", f.Step, f.Starts, f.Category, f.Message)
		}
		fmt.Fprintf(a.out, "\nPaused: %s.\nFix the cause, then run: %s resume %s --force --reason TEXT\n", run.OneLine(why), program(), where)
	case s.Status == run.Paused && s.Reason == run.DiskFull:
		fmt.Fprintf(a.out, "\nPaused: a disk was full%s.\nFree space there and go on: %s resume %s\n", problemWords(s), program(), where)
	case undecided && !s.Status.Settled():
		fmt.Fprintf(a.out, "\nIt waits for a decision: %s\nDecide: %s decide %s\n", q.Words(), program(), where)
	case s.Status.Class() == run.OperatorPause:
		fmt.Fprintf(a.out, "\nPaused (%s). Look: %s status %s. Go on: %s resume %s\n", s.Reason, program(), where, program(), where)
	default:
		fmt.Fprintf(a.out, "\nThe run is %s. Look: %s status %s\n", s.Status, program(), where)
	}
	for _, line := range damageLines(d, s) {
		fmt.Fprintln(a.out, line)
	}
	if interrupts > 1 && s.Status == run.Paused {
		return quiet(exitForced)
	}
	return outcome(s)
}

// problemWords is the cause of a pause that only the last error names.
func problemWords(s run.State) string {
	if s.Problem == nil {
		return ""
	}
	return ": " + run.OneLine(s.Problem.Message)
}

func scoreWords(s run.State) string {
	if s.Score == nil {
		return ""
	}
	return fmt.Sprintf(" Score %.1f.", *s.Score)
}

func usd(v float64) string { return fmt.Sprintf("$%.2f", v) }
