package rundir

import (
	"context"
	"slices"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// End is the end of a final journal: one whose run is done. Nothing is appended after it, not even by a reset workflow
// or an earlier epoch.
type End struct {
	Tail  run.Tail
	State run.State
	Head  string // newest segment
}

// ReadEnd returns the end of the directory's journal if it is final, and nil if the journal may continue or does not
// exist. It reads without the lock, because an end never changes. If lines of events.jsonl are lost, the commit in
// meta.json counts.
func ReadEnd(d Dir) (*End, error) {
	meta, err := d.Meta()
	if err != nil && !disk.Missing(err) {
		return nil, err
	}
	now, err := d.Now()
	if err != nil {
		return nil, err
	}
	end := &End{Tail: now.Tail, State: now.State, Head: meta.SegmentHead}
	if meta.Status == string(run.Done) && now.Tail.Seq < meta.Events.Seq {
		end.Tail, end.State = run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain}, meta.State
	}
	if end.State.Status != run.Done {
		return nil, nil
	}
	if end.State.Reason != run.ReasonReviewApproved { // a run becomes done before it ends only for this reason
		return end, nil
	}
	all, err := ReadStream(d, EventsFile, 0)
	if err != nil || !HasEnded(all.Lines) {
		return nil, err
	}
	return end, nil
}

// CatchUp writes the derived files of a final journal whose last projection was ended before it wrote them.
func (d Dir) CatchUp(ctx context.Context, blobs Blobs) error {
	held, err := lock(ctx, d, "project")
	if err != nil {
		return err
	}
	defer held.Unlock()
	w, err := d.open(ctx, blobs)
	if err != nil {
		return err
	}
	return w.finish()
}

// finish leaves a directory alone that has lost its meta.json, or lines that meta.json counts: repair-state repairs
// those.
func (w *exporter) finish() error {
	if len(w.unseen) == 0 || w.fold.Tail.Seq == 0 {
		return nil
	}
	return w.export()
}

// Holds reports whether the given lines end this journal. Later lines may only be refusals of messages that arrived
// while the run ended.
func (e *End) Holds(first int64, prev run.Chain, lines []string) bool {
	n := e.Tail.Seq - first + 1
	if n < 0 || n > int64(len(lines)) || prev.Over(lines[:n]) != e.Tail.Chain {
		return false
	}
	return n > 0 || !slices.ContainsFunc(lines,
		func(l string) bool { return ParseAny(l).Kind != run.KindDecisionRefused })
}
