package e2e_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/passbook-run/passbook/rundir"
)

// watch reads both state files of a directory all the time, as other programs do (invariant 1).
type watch struct {
	dir  rundir.Dir
	stop chan struct{}
	done sync.WaitGroup
	err  error
	read int // how often a new version was read
	turn turn
	seen map[string]time.Time
}

// turn is how far a run is. None of it may become less.
type turn struct {
	Meta, State int64 // last events of both files
	Passes      int
	Rounds      int
	Turns       int
}

// watchDirectory begins to watch; the directory need not be there yet.
func watchDirectory(dir rundir.Dir) *watch {
	w := &watch{dir: dir, stop: make(chan struct{}), seen: map[string]time.Time{}}
	w.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for w.err == nil {
			w.err = w.look()
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
		}
	})
	return w
}

// over ends the watch and returns what was wrong.
func (w *watch) over() error {
	close(w.stop)
	w.done.Wait()
	return w.err
}

// look reads what has changed.
func (w *watch) look() error {
	next := w.turn
	if w.changed(rundir.MetaFile) {
		m, err := w.dir.Meta()
		if err != nil {
			return err
		}
		next.Meta = m.Events.Seq
	}
	if w.changed(rundir.StateFile) {
		b, err := rundir.Records(w.dir)
		if err != nil {
			return err
		}
		next.State, next.Passes, next.Rounds, next.Turns = b.LastSeq, b.LastCompletedCorpusPass, b.CompletedPACycles,
			b.Turns
	}
	if next.Meta < w.turn.Meta || next.State < w.turn.State || next.Passes < w.turn.Passes ||
		next.Rounds < w.turn.Rounds ||
		next.Turns < w.turn.Turns {
		return fmt.Errorf("the run goes back: it was %+v, now it is %+v", w.turn, next)
	}
	w.turn = next
	return nil
}

// changed reports whether a file is another one than before. A file that was there once must stay.
func (w *watch) changed(name string) bool {
	fi, err := os.Stat(w.dir.Path(name))
	last, known := w.seen[name]
	if errors.Is(err, fs.ErrNotExist) && !known {
		return false
	}
	if err == nil && fi.ModTime().Equal(last) {
		return false
	}
	if err == nil {
		w.seen[name] = fi.ModTime()
	}
	w.read++
	return true
}
