package fsck

import (
	"context"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// readWhole restores the lines of a damaged events.jsonl from the segments of the store, and from the file itself after
// the last segment. They count only if they match the chain in meta.json.
func (x *examined) readWhole(ctx context.Context, blobs projector.Blobs) error {
	if err := x.findLost(ctx, blobs); err != nil {
		return err
	}
	if blobs == nil || !x.meta.good() || !x.has(streamDamage()...) {
		return nil
	}
	stored, err := journal.Segments(ctx, blobs, x.meta.typed.SegmentHead)
	if err != nil && !journal.Unreadable(err) {
		return err
	}
	disk, err := journal.ReadStream(x.dir, layout.EventsFile, 0)
	if err != nil {
		return err
	}
	tail := run.Tail{Seq: x.meta.typed.Events.Seq, Chain: x.meta.typed.Events.Chain}
	p := &projector.Projector{Ctx: ctx, Dir: x.dir, Blobs: blobs}
	whole, err := p.Intact(tail, disk.Lines, stored, nil)
	if err != nil || whole == nil {
		return err
	}
	behind := disk.Lines
	if begins(behind, whole) { // whatever numbers these lines have, none of them comes behind them
		behind = behind[len(whole):]
	}
	x.whole = slices.Concat(whole, journal.NumberedBehind(behind, tail.Seq))
	x.broken = journal.LineDamage(disk.Lines, x.whole, tail)
	return nil
}

// planLines restores events.jsonl and rebuilds everything derived from it.
func (x *examined) planLines(p *repairPlan) {
	p.lines = true
	for _, d := range x.broken {
		p.changes = append(p.changes, Change{Field: layout.EventsFile, Before: object.Quote(d.String()),
			After: object.Quote("as the store has it"), Code: ChainMismatch})
	}
}

func (x *examined) writeLines(ctx context.Context, blobs projector.Blobs) error {
	data := []byte(strings.Join(x.whole, "\n") + "\n")
	if err := x.dir.Inside().WriteFile(x.dir.Path(layout.EventsFile), data, layout.FilePerm); err != nil {
		return err
	}
	return x.again(ctx, blobs, true)
}
