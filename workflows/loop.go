package workflows

import (
	"cmp"
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// loop works through the stages of a run.
type loop struct {
	*execution
	handlers   *handlers
	lanes      *lanes
	projects   *projects
	deliveries *deliveries
	reverts    *reverts
	forge      *forge
}

// newLoop registers all handlers before the workflow yields for the first time.
func newLoop(ctx workflow.Context, in contract.Input, hide func(string) string) (*loop, error) {
	lp := loopOf(newExecution(in, hide))
	lp.journal.mu = workflow.NewMutex(ctx)
	if s := in.Snapshot; s != nil {
		lp.journal.load(s)
		lp.inbox.load(s)
		lp.questions.load(s)
		lp.replay.load(s)
	}
	if err := lp.registerQueries(ctx); err != nil {
		return nil, err
	}
	if err := lp.handlers.register(ctx); err != nil {
		return nil, err
	}
	lp.journal.startFlusher(ctx)
	lp.forge.start(ctx)
	return lp, nil
}

func loopOf(x *execution) *loop {
	lp := &loop{execution: x, lanes: &lanes{execution: x}, projects: &projects{execution: x}, deliveries: &deliveries{execution: x},
		handlers: &handlers{inbox: x.inbox}}
	lp.reverts, lp.forge = &reverts{execution: x, lanes: lp.lanes}, &forge{execution: x, handlers: lp.handlers}
	x.resumed = func(ctx workflow.Context) error { return lp.pauseIfRequested(ctx, false) }
	return lp
}

// run opens the directory; until the plan is complete, it pauses if requested and runs the next step; then it closes the
// journal. What comes next depends on the run's place only, so an execution can begin anywhere.
func (lp *loop) run(ctx workflow.Context) (contract.Result, error) {
	reopen := lp.in.Reopen
	if err := lp.openDirectory(ctx); err != nil {
		return contract.Result{}, err
	}
	switch {
	case reopen != nil && reopen.Cancel:
		return lp.closeCancelled(ctx)
	case reopen != nil && reopen.From == run.Done: // its workflow was ended after the review that approved it
		return lp.close(ctx, run.RunEnd{Status: run.Done, Reason: lp.state().Reason})
	}
	for {
		end, err := lp.next(ctx)
		if failed := lp.journal.failed(); failed != nil { // whatever else it led to
			err = failed
		}
		switch {
		case lp.journal.isNewer() || isType(err, contract.ErrNewer):
			return contract.Result{}, errNewer
		case temporal.IsCanceledError(err) || ctx.Err() != nil:
			return lp.closeCancelled(ctx)
		case errors.Is(err, errContinueAsNew):
			return lp.handOver(ctx)
		case errors.Is(err, errBeginAgain):
			continue
		case err != nil:
			return lp.closeFailed(ctx, err)
		case end != nil:
			r, err := lp.close(ctx, *end)
			if err == nil && end.Status == run.Cancelled {
				err = temporal.NewCanceledError(end.Reason)
			}
			return r, err
		case lp.host.historyFull(ctx):
			return lp.handOver(ctx)
		}
	}
}

// next waits if there is a reason to, or runs one step. end: the run is to end this way.
func (lp *loop) next(ctx workflow.Context) (end *run.RunEnd, err error) {
	if err := cmp.Or(lp.journal.failed(), lp.inbox.failed()); err != nil {
		return nil, err
	}
	if err := lp.pauseIfRequested(ctx, true); err != nil {
		return nil, err
	}
	if err := lp.waitForLimit(ctx); err != nil || lp.state().Status == run.WaitingLimit {
		return nil, err
	}
	if err := lp.inbox.journalRefusedCount(ctx); err != nil {
		return nil, err
	}
	if err := lp.questions.resume(ctx); err != nil {
		return nil, err
	}
	if reason := lp.state().Review; reason != "" && lp.active() {
		lp.pause(ctx, run.UserReview, reason, "")
		return nil, nil
	}
	if waits, err := lp.projects.next(ctx); waits || err != nil {
		return nil, err
	}
	at := lp.state().Next
	if at.Stage >= len(lp.in.Start.Stages) || lp.endedByAnswer() {
		return lp.finish(ctx)
	}
	lp.round.repeatAmendments(ctx, at)
	if err := lp.round.read(ctx, at); err != nil {
		return nil, err
	}
	return lp.nextStep(ctx, at)
}

// nextStep runs the step at a place, unless something comes before it.
func (lp *loop) nextStep(ctx workflow.Context, at run.Place) (end *run.RunEnd, err error) {
	if skipped, err := lp.conditions(ctx, at); skipped || err != nil {
		return nil, err
	}
	check, due := lp.round.checkDue(at)
	if lp.round.Stage == pipeline.FreshStage && !due {
		return lp.finish(ctx)
	}
	lp.enterPhase(ctx, at)
	if lp.round.Kind == pipeline.StageLanes && lp.in.Start.Lane == nil {
		done, err := lp.lanes.run(ctx, at)
		if done && err == nil {
			err = lp.leavePhase(ctx, at)
		}
		return nil, err
	}
	switch {
	case due && check != at:
		lp.skipTo(ctx, at, check)
		return nil, nil
	case due:
	case at.Step >= len(lp.round.Steps) || lp.round.conditionMet():
		return nil, lp.leavePhase(ctx, at)
	case lp.round.onlyJudges(at):
		lp.skipChange(ctx, at)
		return nil, nil
	}
	if s, _ := lp.round.At(at.Step); s.When != "" {
		if ok, err := lp.round.evaluate(ctx, at, pipeline.ConditionWhen, s.Key, s.When); !ok || err != nil {
			return nil, err
		}
		if !lp.round.holds(pipeline.ConditionWhen, s.Key, s.When) {
			lp.skipUnmet(ctx, at, s)
			return nil, nil
		}
	}
	if lp.budgetSpent(ctx) { // checked only where a call would follow: a finished run does not pause for its budget
		lp.pauseOverBudget(ctx, nil)
		return nil, nil
	}
	lp.host.stepDone()
	lp.show(ctx)
	s, _ := lp.round.At(at.Step)
	return nil, (&step{execution: lp.execution, at: at, Step: s}).run(ctx)
}

// conditions evaluates the condition of a stage before its first step, and that of a loop as soon as its round has what it
// needs. done: nothing is left to do at this place.
func (lp *loop) conditions(ctx workflow.Context, at run.Place) (done bool, err error) {
	s, rd := lp.state(), lp.round
	open := s.PhaseOpen && s.Phase == rd.Stage
	switch {
	case rd.When != "" && !open && at.Round == 1 && at.Step == 0 && lp.in.Start.Lane == nil:
		ok, err := rd.evaluate(ctx, at, pipeline.ConditionWhen, "", rd.When)
		if !ok || err != nil {
			return true, err
		}
		if !rd.holds(pipeline.ConditionWhen, "", rd.When) {
			lp.skipStage(ctx, at)
			return true, nil
		}
	case rd.repeats() && open && rd.hasUntil(at):
		ok, err := rd.evaluate(ctx, at, pipeline.ConditionUntil, "", rd.Repeat.Until)
		return !ok, err
	}
	return false, nil
}

// endedByAnswer reports whether the answer to a question has ended the run.
func (lp *loop) endedByAnswer() bool {
	s := lp.state()
	return s.Status.Settled() || len(s.Projects) > 0 && s.Status.Closed()
}
