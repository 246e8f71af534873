package projector

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// Batch is a part of the journal: event lines from First on, and the chain before them.
type Batch struct {
	Epoch int       `json:"epoch"`
	First int64     `json:"first"`
	Prev  run.Chain `json:"prev"`
	Lines []string  `json:"lines"`
	Head  string    `json:"head,omitempty"` // newest segment

	Verified bool          `json:"-"` // damage to earlier lines is known and not searched for
	Truth    journal.Truth `json:"-"` // nil: only the segments contain the written lines
}

// Projected reports the new end of the directory's journal.
type Projected struct {
	Outcome run.Projection `json:"outcome"`
	Tail    run.Tail       `json:"tail"`
	Healed  []string       `json:"healed,omitempty"` // damaged files that were rebuilt
	Edits   []Edit         `json:"edits,omitempty"`

	Damage []run.JournalDamage `json:"damage,omitempty"` // damage to the journal itself: the outcome is Damaged
	End    *End                `json:"end,omitempty"`    // of a final journal: the outcome is Final

	Added    int    `json:"-"` // lines that were not on disk before, the last ones of the batch
	Pipeline string `json:"-"` // of the run
}

// Project appends a batch to the directory and updates everything derived, under the directory's lock. On return with
// Written, the lines are synced, and the files derived from them are written. Lines that exist already are skipped if
// they are byte-equal.
func (d Dir) Project(ctx context.Context, blobs Blobs, b Batch) (Projected, error) {
	if err := d.makeRoot(); err != nil {
		return Projected{}, err
	}
	held, err := lock(ctx, d.Dir, "project")
	if err != nil {
		return Projected{}, err
	}
	defer held.Unlock()
	p, err := d.openForBatch(ctx, blobs)
	if err != nil {
		return Projected{}, err
	}
	return p.project(b)
}

// makeRoot creates the directory. If there is a meta.json, the directory is on disk already, because its commit created
// it.
func (d Dir) makeRoot() error {
	if _, err := d.Stat(layout.MetaFile); err == nil {
		return nil
	}
	return d.Inside().Mkdir(d.Root, layout.DirPerm)
}

func (p *Projector) project(b Batch) (Projected, error) {
	tail := p.tail()
	if b.First < 1 {
		return Projected{}, fmt.Errorf("project events from %d on: the first event of a run is 1", b.First)
	}
	end, err := p.end()
	if err != nil {
		return Projected{}, err
	}
	if end != nil && !end.Holds(b.First, b.Prev, b.Lines) {
		return Projected{Outcome: run.ProjectionFinal, Tail: end.Tail, End: end}, p.catchUp()
	}
	owner, err := p.Dir.Owner()
	if err != nil {
		return Projected{}, err
	}
	if b.Epoch < max(p.state().Epoch, owner.Epoch) {
		return Projected{Outcome: run.ProjectionStale, Tail: tail}, nil
	}
	fresh, outcome, err := p.compare(b, tail)
	if err != nil || outcome != run.ProjectionWritten {
		return Projected{Outcome: outcome, Tail: tail}, err
	}
	if !b.Verified && b.First == tail.Seq+1 && verifies(b.Lines) {
		found, err := p.verify(b.Head, b.Truth)
		if err != nil || len(found) > 0 {
			return Projected{Outcome: run.ProjectionDamaged, Tail: tail, Damage: found}, err
		}
	}
	if err := p.Append(fresh); err != nil {
		return Projected{}, err
	}
	if b.Head != "" {
		p.meta.SegmentHead = b.Head
	}
	if err := p.Materialise(); err != nil {
		return Projected{}, err
	}
	meta, state := p.meta.Meta, encodable{p.records, p.encoder}
	p.Dir.Memory.keep(p.Dir.Root, remembered{p.wroteMeta, p.wroteState, &meta, &state, p.meta.Records})
	return Projected{Outcome: run.ProjectionWritten, Tail: p.tail(), Healed: p.healed, Edits: p.edits,
		Added: len(fresh), Pipeline: p.meta.State.Pipeline}, nil
}

// verifies reports whether the whole journal is compared with its chain before these lines are appended: at the end of
// a run, and after every pause, during which other processes could change its files. Otherwise a projection reads only
// new lines.
func verifies(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		switch journal.ParseAny(l).Kind {
		case run.KindRunEnd, run.KindRunResumed:
			return true
		}
		return false
	})
}

// compare returns the lines of the batch that are not on disk yet, or the reason why none may be written.
func (p *Projector) compare(b Batch, tail run.Tail) ([]string, run.Projection, error) {
	switch {
	case b.First > tail.Seq+1:
		return nil, run.ProjectionGap, nil
	case b.First == tail.Seq+1:
		if b.Prev != tail.Chain {
			return nil, run.ProjectionDiverged, nil
		}
		return b.Lines, run.ProjectionWritten, nil
	}
	all, err := journal.ReadStream(p.Dir, layout.EventsFile, 0)
	if err != nil {
		return nil, "", err
	}
	if int64(len(all.Lines)) < b.First-1 {
		return nil, run.ProjectionDiverged, nil // the file was replaced
	}
	before, onDisk := all.Lines[:b.First-1], all.Lines[b.First-1:]
	// the same journal with a damaged earlier line ends in the same chain
	if run.Chain("").Over(before) != b.Prev && b.Prev.Over(onDisk) != tail.Chain {
		return nil, run.ProjectionDiverged, nil
	}
	for i, line := range onDisk {
		if i == len(b.Lines) || b.Lines[i] != line {
			return nil, run.ProjectionDiverged, nil
		}
	}
	return b.Lines[len(onDisk):], run.ProjectionWritten, nil
}

// Append writes the lines in one write. An unterminated piece at the end is completed if it is the beginning of the
// next line; otherwise it is moved to a separate file.
func (p *Projector) Append(lines []string) error {
	if err := p.tidyTail(lines); err != nil {
		return err
	}
	if len(lines) == 0 {
		return nil
	}
	data := []byte(strings.Join(lines, "\n") + "\n")
	size, err := p.Dir.Inside().Append(p.Dir.Path(layout.EventsFile), p.size, data, layout.FilePerm)
	if err != nil {
		return fmt.Errorf("append events %d to %d: %w", p.last+1, p.last+int64(len(lines)), err)
	}
	p.size, p.torn = size, nil
	p.extend(lines)
	return nil
}

func (p *Projector) tidyTail(next []string) error {
	if len(p.torn) == 0 {
		return nil
	}
	if len(next) > 0 && bytes.HasPrefix([]byte(strings.Join(next, "\n")+"\n"), p.torn) {
		return nil
	}
	if err := p.Dir.Inside().Mkdir(p.Dir.Path(layout.TornDir), layout.DirPerm); err != nil {
		return err
	}
	name := fmt.Sprintf("%s/events-after-%d-%s.txt", layout.TornDir, p.last, disk.Digest(p.torn)[:8])
	p.torn = nil
	return p.Dir.Inside().CutTail(p.Dir.Path(layout.EventsFile), p.size, p.Dir.Path(name))
}
