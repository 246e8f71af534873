package rundir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Source is what a lost directory is written again from.
type Source struct {
	Claim   run.Claim
	Store   string  // URL
	Head    string  // newest segment
	Batches []Batch // what the current history projected, oldest first
}

// OtherEventsError says that a directory holds other events than history. Nothing was written.
type OtherEventsError struct {
	Dir string
	Seq int64 // the first that differs
}

func (e *OtherEventsError) Error() string {
	return fmt.Sprintf("event %d of %s is not the one in history: nothing was written. If the line was damaged, restore it (starter repair-state %s --apply); otherwise rebuild into another directory (starter rebuild RUN-ID --output-dir OTHER) and compare the two", e.Seq, e.Dir, shell.Quote(e.Dir))
}

// HistoryGapError says that segments and history do not hold all events.
type HistoryGapError struct{ First, Last int64 }

func (e *HistoryGapError) Error() string {
	return fmt.Sprintf("history has no events %d to %d: they cannot be written again", e.First, e.Last)
}

// Lines gives the whole journal that a source holds.
func (s Source) Lines(ctx context.Context, blobs Blobs) ([]string, error) {
	lines, err := Segments(ctx, blobs, s.Head)
	if err != nil {
		return nil, err
	}
	for _, b := range s.Batches {
		have := int64(len(lines))
		switch {
		case b.First > have+1:
			return nil, &HistoryGapError{have + 1, b.First - 1}
		case b.First+int64(len(b.Lines))-1 <= have:
			continue
		}
		lines = append(lines, b.Lines[have-b.First+1:]...)
	}
	return lines, nil
}

// Rebuild writes what a directory lacks: the claim, the missing event lines, and everything that follows from them. A directory that is longer
// or that holds other lines is left alone: history repairs a shorter directory and never shortens a longer one. The result is where it ends.
func (d Dir) Rebuild(ctx context.Context, blobs Blobs, src Source) (run.Tail, error) {
	r, err := d.rebuild(ctx, blobs, src, (*projector).complete)
	return r.Tail, err
}

// Remake writes the derived files of a rebuilt directory again that are there and are not what the run wrote, each after a copy of it, as [Dir.Repair] does.
func (d Dir) Remake(ctx context.Context, blobs Blobs, readTree func([]byte) error) error {
	lock, err := d.lock(ctx, "rebuild")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	x, err := d.examine(ctx, CheckOptions{ReadTree: readTree}, true)
	if err != nil || !x.has(DerivedFileBehind, DerivedFileDamaged, LogRowUnreadable, EvidenceDamaged, CheckpointDamaged, SnapshotDamaged) {
		return err
	}
	_, err = x.repair(ctx, RepairOptions{Apply: true, Blobs: blobs, Now: time.Now(), By: "rebuild", ReadTree: readTree})
	return err
}

// Restored says where a directory ends that was written again, and what of its lines was damaged.
type Restored struct {
	Tail   run.Tail
	Damage []run.JournalDamage
}

// Restore is [Dir.Rebuild] for the run's own execution, which knows every line: a directory that is not longer, and holds other lines, is damaged. A copy of
// its events.jsonl is kept, and the file is written as it was.
func (d Dir) Restore(ctx context.Context, blobs Blobs, src Source) (Restored, error) {
	return d.rebuild(ctx, blobs, src, (*projector).fill)
}

func (d Dir) rebuild(ctx context.Context, blobs Blobs, src Source, fill func(*projector, []string) ([]run.JournalDamage, error)) (Restored, error) {
	lines, err := src.Lines(ctx, blobs)
	if err != nil {
		return Restored{}, err
	}
	if err := d.MayContinue(src.Claim.RunID); err != nil {
		return Restored{}, err
	}
	if err := d.take(src.Claim); err != nil {
		return Restored{}, err
	}
	lock, err := d.lock(ctx, "rebuild")
	if err != nil {
		return Restored{}, err
	}
	defer lock.Unlock()
	p, err := d.open(ctx, blobs)
	if err != nil {
		return Restored{}, err
	}
	damage, err := fill(p, lines)
	if err != nil {
		return Restored{}, err
	}
	if src.Head != "" {
		p.meta.SegmentHead = src.Head
	}
	return Restored{Tail: p.tail(), Damage: damage}, p.materialise()
}

// complete adds the lines that are missing at the end.
func (p *projector) complete(lines []string) ([]run.JournalDamage, error) {
	missing, err := p.lacks(lines)
	if err != nil {
		return nil, err
	}
	return nil, p.append(missing)
}

// fill does so too, and puts other lines right. A directory without any line was lost as a whole, which is no damage to a line.
func (p *projector) fill(lines []string) ([]run.JournalDamage, error) {
	all, err := p.dir.readStream(0)
	if err != nil {
		return nil, err
	}
	var other *OtherEventsError
	damage := func(kept string) []run.JournalDamage {
		found := lineDamage(all.lines, lines, run.Tail{})
		for i := range found {
			found[i].Repaired, found[i].Kept = true, kept
		}
		return found
	}
	switch _, err := p.lacks(lines); {
	case errors.As(err, &other) && len(all.lines) <= len(lines):
		kept, err := p.replaceLines(lines)
		return damage(kept), err
	case err != nil:
		return nil, err
	case len(all.lines) == 0 || len(all.lines) >= len(lines):
		return p.complete(lines)
	}
	found := damage("")
	_, err = p.complete(lines)
	return found, err
}

// lacks gives the lines that are not on disk; what is there must be their beginning.
func (p *projector) lacks(lines []string) ([]string, error) {
	all, err := p.dir.readStream(0)
	if err != nil {
		return nil, err
	}
	for i, line := range all.lines {
		if i == len(lines) {
			return nil, nil
		}
		if lines[i] != line {
			return nil, &OtherEventsError{Dir: p.dir.Root, Seq: int64(i + 1)}
		}
	}
	return lines[len(all.lines):], nil
}
