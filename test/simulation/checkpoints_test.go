package simulation_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/invariants"
)

// settled is a file of a checkpoint that a crash found committed.
type settled struct {
	id     string // of the checkpoint
	seq    int64  // of its event
	digest string
}

// keep records, at a crash, the files of the checkpoints that are committed.
func (w *world) keep() {
	book, err := rundir.Records(w.dir)
	if err != nil {
		return // there is none yet
	}
	raw, err := os.ReadFile(w.dir.Path(rundir.EventsFile))
	w.check(err)
	events, err := invariants.Events(raw)
	if w.holds(3, err); err != nil {
		return
	}
	for _, c := range book.Checkpoints {
		seq := created(events, c)
		if seq == 0 {
			w.fail("invariant 1: state.json has checkpoint %s, which no event has created", c.ID)
			continue
		}
		files, err := filepath.Glob(filepath.Join(w.dir.Path(c.CheckpointDir), "*"))
		w.check(err)
		for _, f := range files {
			if disk.IsTemp(f) || w.settled[f].seq == seq {
				continue
			}
			raw, err := os.ReadFile(f)
			w.check(err)
			w.settled[f] = settled{c.ID, seq, string(store.DigestOf(raw))}
		}
	}
}

// created returns the event that has created the checkpoint of a record; 0: none.
func created(events []run.Event, c rundir.CheckpointRecord) int64 {
	for _, e := range events {
		var p run.CheckpointCreated
		if e.Kind == run.KindCheckpointCreated && e.TS == c.CreatedAt {
			if e.Decode(&p); p.ID == c.ID {
				return e.Seq
			}
		}
	}
	return 0
}

// unchanged wants the checkpoints that a crash found committed to be as they were (5).
func (w *world) unchanged(events []run.Event) error {
	for _, f := range slices.Sorted(maps.Keys(w.settled)) {
		was := w.settled[f]
		if was.gone(events) {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("invariant 5: %s was committed at a crash: %w", f, err)
		}
		if string(store.DigestOf(raw)) != was.digest {
			return fmt.Errorf("invariant 5: %s was committed at a crash and is another file now", f)
		}
	}
	return nil
}

// gone reports whether the checkpoint of a file may have changed: a stage that is done again, because an operator wants
// that or after a reset, replaces its checkpoint, and a revert moves those that it abandons.
func (s settled) gone(events []run.Event) bool {
	return slices.ContainsFunc(events[min(s.seq, int64(len(events))):], func(e run.Event) bool {
		var c run.CheckpointCreated
		var back run.RunReverted
		switch e.Kind {
		case run.KindCheckpointCreated:
			e.Decode(&c)
			return c.ID == s.id
		case run.KindRunReverted:
			e.Decode(&back)
			return back.To < s.seq && !rundir.Lasting(s.id)
		}
		return false
	})
}
