package rundir

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Sealing requests that the events from First to Tail are stored after the segment Head.
type Sealing struct {
	RunID string
	Head  string
	First int64
	Tail  run.Tail
	Truth Truth // nil: only the segments and the directory contain the written lines
}

// Sealed is the result: the newest segment, its last event, and the damage that was found.
type Sealed struct {
	Head   string
	Last   int64
	Damage []run.JournalDamage
}

// Seal stores events as a segment and records it in meta.json. It stores the lines as they were written: damaged lines
// are taken from another source, and the damage is reported. If no source has them, nothing is stored, and Last is
// before First. If an earlier segment is lost or damaged, all events are stored again. Damage is not an error, because
// a retry would find it again. A directory that lacks lines is [ErrShorter].
func (d Dir) Seal(ctx context.Context, blobs Blobs, s Sealing) (Sealed, error) {
	done := Sealed{Head: s.Head, Last: s.First - 1}
	if s.Tail.Seq < s.First {
		return done, nil
	}
	if err := d.inside().Mkdir(d.Root, DirPerm); err != nil {
		return done, err
	}
	err := d.export(ctx, blobs, s.Truth, "seal", false, func(w *exporter) error { return w.seal(s, &done) })
	return done, err
}

func (w *exporter) seal(s Sealing, done *Sealed) error {
	seg, err := w.segment(s, done)
	if err != nil || seg == nil {
		return err
	}
	raw, err := json.Marshal(seg)
	if err != nil {
		return err
	}
	digest, err := w.blobs.Put(w.ctx, raw)
	if err != nil {
		return fmt.Errorf("store events %d to %d: %w", seg.First, seg.Last, err)
	}
	done.Head, done.Last = digest, seg.Last
	if w.head == digest && w.beyond() == 0 {
		return nil // already recorded
	}
	w.head = digest
	if err = w.export(); err == nil {
		w.dir.Folds.keep(w.dir.Root, w)
	}
	return err
}

// segment builds the segment; nil if its lines are lost. Damage is recorded in done.
func (w *exporter) segment(s Sealing, done *Sealed) (*Segment, error) {
	all, err := ReadStream(w.dir, EventsFile, 0)
	if err != nil {
		return nil, err
	}
	if s.First < 1 {
		return nil, fmt.Errorf("store events from %d on: the first event of a run is 1", s.First)
	}
	if int64(len(all.Lines)) < s.Tail.Seq {
		return nil, fmt.Errorf("%s ends at event %d, before %d: %w", w.dir.Path(EventsFile), len(all.Lines),
			s.Tail.Seq, ErrShorter)
	}
	lines, stored, found, err := written(w.ctx, w.blobs, s.Head, s.Tail, all.Lines[:s.Tail.Seq], s.Truth)
	if done.Damage = found; err != nil || lines == nil {
		return nil, err
	}
	first, head := s.First, s.Head
	if !slices.Equal(stored, lines[:first-1]) {
		first, head = 1, "" // there is no valid segment before this one
	}
	return &Segment{
		Version: SegmentVersion, RunID: s.RunID, First: first, Last: s.Tail.Seq,
		Prev: run.Chain("").Over(lines[:first-1]), Chain: s.Tail.Chain, Previous: head,
		Lines: lines[first-1:],
	}, nil
}
