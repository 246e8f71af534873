package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// errHandOver ends a wait because this execution has enough history: the next one goes on waiting. Whoever sends messages for months to a run that
// rests never meets the server's limits of one execution.
var errHandOver = errors.New("the next execution goes on waiting")

// crowded says that an execution that only waits has enough history.
func (e *engine) crowded(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// handOver leaves the wait for an answer to the next execution.
func (e *engine) handOver(q run.Question, spoken time.Time) error {
	w := Waiting{ID: q.ID, At: e.j.state.Next, Permit: e.permit}
	if e.waits != nil {
		w = *e.waits
	}
	w.Spoken = run.Time(spoken)
	e.waits = &w
	return errHandOver
}

// lastSpoken is when a question was asked, or last spoken of, as far as an earlier execution did that.
func (e *engine) lastSpoken(ctx workflow.Context) time.Time {
	if w := e.waits; w != nil {
		if t, err := time.Parse(run.TimeFormat, w.Spoken); err == nil {
			return t
		}
	}
	return workflow.Now(ctx)
}

// takeUpWait finds where an answer leads that an earlier execution has waited for.
func (e *engine) takeUpWait(ctx workflow.Context) error {
	if e.waits == nil {
		return nil
	}
	return e.findLead(ctx)
}

// waitOn waits on for the answer to a question that an earlier execution has asked, and does what follows from it.
func (e *engine) waitOn(ctx workflow.Context) error {
	if e.waits == nil {
		return nil
	}
	if err := e.awaitAnswer(ctx); err != nil {
		return err
	}
	w := *e.waits
	e.waits = nil
	d := e.j.state.Decided
	if d == nil || d.ID != w.ID || !e.live() {
		return nil
	}
	if w.Permit != "" {
		e.allow(w.Permit, d.Action)
		return nil
	}
	goesBack := d.Action == run.ActionRetryFeedback || d.Action == run.ActionFix
	if goesBack || e.j.state.Next == w.At || w.At.Stage >= len(e.in.Start.Stages) {
		return nil
	}
	if err := e.read(ctx, w.At); err != nil {
		return err
	}
	return e.endOfRound(ctx, w.At)
}
