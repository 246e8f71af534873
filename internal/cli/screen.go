package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/internal/watch"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// terminal returns the terminal of the user; false if input or output is not a terminal, or the terminal is dumb.
func (a *app) terminal() (in, out *os.File, ok bool) {
	in, okIn := a.in.(*os.File)
	out, okOut := unwrapped(a.out).(*os.File)
	ok = okIn && okOut && term.IsTerminal(int(in.Fd())) && widthOf(out) > 0
	return in, out, ok
}

// watchScreen shows a run until the user leaves.
func (a *app) watchScreen(ctx context.Context, d rundir.Dir, in, out *os.File) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	acts := &actions{a: a, dir: d}
	defer acts.close()
	o := a.screen(ctx, d, in, out, acts)
	var held notice
	o.Why = held.why
	o.EffectiveStatus = func(ctx context.Context, recorded run.Status) (run.Status, string) {
		s := a.host().EffectiveStatus(ctx, d, recorded)
		if s.Status == run.Interrupted { // the run may have ended since the screen read it
			if _, again, err := a.host().Observe(ctx, d); err == nil {
				s = again
			}
		}
		held.set(a.heldLine(s, d))
		return s.Status, view.Describe(s)
	}
	res, err := a.show(ctx, o)
	if err != nil || res.State.Status == "" || res.State.Status.Class() == run.Live {
		return err
	}
	return a.goodbye(d, res.State, 0)
}

// attachScreen shows a run until it finishes or the user leaves. Leaving never cancels it, and Ctrl+C pauses it.
func (a *app) attachScreen(ctx context.Context, s *session, st operations.Started, in, out *os.File) error {
	ctx, stop := withSignals(ctx)
	defer stop()
	o := a.screen(ctx, st.Dir, in, out, &actions{a: a, dir: st.Dir, s: s})
	o.Attached = true
	o.Interrupt = func(ctx context.Context, nth int) error {
		_, err := s.Send(ctx, st.RunID, contract.VerbPause, contract.Message{Now: nth > 1, Note: "Ctrl+C"})
		var refused *operations.RefusedError
		if errors.As(err, &refused) {
			return nil
		}
		return err
	}
	var held notice
	o.Why = held.why
	gone := 0
	o.Supervise = func(ctx context.Context) (string, error) {
		notice := ""
		if m, err := st.Dir.Meta(); err == nil {
			held.set(a.host().HeldUp(ctx, s.Operator, st.Dir, m.State.Status))
		}
		if err := s.ensure(ctx); err != nil && ctx.Err() == nil {
			notice = "The server or the worker cannot be started again: " + err.Error()
		}
		if open, err := s.Open(ctx, st.RunID); err == nil && !open {
			if gone++; gone > 2 {
				return "", fmt.Errorf("run %s is no longer open in Temporal; run: %s status %s",
					st.RunID, program(), shell.Quote(st.Dir.Root))
			}
		}
		return notice, nil
	}
	res, err := a.show(ctx, o)
	a.transcript(st.Dir, res.Interrupts)
	var ended signalError
	switch {
	case errors.As(context.Cause(ctx), &ended):
		return a.signalled(st.Dir, ended.Signal)
	case err != nil:
		return err
	case res.Forced:
		return silentExit(exitForced)
	case res.State.Status == "" || res.State.Status.Class() == run.Live:
		fmt.Fprintf(a.out, "The run continues. To watch it: %s watch %s\n", program(), shell.Quote(st.Dir.Root))
		return nil
	case res.State.Status.Closed():
		s.awaitClose(ctx, res.State)
	}
	return a.goodbye(st.Dir, res.State, res.Interrupts)
}

// signalError is the signal that cancelled a context.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return e.String() }

