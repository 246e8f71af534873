package rundir

import (
	"context"
	"fmt"

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
	return fmt.Sprintf("event %d of %s is not the one in history: nothing was written. Rebuild into another directory (starter rebuild RUN-ID --output-dir OTHER) and compare the two", e.Seq, e.Dir)
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
			return nil, fmt.Errorf("history has no events %d to %d: they cannot be written again", have+1, b.First-1)
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
	lines, err := src.Lines(ctx, blobs)
	if err != nil {
		return run.Tail{}, err
	}
	if err := d.MayContinue(src.Claim.RunID); err != nil {
		return run.Tail{}, err
	}
	if err := d.take(src.Claim); err != nil {
		return run.Tail{}, err
	}
	lock, err := d.lock(ctx, "rebuild")
	if err != nil {
		return run.Tail{}, err
	}
	defer lock.Unlock()
	p, err := d.open(ctx, blobs)
	if err != nil {
		return run.Tail{}, err
	}
	missing, err := p.lacks(lines)
	if err != nil {
		return run.Tail{}, err
	}
	if err := p.append(missing); err != nil {
		return run.Tail{}, err
	}
	if src.Head != "" {
		p.meta.SegmentHead = src.Head
	}
	return p.tail(), p.materialise()
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
