package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// errContinueAsNew ends a wait because this execution has enough history: the next one continues it. This keeps a
// paused run within the server's limits, however many messages it gets.
var errContinueAsNew = errors.New("the next execution continues the wait")

// continueSuggested reports whether a waiting execution has enough history.
func (e *engine) continueSuggested(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// handOverWait leaves the wait for an answer to the next execution.
func (e *engine) handOverWait(q run.Question, spoken time.Time) error {
	w := contract.PendingWait{ID: q.ID, At: e.j.state.Next, Permit: e.permit}
	if e.pending != nil {
		w = *e.pending
	}
	w.LastReminded = run.Time(spoken)
	e.pending = &w
	return errContinueAsNew
}

// lastReminded returns when a question was asked or last reminded of by an earlier execution, or now.
func (e *engine) lastReminded(ctx workflow.Context) time.Time {
	if w := e.pending; w != nil {
		if t, err := time.Parse(run.TimeFormat, w.LastReminded); err == nil {
			return t
		}
	}
	return workflow.Now(ctx)
}

// restoreWait restores the routes of a question that an earlier execution asked.
func (e *engine) restoreWait(ctx workflow.Context) error {
	if e.pending == nil {
		return nil
	}
	return e.restoreRoutes(ctx)
}

// resumeWait continues the wait for a question that an earlier execution asked, and acts on the answer.
func (e *engine) resumeWait(ctx workflow.Context) error {
	if e.pending == nil {
		return nil
	}
	if err := e.awaitAnswer(ctx); err != nil {
		return err
	}
	w := *e.pending
	e.pending = nil
	d := e.j.state.Decided
	if d == nil || d.ID != w.ID || !e.active() {
		return nil
	}
	if w.Permit != "" {
		e.grant(w.Permit, d.Action)
		return nil
	}
	answer, _ := d.Kind.Spec().Answer(d.Action)
	if answer.Effect.Has(run.RepeatsSubject) || e.j.state.Next == w.At || w.At.Stage >= len(e.in.Start.Stages) {
		return nil
	}
	if err := e.readRound(ctx, w.At); err != nil {
		return err
	}
	return e.endRound(ctx, w.At)
}
