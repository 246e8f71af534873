package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// Refused signals are journaled one by one up to maxRefusedEvents, so that senders cannot fill a journal. Later
// ones are counted, and journaled per refusedPerEvent, when the run continues, and before continue-as-new.
const (
	maxRefusedEvents = 100
	refusedPerEvent  = 1000
)

// journalRefused journals or counts a refused signal.
func (c *control) journalRefused(ctx workflow.Context, ev run.DecisionRefused) error {
	r := &c.refusals
	if r.Journaled < maxRefusedEvents {
		r.Journaled++
		return c.record(ctx, run.KindDecisionRefused, ev)
	}
	r.Counted, r.Last = r.Counted+1, ev
	if r.Counted < refusedPerEvent {
		return nil
	}
	return c.journalRefusedCount(ctx)
}

// journalRefusedCount journals the number of refused signals since the last event.
func (c *control) journalRefusedCount(ctx workflow.Context) error {
	r := &c.refusals
	if r.Counted == 0 || c.e.j.state.Status.Closed() {
		return nil
	}
	ev := r.Last
	ev.Count = r.Counted
	r.Counted, r.Last = 0, run.DecisionRefused{}
	return c.record(ctx, run.KindDecisionRefused, ev)
}
