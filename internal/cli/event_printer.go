package cli

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// eventPrinter prints a run from its directory alone: a line per event.
type eventPrinter struct {
	mu     sync.Mutex
	out    io.Writer
	dir    rundir.Dir
	offset int64
	fold   *run.Fold
	heads  run.Headlines
	state  run.State // that the fold has come to
}

func newEventPrinter(out io.Writer, dir rundir.Dir) *eventPrinter {
	return &eventPrinter{out: unwrapped(out), dir: dir, fold: run.NewFold(run.State{}, run.History{})}
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
func (v *eventPrinter) update() (paused bool, err error) {
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
	fmt.Fprintln(v.out, terminal.Safe(text))
}
