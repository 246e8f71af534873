package projector

import (
	"context"
	"slices"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// End is the end of a final journal: one whose run is done. Nothing is appended after it, not even by a reset workflow
// or an earlier epoch.
type End struct {
	Tail  run.Tail
	State run.State
	Head  string // newest segment
}

// ReadEnd returns the end of the directory's journal if it is final, and nil if the journal may continue or does not
// exist. It reads without the lock, because an end never changes.
func ReadEnd(ctx context.Context, d rundir.Dir, blobs Blobs) (*End, error) {
	p, err := Dir{Dir: d}.Open(ctx, blobs)
	if err != nil {
		return nil, err
	}
	return p.end()
}

// CatchUp writes the derived files of a final journal whose last projection was ended before it wrote them.
func (d Dir) CatchUp(ctx context.Context, blobs Blobs) error {
	held, err := lock(ctx, d.Dir, "project")
	if err != nil {
		return err
	}
	defer held.Unlock()
	p, err := d.Open(ctx, blobs)
	if err != nil {
		return err
	}
	return p.catchUp()
}

// catchUp leaves a directory alone that has lost its meta.json, or lines that meta.json counts: repair-state repairs
// those. [Dir.Open] reads both as if no event were committed.
func (p *Projector) catchUp() error {
	if len(p.unseen) == 0 || p.meta.Events.Seq == 0 {
		return nil
	}
	return p.Materialise()
}

// Holds reports whether the given lines end this journal. Later lines may only be refusals of messages that arrived
// while the run ended.
func (e *End) Holds(first int64, prev run.Chain, lines []string) bool {
	n := e.Tail.Seq - first + 1
	if n < 0 || n > int64(len(lines)) || prev.Over(lines[:n]) != e.Tail.Chain {
		return false
	}
	return n > 0 || !slices.ContainsFunc(lines,
		func(l string) bool { return journal.ParseAny(l).Kind != run.KindDecisionRefused })
}

// end returns the end of a final journal, or nil if it is not final. If lines of events.jsonl are lost, the commit in
// meta.json counts.
func (p *Projector) end() (*End, error) {
	e := &End{Tail: p.tail(), State: p.state(), Head: p.meta.SegmentHead}
	if was := p.beyond; was != nil && was.State.Status == run.Done {
		e = &End{Tail: run.Tail{Seq: was.Events.Seq, Chain: was.Events.Chain}, State: was.State, Head: was.SegmentHead}
	}
	if e.State.Status != run.Done {
		return nil, nil
	}
	if e.State.Reason != run.ReasonReviewApproved { // a run becomes done before it ends only for this reason
		return e, nil
	}
	all, err := journal.ReadStream(p.Dir, layout.EventsFile, 0)
	if err != nil || !journal.HasEnded(all.Lines) {
		return nil, err
	}
	return e, nil
}
