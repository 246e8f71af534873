package rundir

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Batch is a part of the journal: event lines from First on, and the chain before them.
type Batch struct {
	Epoch int       `json:"epoch"`
	First int64     `json:"first"`
	Prev  run.Chain `json:"prev"`
	Lines []string  `json:"lines"`
	Head  string    `json:"head,omitempty"` // newest segment

	Verified bool  `json:"-"` // damage to earlier lines is known and not searched for
	Truth    Truth `json:"-"` // nil: only the segments contain the written lines
}

// Projected reports the new end of the directory's journal.
type Projected struct {
	Outcome run.Projection `json:"outcome"`
	Tail    run.Tail       `json:"tail"`
	Healed  []string       `json:"healed,omitempty"` // damaged files that were rebuilt
	Edits   []Edit         `json:"edits,omitempty"`

	Damage []run.JournalDamage `json:"damage,omitempty"` // damage to the journal itself: the outcome is Damaged

	Added    int    `json:"-"` // lines that were not on disk before, the last ones of the batch
	Pipeline string `json:"-"` // of the run
}

// Project appends a batch to the directory and updates everything derived, under the directory's lock. On return with
// Written, the lines are synced, and the files derived from them are written. Lines that exist already are skipped if
// they are byte-equal.
func (d Dir) Project(ctx context.Context, blobs Blobs, b Batch) (p Projected, err error) {
	if err := d.makeRoot(); err != nil {
		return p, err
	}
	err = d.export(ctx, blobs, b.Truth, "project", false, func(w *exporter) error {
		p, err = w.project(b)
		return err
	})
	return p, err
}

// makeRoot creates the directory. If there is a meta.json, the directory is on disk already, because its commit created
// it.
func (d Dir) makeRoot() error {
	if _, err := d.Stat(MetaFile); err == nil {
		return nil
	}
	return d.inside().Mkdir(d.Root, DirPerm)
}

func (w *exporter) project(b Batch) (Projected, error) {
	if b.First < 1 {
		return Projected{}, fmt.Errorf("project events from %d on: the first event of a run is 1", b.First)
	}
	owner, err := w.dir.Owner()
	if err != nil {
		return Projected{}, err
	}
	if b.Epoch < max(w.fold.Header.State.Epoch, owner.Epoch) {
		return Projected{Outcome: run.ProjectionNewer, Tail: w.fold.Tail}, nil
	}
	fresh, outcome, err := w.missing(b)
	if err != nil || outcome != run.ProjectionWritten {
		return Projected{Outcome: outcome, Tail: w.fold.Tail}, err
	}
	if slices.ContainsFunc(fresh, acts) {
		if ended, err := w.dir.Ended(); err != nil || ended {
			return Projected{Outcome: run.ProjectionNewer, Tail: w.fold.Tail}, err
		}
	}
	if !b.Verified && b.First == w.fold.Tail.Seq+1 && (w.broken || verifies(b.Lines)) {
		found, err := w.verify(b)
		if err != nil || len(found) > 0 {
			return Projected{Outcome: run.ProjectionDamaged, Tail: w.fold.Tail, Damage: found}, err
		}
	}
	if len(b.Lines) == 0 && len(w.torn) == 0 && w.beyond() == 0 && !w.cold { // only a comparison
		w.dir.Folds.keep(w.dir.Root, w)
		return Projected{Outcome: run.ProjectionWritten, Tail: w.fold.Tail}, nil
	}
	if err := w.append(fresh); err != nil {
		return Projected{}, err
	}
	w.head = cmp.Or(b.Head, w.head)
	if err := w.export(); err != nil {
		return Projected{}, err
	}
	w.dir.Folds.keep(w.dir.Root, w)
	return Projected{Outcome: run.ProjectionWritten, Tail: w.fold.Tail, Healed: w.healed, Edits: w.edits,
		Added: len(fresh), Pipeline: w.fold.Header.State.Pipeline}, nil
}

// verify returns the damage of the lines on disk and of the segments.
func (w *exporter) verify(b Batch) ([]run.JournalDamage, error) {
	all, err := ReadStream(w.dir, EventsFile, 0)
	if err != nil {
		return nil, err
	}
	_, _, found, err := written(w.ctx, w.blobs, b.Head, w.fold.Tail, all.Lines, b.Truth)
	return found, err
}

// verifies reports whether the whole journal is compared with its chain before these lines are appended: at the end of
// a run, and after every pause, during which other processes could change its files. Otherwise a projection reads only
// new lines.
func verifies(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		switch ParseAny(l).Kind {
		case run.KindRunEnd, run.KindRunResumed:
			return true
		}
		return false
	})
}

// acts reports whether a line is more than a refused message. Nothing else follows the end of a run that is done.
func acts(line string) bool { return ParseAny(line).Kind != run.KindDecisionRefused }

// missing returns the lines of the batch that are not on disk yet, or the reason why none may be written.
func (w *exporter) missing(b Batch) ([]string, run.Projection, error) {
	switch {
	case b.First > w.fold.Tail.Seq+1:
		return nil, run.ProjectionBehind, nil
	case b.First == w.fold.Tail.Seq+1:
		if b.Prev != w.fold.Tail.Chain {
			return nil, run.ProjectionNewer, nil
		}
		return b.Lines, run.ProjectionWritten, nil
	}
	all, err := ReadStream(w.dir, EventsFile, 0)
	if err != nil {
		return nil, "", err
	}
	if int64(len(all.Lines)) < b.First-1 {
		return nil, run.ProjectionBehind, nil // the file was replaced
	}
	before, onDisk := all.Lines[:b.First-1], all.Lines[b.First-1:]
	// the same journal with a damaged earlier line ends in the same chain
	same := run.Chain("").Over(before) == b.Prev || b.Prev.Over(onDisk) == w.fold.Tail.Chain
	switch {
	case same && begins(b.Lines, onDisk):
		return b.Lines[len(onDisk):], run.ProjectionWritten, nil
	case w.broken: // these are not the lines that were written
		return nil, run.ProjectionBehind, nil
	}
	return nil, run.ProjectionNewer, nil
}
