package rundir

import (
	"context"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// readWhole looks for the lines of a damaged events.jsonl as they were written: in the segments of the store, and for what no segment holds in the file.
// They count only if they give the chain that meta.json names.
func (x *examined) readWhole(ctx context.Context, blobs Blobs) error {
	if err := x.findLost(ctx, blobs); err != nil {
		return err
	}
	if !x.own || blobs == nil || !x.meta.good() || !x.has(ChainMismatch, StreamLineUnreadable, StreamSeqGap, StreamSeqDuplicate) {
		return nil
	}
	stored, err := Segments(ctx, blobs, x.meta.typed.SegmentHead)
	if err != nil && !unreadable(err) {
		return err
	}
	disk, err := x.dir.readStream(0)
	if err != nil {
		return err
	}
	tail := run.Tail{Seq: x.meta.typed.Events.Seq, Chain: x.meta.typed.Events.Chain}
	p := &projector{ctx: ctx, dir: x.dir, blobs: blobs}
	whole, err := p.intact(tail, disk.lines, stored, nil)
	if err != nil || whole == nil {
		return err
	}
	x.whole = slices.Concat(whole, numberedBehind(disk.lines, tail.Seq))
	x.broken = lineDamage(disk.lines, x.whole, tail)
	return nil
}

// planLines writes events.jsonl as it was, and makes what follows from it again.
func (x *examined) planLines(p *repairPlan) {
	p.lines = true
	for _, d := range x.broken {
		p.changes = append(p.changes, Change{Field: EventsFile, Before: quote(d.String()), After: quote("as the store has it"), Code: ChainMismatch})
	}
}

func (x *examined) writeLines(ctx context.Context, blobs Blobs) error {
	data := []byte(strings.Join(x.whole, "\n") + "\n")
	if err := x.dir.Disk.WriteFile(x.dir.Path(EventsFile), data, filePerm); err != nil {
		return err
	}
	return x.again(ctx, blobs, true)
}
