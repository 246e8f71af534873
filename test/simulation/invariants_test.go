package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/invariants"
)

// projected checks what must hold whenever a batch was written: the journal only grows and has no gap, meta.json has
// its chain, and the fold of its events.
func (w *world) projected() {
	w.batches++
	raw, err := os.ReadFile(w.dir.Path(rundir.EventsFile))
	if err != nil {
		w.check(err)
		return
	}
	raw = invariants.CompleteLines(raw) // another worker may be at its next line, or a full disk has stopped it there
	if !bytes.HasPrefix(raw, w.journal) {
		w.fail("invariant 3: batch %d: the journal does not begin with what it was", w.batches)
	}
	if w.read == nil {
		w.read = newReading()
	}
	added := raw[min(len(w.journal), len(raw)):]
	w.journal = raw
	meta, err := w.dir.Meta()
	if err != nil {
		w.fail("invariant 1: batch %d: %w", w.batches, err)
		return
	}
	if w.check(w.read.add(added, meta)); w.read.named != meta.Events.Seq { // an earlier one
		w.read = newReading()
		w.check(w.read.add(raw, meta))
	}
	w.check(w.read.folds(meta))
}

// reading is the fold and the chain of a journal as far as it was read.
type reading struct {
	fold  *run.Fold
	seq   int64
	ts    string
	chain run.Chain
	named int64     // the event that meta.json names
	state run.State // at that event
}

func newReading() *reading {
	return &reading{fold: run.NewFold(run.State{}, run.History{}), chain: run.Chain("")}
}

// add reads more lines. meta.json names one of all.
func (r *reading) add(raw []byte, meta rundir.Meta) error {
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		e, err := run.ParseLine(line)
		switch {
		case err != nil:
			return fmt.Errorf("invariant 3: line %d: %w", r.seq+1, err)
		case e.Seq != r.seq+1:
			return fmt.Errorf("invariant 3: line %d has seq %d", r.seq+1, e.Seq)
		case e.TS < r.ts:
			return fmt.Errorf("invariant 3: event %d goes back in time", e.Seq)
		}
		r.seq, r.ts, r.chain = e.Seq, e.TS, r.chain.Over([]string{line})
		r.fold.Apply(e)
		if e.Seq == meta.Events.Seq {
			r.named, r.state = e.Seq, r.fold.State()
			if r.chain != meta.Events.Chain {
				return fmt.Errorf("invariant 3: meta.json has another chain at event %d", e.Seq)
			}
		}
	}
	return nil
}

// folds compares meta.json with the fold of the journal.
func (r *reading) folds(meta rundir.Meta) error {
	want, werr := json.Marshal(r.state)
	got, gerr := json.Marshal(meta.State)
	if werr != nil || gerr != nil || !bytes.Equal(want, got) {
		return errors.Join(werr, gerr, fmt.Errorf("invariant 1: meta.json at event %d is not the fold of its events",
			meta.Events.Seq))
	}
	return nil
}

// ended checks all that must hold at the end of a run.
func (w *world) ended() {
	meta, err := w.dir.Meta()
	if tail, terr := w.dir.Tail(); terr == nil && tail.Seq == 0 {
		return // it was cancelled before it began, each time
	}
	if err != nil {
		w.check(err)
		return
	}
	book, err := rundir.Records(w.dir)
	w.check(err)
	raw, err := os.ReadFile(w.dir.Path(rundir.EventsFile))
	w.check(err)
	events, err := invariants.Events(raw)
	if w.holds(3, err); err != nil {
		return
	}
	if meta.Events.Seq != int64(len(events)) && !w.running {
		w.fail("invariant 1: meta.json is at event %d of %d", meta.Events.Seq, len(events))
	}
	w.holds(2, invariants.WholeLines(w.dir.Root))
	if !bytes.HasPrefix(raw, w.journal) {
		w.fail("invariant 3: the journal does not begin with what it was")
	}
	all := newReading()
	w.check(all.add(raw, meta))
	w.check(all.folds(meta))
	w.check(w.unchanged(events))
	w.check(w.answeredOnce(events))
	w.holds(6, invariants.Costs(w.dir, meta, book, events))
	if left := w.machine.agents(); len(left) > 0 {
		w.fail("invariant 8: %d agents survive", len(left))
	}
	w.check(w.provenance(meta))
	w.holds(10, invariants.OneEnd(events, w.running))
	r, err := rundir.Check(context.Background(), w.dir, rundir.CheckOptions{})
	if err == nil && !r.OK && !w.running {
		err = fmt.Errorf("the check finds %+v", r.Issues)
	}
	w.check(err)
}

// crashed checks what must hold whenever a worker has crashed: state files can be read, and complete lines are events.
func (w *world) crashed() {
	for _, read := range []func() error{
		func() error { _, err := w.dir.Meta(); return err },
		func() error { _, err := rundir.Records(w.dir); return err },
	} {
		if err := read(); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.fail("invariant 1: after a crash: %w", err)
		}
	}
	raw, err := os.ReadFile(w.dir.Path(rundir.EventsFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.check(err)
	}
	if !bytes.HasPrefix(raw, w.journal) {
		w.fail("invariant 3: after a crash the journal does not begin with what it was")
	}
	if _, err := invariants.Events(raw); err != nil {
		w.fail("invariant 3: after a crash: %w", err)
	}
}

// holds records that an invariant does not hold.
func (w *world) holds(invariant int, err error) {
	if err != nil {
		w.fail("invariant %d: %w", invariant, err)
	}
}

// answeredOnce wants no call to be paid for again once an agent has answered it, and each to be journaled once (4).
func (w *world) answeredOnce(events []run.Event) error {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	answered := map[string]int{}
	for call, n := range w.calls.usable {
		answered[filepath.Dir(call)] += n
	}
	for call, n := range answered {
		if n > 1 {
			return fmt.Errorf("invariant 4: call %s was answered %d times", call, n)
		}
	}
	ends := map[string]int64{}
	for _, e := range events {
		if e.Kind == run.KindRunReverted { // what a revert abandons may be done again
			clear(ends)
		}
		if e.Kind != run.KindPassEnd {
			continue
		}
		var p run.PassEnd
		e.Decode(&p)
		if first := ends[p.Call]; first > 0 {
			return fmt.Errorf("invariant 4: call %s ends in events %d and %d", p.Call, first, e.Seq)
		}
		ends[p.Call] = e.Seq
	}
	return nil
}

// provenance wants the row of each file to continue where the one before ended, and the last to be the artifact, or the
// file of the tree (9).
func (w *world) provenance(meta rundir.Meta) error {
	type row struct {
		Path   string `json:"path"`
		Old    string `json:"old_path"`
		Before string `json:"hash_before"`
		After  string `json:"hash_after"`
	}
	rows, skipped, err := rundir.Rows[row](w.dir, rundir.ProvenanceFile)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(rows) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("invariant 9: %w", err)
	}
	if skipped > 0 {
		return fmt.Errorf("invariant 9: %d rows cannot be read", skipped)
	}
	after := map[string]string{}
	for i, r := range rows {
		if last, known := after[r.Path]; known && r.Before != last {
			return fmt.Errorf("invariant 9: row %d of %s begins with %.8s, the one before ended with %.8s", i+1, r.Path,
				r.Before, last)
		}
		after[r.Path] = r.After
	}
	if a := meta.State.Artifact; a != nil && rows[len(rows)-1].After != a.Digest {
		return fmt.Errorf("invariant 9: the last row ends with %.8s, the artifact is %.8s", rows[len(rows)-1].After, a.Digest)
	}
	return nil
}
