package rundir

import (
	"context"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// End is where a final journal ends: one whose run is done. Nothing is written behind it, whoever asks: a workflow that was reset, or an earlier epoch.
type End struct {
	Tail  run.Tail
	State run.State
	Head  string // newest segment
}

// End gives the end of the directory's journal if that is final; nil: it may go on, or there is none. It only reads, without the lock: an end never
// changes.
func (d Dir) End(ctx context.Context, blobs Blobs) (*End, error) {
	p, err := d.open(ctx, blobs)
	if err != nil {
		return nil, err
	}
	return p.end()
}

// Holds says that lines reach the end on their own: they are the last ones of this very journal. Behind it they only name messages that the run refused
// while it ended.
func (e *End) Holds(first int64, prev run.Chain, lines []string) bool {
	n := e.Tail.Seq - first + 1
	if n < 0 || n > int64(len(lines)) || prev.Over(lines[:n]) != e.Tail.Chain {
		return false
	}
	return n > 0 || !slices.ContainsFunc(lines, func(l string) bool { return lenient(l).Kind != run.KindDecisionRefused })
}

// end is the end of a final journal; nil: it is not final. What meta.json has committed counts where lines of events.jsonl are lost.
func (p *projector) end() (*End, error) {
	e := &End{Tail: p.tail(), State: p.state(), Head: p.meta.SegmentHead}
	if was := p.beyond; was != nil && was.State.Status == run.Done {
		e = &End{Tail: run.Tail{Seq: was.Events.Seq, Chain: was.Events.Chain}, State: was.State, Head: was.SegmentHead}
	}
	if e.State.Status != run.Done {
		return nil, nil
	}
	if e.State.Reason != run.ReasonReviewApproved { // that makes a run done before it ends
		return e, nil
	}
	all, err := p.dir.readStream(0)
	if err != nil || !hasEnded(all.lines) {
		return nil, err
	}
	return e, nil
}

// hasEnded says that the last start of a run has ended.
func hasEnded(lines []string) bool {
	for _, line := range slices.Backward(lines) {
		switch lenient(line).Kind {
		case run.KindRunEnd:
			return true
		case run.KindRunStart, run.KindRunResumed, run.KindRunReverted:
			return false
		}
	}
	return false
}