// withSignals returns a context that SIGTERM and SIGHUP cancel, with the signal as its cause.
func withSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	sigs := make(chan os.Signal, 1)
	signal.Notify(sigs, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case sig := <-sigs:
			cancel(signalError{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(sigs)
		cancel(nil)
	}
}

// transcriptLines is the maximum number of past lines that are printed after an attached screen.
const transcriptLines = 500

// transcript prints the past events as on output that is not a terminal: the screen leaves no trace of them.
func (a *app) transcript(d rundir.Dir, interrupts int) {
	var lines []string
	var heads run.Headlines
	fold := run.NewFold(run.State{}, run.History{})
	for line, err := range d.Lines(0) {
		if err != nil {
			return // goodbye names the next command
		}
		if line.Err != nil {
			continue
		}
		fold.Apply(line.Event)
		if text := heads.Of(run.Entry{Event: line.Event, After: fold.Current(), Zone: zone()}); text != "" {
			lines = append(lines, run.OneLine(text))
		}
	}
	if n := len(lines) - transcriptLines; n > 0 {
		fmt.Fprintf(a.out, "… %d lines more: %s logs %s\n", n, program(), shell.Quote(d.Root))
		lines = lines[n:]
	}
	for _, line := range lines {
		fmt.Fprintln(a.out, line)
	}
	for nth := range interrupts {
		for _, line := range interrupted(nth + 1) {
			fmt.Fprintln(a.out, line)
		}
	}
}

// screen returns the options that both screens share.
func (a *app) screen(ctx context.Context, d rundir.Dir, in, out *os.File, acts watch.Actions) watch.Options {
	return watch.Options{
		Dir: d, In: in, Out: out, Actions: acts, Zone: zone(),
		About: func(s run.State, q run.Question) []string { return about(ctx, d, s, q) },
		Why: func(s run.State, effective run.Status) string {
			why := view.WhyPaused(s, effective)
			if why == "" {
				return ""
			}
			return strings.Join(append([]string{why}, a.host().DamageLines(d, s)...), "\n")
		},
		Output: a.outputFile, Hide: a.secrets.Text, Records: records{a, d},
	}
}

// show runs the screen. Messages to stderr are printed afterwards, since the screen would overwrite them.
func (a *app) show(ctx context.Context, o watch.Options) (watch.Result, error) {
	defer a.err.hold()()
	return watch.Run(ctx, o)
}

// about returns what a question is about, below its choices.
func about(ctx context.Context, d rundir.Dir, s run.State, q run.Question) []string {
	var out []string
	for _, f := range s.Facts(q) {
		out = append(out, f.Name+": "+f.Text)
	}
	for _, at := range api.Attachments(ctx, d, q) {
		text := at.Text
		if rel, err := filepath.Rel(d.Root, text); err == nil && filepath.IsAbs(text) {
			text = rel
		}
		out = append(out, at.Name+": "+text)
		for _, line := range at.Lines {
			out = append(out, "  "+strings.TrimRight(terminal.Safe(line), " "))
		}
	}
	return out
}

// actions are the verbs of the screen. Without a session they use a running server; they start none.
type actions struct {
	a   *app
	dir rundir.Dir

	mu   sync.Mutex
	s    *session
	mine bool
}

// session connects, once.
func (x *actions) session(ctx context.Context) (*session, run.Claim, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	claim, err := x.dir.Claim()
	if err != nil || x.s != nil {
		return x.s, claim, err
	}
	op, err := x.a.host().Peek(ctx, claim)
	if err != nil {
		return nil, claim, fmt.Errorf("this needs a server: %w; start one with `%s server start`", err, program())
	}
	op.Client.Close()
	x.s, err = x.a.connect(ctx, true)
	x.mine = err == nil
	return x.s, claim, err
}

func (x *actions) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.mine {
		x.s.Close()
	}
}

// host is this program with the session of the screen.
func (x *actions) host(ctx context.Context) (api.Host, error) {
	s, _, err := x.session(ctx)
	if err != nil {
		return api.Host{}, err
	}
	return s.on(x.a.host()), nil
}

func (x *actions) Pause(ctx context.Context, now bool) (string, error) {
	h, err := x.host(ctx)
	if err != nil {
		return "", err
	}
	out, err := api.Pause(ctx, h, api.PauseInput{Run: x.dir.Root, Now: now})
	return out.Message, err
}

func (x *actions) Budget(ctx context.Context, cap float64) (string, error) {
	h, err := x.host(ctx)
	if err != nil {
		return "", err
	}
	out, err := api.Budget(ctx, h, api.BudgetInput{Run: x.dir.Root, USD: cap})
	return out.Message, err
}

func (x *actions) Resume(ctx context.Context, reason string) (string, error) {
	h, err := x.host(ctx)
	if err != nil {
		return "", err
	}
	out, err := api.Resume(ctx, h, api.ResumeInput{Run: x.dir.Root, Force: reason != "", Reason: reason})
	return out.Message, err
}

func (x *actions) Decide(ctx context.Context, question, action, words string) (string, error) {
	h, err := x.host(ctx)
	if err != nil {
		return "", err
	}
	in := api.DecideInput{Run: x.dir.Root, Question: question, Action: action, Feedback: words}
	out, err := api.Decide(ctx, h, in)
	return out.Message, err
}

// outlet writes messages that are not the result of a verb. They are held back while a screen has the terminal.
type outlet struct {
	mu   sync.Mutex
	to   io.Writer
	held bool
	kept bytes.Buffer
}

// Write escapes what could control a terminal.
func (o *outlet) Write(p []byte) (int, error) {
	_, err := o.control([]byte(terminal.Safe(string(p))))
	return len(p), err
}

func (o *outlet) control(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held {
		return o.kept.Write(p)
	}
	return o.to.Write(p)
}

// hold keeps messages back until release.
func (o *outlet) hold() (release func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = true
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.held = false
		fmt.Fprint(o.to, o.kept.String())
		o.kept.Reset()
	}
}
