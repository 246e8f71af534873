package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// Refused signals are journaled one by one up to mostRefused, so that nobody fills a journal from outside. What follows is counted, and journaled by
// the thousand, when the run goes on, and before continue-as-new.
const (
	mostRefused = 100
	refusedOnce = 1000
)

// Refusals are the refused signals of a run.
type Refusals struct {
	Noted   int                 `json:"noted,omitempty"`   // with an event each
	Counted int                 `json:"counted,omitempty"` // since the last event
	Last    run.DecisionRefused `json:"last,omitzero"`     // of those
}

// noteRefused writes a refused signal down, or counts it.
func (c *control) noteRefused(ctx workflow.Context, ev run.DecisionRefused) error {
	r := &c.refusals
	if r.Noted < mostRefused {
		r.Noted++
		return c.note(ctx, run.KindDecisionRefused, ev)
	}
	r.Counted, r.Last = r.Counted+1, ev
	if r.Counted < refusedOnce {
		return nil
	}
	return c.noteCounted(ctx)
}

// noteCounted writes down how many signals were refused since the last event.
func (c *control) noteCounted(ctx workflow.Context) error {
	r := &c.refusals
	if r.Counted == 0 || c.e.j.state.Status.Closed() {
		return nil
	}
	ev := r.Last
	ev.Count = r.Counted
	r.Counted, r.Last = 0, run.DecisionRefused{}
	return c.note(ctx, run.KindDecisionRefused, ev)
}
