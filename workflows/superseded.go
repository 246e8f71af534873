package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// journalSuperseded journals the cost of superseded results and of deliveries that ended without a result, including
// those of earlier calls.
func (p *pass) journalSuperseded(ctx workflow.Context, notes []contract.SupersededResult) error {
	for _, l := range notes {
		if l.Number <= p.e.j.state.Late {
			continue // another member of the group has journaled it
		}
		text := "call " + l.Call + " returned another result later; its cost is counted"
		if l.Ended > 0 {
			text = fmt.Sprintf("delivery %d of call %s ended without an answer; its cost is %s", l.Ended, l.Call,
				run.ShortCost(l.Spend.USD, l.Spend.UnknownCalls()))
		}
		ev := p.attemptEvent(run.CategorySuperseded, text)
		ev.Call, ev.Spend, ev.Late = l.Call, &l.Spend, l.Number
		ev.Prompt, ev.Output, ev.Envelope = l.Prompt, l.Output, l.Envelope
		if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, ev); err != nil {
			return err
		}
	}
	return nil
}

// costOf returns the cost of a call without an answer, from the details of its error, and the notes that the run may
// not have accounted for. spend is nil if no agent was started, or the notes contain its cost.
func costOf(err error) (spend *run.Spend, notes []contract.SupersededResult) {
	var found run.Spend
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	read := func(has bool, details func(...any) error) {
		if has && details(&found, &notes) != nil { // an earlier release sends only the cost
			notes = nil
			if details(&found) != nil {
				found = run.Spend{}
			}
		}
	}
	switch {
	case errors.As(err, &app) && app.Type() != contract.ErrUnstored:
		read(app.HasDetails(), app.Details)
	case errors.As(err, &cancelled):
		read(cancelled.HasDetails(), cancelled.Details)
	}
	if !counts(found) {
		return nil, notes
	}
	return &found, notes
}
