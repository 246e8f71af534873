package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// eventPrinter prints a run from its directory alone: a line per event, and on a terminal one live line at the bottom.
type eventPrinter struct {
	mu     sync.Mutex
	out    io.Writer
	dir    rundir.Dir
	offset int64
	fold   *run.Fold
	heads  run.Headlines
	state  run.State // that the fold has come to
	width  int       // of the terminal; 0: not a terminal
	live   bool
	spin   int
}

func newEventPrinter(out io.Writer, dir rundir.Dir) *eventPrinter {
	return &eventPrinter{out: unwrapped(out), dir: dir, fold: run.NewFold(run.State{}, run.History{}), width: widthOf(out)}
}

// widthOf returns the width of the terminal; 0: not a terminal.
func widthOf(out io.Writer) int {
	width, _ := sizeOf(out)
	return width
}

// sizeOf returns the size of the terminal; 0: not a terminal.
func sizeOf(out io.Writer) (width, height int) {
	f, ok := unwrapped(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0, 0
	}
	if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
		return w, h
	}
	return 80, 24
}

// unwrapped returns the writer below the one that escapes text, for output that moves the cursor.
func unwrapped(out io.Writer) io.Writer {
	if w, ok := out.(*terminal.Writer); ok {
		return w.Unwrap()
	}
	return out
}

// update reads and prints new events. It returns true if the run is paused or finished.
func (v *eventPrinter) update(now time.Time) (paused bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for line, err := range v.dir.Lines(v.offset) {
		if err != nil {
			return false, err
		}
		if v.offset = line.End; line.Err != nil {
			continue
		}
		v.fold.Apply(line.Event)
		if text := v.heads.Of(run.Entry{Event: line.Event, After: v.fold.Current(), Zone: zone()}); text != "" {
			v.print(run.OneLine(text))
		}
	}
	v.state = v.fold.State()
	v.bar(now)
	s := v.state.Status
	return (s.Closed() && s != "" || s.NeedsOperator()) && v.committed(), nil
}

// committed reports whether everything derived from the last line is on disk: lines are written first, meta.json last.
func (v *eventPrinter) committed() bool {
	meta, err := v.dir.Meta()
	return err == nil && meta.Events.Seq >= v.state.Seq
}

// note prints a message.
func (v *eventPrinter) note(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.print(text)
}

func (v *eventPrinter) print(text string) {
	v.wipe()
	fmt.Fprintln(v.out, terminal.Safe(text))
}

func (v *eventPrinter) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wipe()
}

func (v *eventPrinter) wipe() {
	if v.live {
		fmt.Fprint(v.out, "\r\x1b[K")
		v.live = false
	}
}

// bar draws the live line: progress, cost and running calls, or the rest of the wait for a limit.
func (v *eventPrinter) bar(now time.Time) {
	s := v.state
	if v.width == 0 || s.Status != run.Running && s.Status != run.WaitingLimit {
		return
	}
	v.spin++
	const cells = 20
	done := 0
	if s.Passes.Total > 0 {
		done = cells * s.Passes.LastSettled / s.Passes.Total
	}
	line := fmt.Sprintf("%s %s%s %d/%d  %s of %s  %s",
		string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[v.spin%10]), strings.Repeat("█", done), strings.Repeat("░", cells-done),
		s.Passes.LastSettled, s.Passes.Total, s.CostText(), usd(s.Budget.CapUSD), inFlight(s, now))
	if text := s.LimitText(clock(now)); text != "" {
		line = text + view.Countdown(s.Limited, clock(now))
	}
	if r := []rune(line); len(r) >= v.width {
		line = string(r[:v.width-1])
	}
	fmt.Fprint(v.out, "\r\x1b[K"+terminal.Safe(line))
	v.live = true
}

// inFlight names the running calls, and for how long they run.
func inFlight(s run.State, now time.Time) string {
	var parts []string
	for _, f := range s.InFlight {
		began, err := time.Parse(run.TimeFormat, f.StartedAt)
		if err != nil {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %ds", f.Role, int(now.Sub(began).Seconds())))
	}
	return strings.Join(parts, ", ")
}
