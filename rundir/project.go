package rundir

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Outcomes of a projection. They are results, not errors: the workflow decides on them.
const (
	Written  = "written"  // the lines are on disk, and everything derived from them
	Gap      = "gap"      // the directory ends before the lines begin; nothing written
	Diverged = "diverged" // the directory holds other lines there; nothing written, nothing cut
	Stale    = "stale"    // a later epoch owns the directory; nothing written
	Damaged  = "damaged"  // lines on disk, or segments, are not what was written; nothing written
	Final    = "final"    // the directory's run is done, and these lines are not how it came to that; nothing written
)

// Batch is a piece of the journal: event lines from First on, and the chain before them.
type Batch struct {
	Epoch int       `json:"epoch"`
	First int64     `json:"first"`
	Prev  run.Chain `json:"prev"`
	Lines []string  `json:"lines"`
	Head  string    `json:"head,omitempty"` // newest segment

	Verified bool  `json:"-"` // damage to what was written earlier is known: nobody looks for it
	Truth    Truth `json:"-"` // nil: only the segments are asked what was written
}

// Projected says where the directory's journal ends now.
type Projected struct {
	Outcome string   `json:"outcome"`
	Tail    run.Tail `json:"tail"`
	Healed  []string `json:"healed,omitempty"` // what was found damaged and made again

	Damage []run.JournalDamage `json:"damage,omitempty"` // of the journal itself: the outcome is Damaged
	End    *End                `json:"end,omitempty"`    // of a final journal: the outcome is Final
}

// Blobs is what the projector needs of a store.
type Blobs interface {
	Trees
	Get(ctx context.Context, digest string) ([]byte, error)
	Put(ctx context.Context, data []byte) (string, error)
	// Name puts data under a name, once. What is there already stays.
	Name(ctx context.Context, name string, data []byte) error
}

// Project appends a batch to the directory and brings everything derived up to date, under the directory's lock. On return with Written the
// lines are fsynced, and so are the files that follow from them. Lines that are there already are skipped if they are byte-equal.
func (d Dir) Project(ctx context.Context, blobs Blobs, b Batch) (Projected, error) {
	if err := d.makeRoot(); err != nil {
		return Projected{}, err
	}
	lock, err := d.lock(ctx, "project")
	if err != nil {
		return Projected{}, err
	}
	defer lock.Unlock()
	p, err := d.open(ctx, blobs)
	if err != nil {
		return Projected{}, err
	}
	return p.project(b)
}

// makeRoot makes the folder of the directory. If there is a meta.json, it is on disk already: whoever committed that had made it.
func (d Dir) makeRoot() error {
	if _, err := os.Stat(d.Path(MetaFile)); err == nil {
		return nil
	}
	return d.Disk.Mkdir(d.Root, dirPerm)
}

func (p *projector) project(b Batch) (Projected, error) {
	tail := p.tail()
	if b.First < 1 {
		return Projected{}, fmt.Errorf("project events from %d on: the first event of a run is 1", b.First)
	}
	end, err := p.end()
	if err != nil {
		return Projected{}, err
	}
	if end != nil && !end.Holds(b.First, b.Prev, b.Lines) {
		return Projected{Outcome: Final, Tail: end.Tail, End: end}, nil
	}
	owner, err := p.dir.owner()
	if err != nil {
		return Projected{}, err
	}
	if b.Epoch < max(p.state().Epoch, owner.Epoch) {
		return Projected{Outcome: Stale, Tail: tail}, nil
	}
	fresh, outcome, err := p.compare(b, tail)
	if err != nil || outcome != Written {
		return Projected{Outcome: outcome, Tail: tail}, err
	}
	if !b.Verified && b.First == tail.Seq+1 && verifies(b.Lines) {
		found, err := p.verify(b.Head, b.Truth)
		if err != nil || len(found) > 0 {
			return Projected{Outcome: Damaged, Tail: tail, Damage: found}, err
		}
	}
	if err := p.append(fresh); err != nil {
		return Projected{}, err
	}
	if b.Head != "" {
		p.meta.SegmentHead = b.Head
	}
	if err := p.materialise(); err != nil {
		return Projected{}, err
	}
	return Projected{Outcome: Written, Tail: p.tail(), Healed: p.healed}, nil
}

// verifies says that the whole journal is compared with what was written before these lines follow: at the end of a run, and after every rest, when its
// files lay there for anybody. Between them a projection reads only what it has not seen.
func verifies(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool {
		switch lenient(l).Kind {
		case run.KindRunEnd, run.KindRunResumed:
			return true
		}
		return false
	})
}

// compare says which lines of the batch are not on disk yet, or why none may be written.
func (p *projector) compare(b Batch, tail run.Tail) ([]string, string, error) {
	switch {
	case b.First > tail.Seq+1:
		return nil, Gap, nil
	case b.First == tail.Seq+1:
		if b.Prev != tail.Chain {
			return nil, Diverged, nil
		}
		return b.Lines, Written, nil
	}
	all, err := p.dir.readStream(0)
	if err != nil {
		return nil, "", err
	}
	if int64(len(all.lines)) < b.First-1 {
		return nil, Diverged, nil // the file was exchanged under meta.json
	}
	before, onDisk := all.lines[:b.First-1], all.lines[b.First-1:]
	if run.Chain("").Over(before) != b.Prev && b.Prev.Over(onDisk) != tail.Chain { // the same journal, with an earlier line damaged, ends in the same chain
		return nil, Diverged, nil
	}
	for i, line := range onDisk {
		if i == len(b.Lines) || b.Lines[i] != line {
			return nil, Diverged, nil
		}
	}
	return b.Lines[len(onDisk):], Written, nil
}

// append writes the lines in one write. An unterminated piece at the end is completed if it begins the next line; else it is moved aside.
func (p *projector) append(lines []string) error {
	if err := p.tidyTail(lines); err != nil {
		return err
	}
	if len(lines) == 0 {
		return nil
	}
	data := []byte(strings.Join(lines, "\n") + "\n")
	size, err := p.dir.Disk.Append(p.dir.Path(EventsFile), p.size, data, filePerm)
	if err != nil {
		return fmt.Errorf("append events %d to %d: %w", p.last+1, p.last+int64(len(lines)), err)
	}
	p.size, p.torn = size, nil
	p.extend(lines)
	return nil
}

func (p *projector) tidyTail(next []string) error {
	if len(p.torn) == 0 {
		return nil
	}
	if len(next) > 0 && bytes.HasPrefix([]byte(strings.Join(next, "\n")+"\n"), p.torn) {
		return nil
	}
	if err := p.dir.Disk.Mkdir(p.dir.Path(tornDir), dirPerm); err != nil {
		return err
	}
	name := fmt.Sprintf("%s/events-after-%d-%s.txt", tornDir, p.last, digest(p.torn)[:8])
	p.torn = nil
	return p.dir.Disk.CutTail(p.dir.Path(EventsFile), p.size, p.dir.Path(name))
}
