package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// engine works through the stages of a run.
type engine struct {
	*execution
	j        *journal
	round    contract.Round // last one read from the plan
	readAt   run.Place
	readFrom string  // the plan that it was read from
	inStep   bool    // prompts of a step are composed, and it has not settled
	passes   []*pass // of that step
	routes   routes  // of the open question
}

// execution is what an execution knows besides its journal.
type execution struct {
	in            contract.Input
	children      map[string]*child   // by run id
	reminded      string              // time of the last reminder of the question about a lane
	applied       string              // id of the last decision about a lane that was acted on
	items         []contract.LaneItem // the last part of the list that was read
	itemsFrom     int
	itemsOf       string // digest of that list
	control       *control
	calls         []runningCall
	open          bool                  // this execution owns the directory: messages may be handled
	noWorker      bool                  // no worker has opened the directory for some time
	pending       *contract.PendingWait // question that an earlier execution asked
	redact        func(string) string   // only in side effects: workers may know different secrets
	diskFullTries int                   // consecutive attempts that found the disk full
	held          contract.HeldAnswer   // cause of the current wait
	tryNow        bool                  // an operator asks for a call, whatever limits it waits for
	steps         int                   // done by this execution
	revertedTo    int64                 // seq of the last revert's target
	activityIDs   map[string]int        // uses of each activity id
	permits       map[string]string     // permissions of a replay's calls, by key
	unrecorded    map[string]bool       // external actions of a replay without a recorded result, by the same key
	permit        string                // key that the open question is about
	notices       notices
	stop          workflow.CancelFunc // cancels everything; not called at the normal end of an execution
}

// runPlan runs a plan to its end: it opens the directory; until the plan is complete, it pauses if requested and
// runs the next step; then it closes the journal. What comes next depends on the run's place only, so an execution
// can begin anywhere.
func runPlan(ctx workflow.Context, in contract.Input, hide func(string) string) (contract.Result, error) {
	info := workflow.GetInfo(ctx)
	if err := checkInput(in, info.WorkflowExecution.ID, info.ContinuedExecutionRunID != ""); err != nil {
		return contract.Result{}, err
	}
	e, err := newEngine(ctx, in, hide)
	if err != nil {
		return contract.Result{}, err
	}
	all, stop := workflow.WithCancel(ctx)
	e.stop = stop
	r, err := e.run(all)
	if e.j.newer || isType(err, contract.ErrNewer) {
		return e.nextEpoch(ctx)
	}
	return r, err
}

// run does the steps of [runPlan].
func (e *engine) run(ctx workflow.Context) (contract.Result, error) {
	reopen := e.in.Reopen
	if err := e.openDirectory(ctx); err != nil {
		return contract.Result{}, err
	}
	switch {
	case reopen != nil && reopen.Cancel:
		return e.closeCancelled(ctx)
	case reopen != nil && reopen.From == run.Done: // its workflow was ended after the review that approved it
		return e.close(ctx, run.RunEnd{Status: run.Done, Reason: e.j.state.Reason})
	}
	for {
		end, err := e.next(ctx)
		switch {
		case e.j.newer || isType(err, contract.ErrNewer):
			return contract.Result{}, errNewer
		case temporal.IsCanceledError(err) || ctx.Err() != nil:
			return e.closeCancelled(ctx)
		case errors.Is(err, errContinueAsNew):
			return e.handOver(ctx)
		case errors.Is(err, errBeginAgain):
			continue
		case err != nil:
			return e.closeFailed(ctx, err)
		case end != nil:
			r, err := e.close(ctx, *end)
			if err == nil && end.Status == run.Cancelled {
				err = temporal.NewCanceledError(end.Reason)
			}
			return r, err
		case e.historyFull(ctx):
			return e.handOver(ctx)
		}
	}
}

// handOver continues in the next execution. If the run is cancelled before that, this execution closes it.
func (e *engine) handOver(ctx workflow.Context) (contract.Result, error) {
	err := e.continueAsNew(ctx)
	if e.j.newer {
		return contract.Result{}, errNewer
	}
	if temporal.IsCanceledError(err) {
		return e.closeCancelled(ctx)
	}
	return contract.Result{}, err
}

// newEngine registers all handlers before the workflow yields for the first time.
func newEngine(ctx workflow.Context, in contract.Input, hide func(string) string) (*engine, error) {
	in.Options = in.Options.Complete()
	e := &engine{execution: &execution{in: in, redact: hide, activityIDs: map[string]int{}}}
	e.j = &journal{e: e, mu: workflow.NewMutex(ctx)}
	e.control = &control{e: e}
	if c := in.Snapshot; c != nil {
		e.j.state, e.j.disk, e.j.head, e.j.archived = c.State, written{c.State, c.Tail}, c.Head, c.Archived
		e.control.Control, e.control.refusals, e.pending, e.permits = c.Control, c.Refusals, c.Pending, c.Permits
		e.reminded, e.applied = c.Reminded, c.Applied
	}
	if err := e.registerQueries(ctx); err != nil {
		return nil, err
	}
	if err := e.control.registerHandlers(ctx); err != nil {
		return nil, err
	}
	e.control.startFlusher(ctx)
	return e, nil
}

// openDirectory opens the directory and journals the first event of a new run.
func (e *engine) openDirectory(ctx workflow.Context) error {
	// a run that is cancelled before it starts still journals start and end, and an epoch its begin
	begun, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if e.in.Reopen != nil {
		return e.reopen(begun)
	}
	if e.in.Snapshot != nil {
		if err := e.restoreWait(ctx); err != nil { // routes must be known before a decision arrives
			return err
		}
		e.open = true
		return nil
	}
	opened, err := e.acquireOwnership(begun, contract.OpenInput{
		Epoch: e.in.Start.Epoch, Cluster: e.in.Claim.Cluster, Embedded: e.in.Claim.Embedded, Task: e.in.Start.Task,
	})
	if err != nil {
		return err
	}
	e.open = true
	e.in.Start.Task = opened.Task
	if err := e.j.emit(ctx, run.KindRunStart, "", e.in.Start); err != nil {
		return err
	}
	return e.startReplay(ctx)
}

// acquireOwnership makes the directory this epoch's: its events must end where the journal does.
func (e *engine) acquireOwnership(ctx workflow.Context, in contract.OpenInput) (contract.OpenResult, error) {
	in.Claim, in.Tail, in.Execution = e.in.Claim, e.j.disk.tail, workflow.GetInfo(ctx).FirstRunID
	var res contract.OpenResult
	if err := e.runDirectoryActivity(ctx, "open the run directory", contract.Open, &in, &res); err != nil {
		return res, fmt.Errorf("open %s: %w", e.in.Target.Dir, err)
	}
	return res, nil
}

// next pauses if requested, or runs one step. end: the run is to end this way.
func (e *engine) next(ctx workflow.Context) (end *run.RunEnd, err error) {
	if err := e.control.err; err != nil {
		return nil, err
	}
	if err := e.pauseIfRequested(ctx, true); err != nil {
		return nil, err
	}
	if err := e.waitForLimit(ctx); err != nil || e.j.state.Status == run.WaitingLimit {
		return nil, err
	}
	if err := e.control.journalRefusedCount(ctx); err != nil {
		return nil, err
	}
	if err := e.resumeWait(ctx); err != nil {
		return nil, err
	}
	if reason := e.j.state.Review; reason != "" && e.active() {
		return nil, e.pause(ctx, run.UserReview, reason, "")
	}
	if waits, err := e.nextProject(ctx); waits || err != nil {
		return nil, err
	}
	at := e.j.state.Next
	if at.Stage >= len(e.in.Start.Stages) || e.endedByAnswer() {
		return e.finish(ctx)
	}
	if err := e.repeatAmendments(ctx, at); err != nil {
		return nil, err
	}
	if err := e.readRound(ctx, at); err != nil {
		return nil, err
	}
	check, due := e.checkDue(at)
	if e.round.Stage == pipeline.FreshStage && !due {
		return e.finish(ctx)
	}
	if err := e.enterPhase(ctx, at); err != nil {
		return nil, err
	}
	if e.round.Kind == pipeline.StageLanes && e.in.Start.Lane == nil {
		return nil, e.runLanes(ctx, at)
	}
	switch {
	case due && check != at:
		return nil, e.skipTo(ctx, at, check)
	case due:
	case at.Step >= len(e.round.Steps) || e.conditionMet() || e.decided(at):
		return nil, e.leavePhase(ctx, at)
	case e.onlyJudges(at):
		return nil, e.skipChange(ctx, at)
	}
	if e.budgetSpent(ctx) { // checked only where a call would follow: a finished run does not pause for its budget
		return nil, e.pauseOverBudget(ctx, nil)
	}
	e.steps++
	return nil, e.runStep(ctx, at)
}

// endedByAnswer reports whether the answer to a question has ended the run.
func (e *engine) endedByAnswer() bool {
	s := e.j.state
	return s.Status.Settled() || len(s.Projects) > 0 && s.Status.Closed()
}

// planUse names the plan in force.
func (e *engine) planUse() contract.PlanUse { return useOf(e.in.Start.PlanRef()) }

func useOf(ref run.PlanRef) contract.PlanUse {
	return contract.PlanUse{Plan: ref.Plan, Inputs: ref.Inputs}
}

// readRound reads the round at a place from the stored plan.
func (e *engine) readRound(ctx workflow.Context, at run.Place) error {
	place := run.Place{Stage: at.Stage, Round: at.Round}
	for e.readAt != place || e.round.Stage == "" || e.readFrom != e.in.Start.Plan { // amended meanwhile
		plan := e.in.Start.Plan
		known, err := e.round.EncodedRoles()
		if err != nil {
			return err
		}
		t := e.in.Target
		in := contract.RoundInput{RunID: t.RunID, Store: t.Store, PlanUse: e.planUse(), Stage: at.Stage, Round: at.Round,
			Known: known}
		var r contract.Round
		if err = e.readStore(ctx, contract.ReadRound, in, &r); err == nil {
			err = r.Complete(e.round)
		}
		if err != nil {
			return fmt.Errorf("read round %d of stage %d from the plan: %w", at.Round, at.Stage+1, err)
		}
		e.round, e.readAt, e.readFrom = r, place, plan
	}
	return nil
}

// historyFull reports whether the next execution should continue.
func (e *engine) historyFull(ctx workflow.Context) bool {
	limit := e.in.Options.ContinueAfter
	if limit > 0 {
		return e.steps >= limit
	}
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// continueAsNew starts the next execution once everything is on disk and archived, no handler is running and no
// signal is pending.
func (e *engine) continueAsNew(ctx workflow.Context) error {
	if err := e.control.journalRefusedCount(ctx); err != nil {
		return err
	}
	if err := e.flushAll(ctx); err != nil {
		return err
	}
	in := e.in
	in.Snapshot = &contract.Snapshot{
		State: e.j.state, Tail: e.j.disk.tail, Head: e.j.head, Archived: e.j.archived, Control: e.control.Control,
		Refusals: e.control.refusals,
		Pending:  e.pending, Permits: e.permits, Reminded: e.reminded, Applied: e.applied,
	}
	return nextExecution(ctx, contract.PipelineWorkflow, in)
}

// flushAll writes and archives everything, including what messages journal meanwhile.
func (e *engine) flushAll(ctx workflow.Context) error {
	for {
		if err := e.drainHandlers(ctx); err != nil {
			return err
		}
		if len(e.j.pending) == 0 && e.j.fullyArchived() {
			if e.noticesStarted() {
				return nil
			}
			if err := e.awaitNotices(ctx); err != nil {
				return err
			}
			continue // events may have been journaled meanwhile
		}
		if err := e.j.flush(ctx); err != nil {
			return err
		}
		if err := e.j.archive(ctx, e.j.disk.tail); err != nil {
			return err
		}
	}
}

// drainHandlers waits for all handlers. A signal that was delivered to its coroutine in this workflow task is
// invisible to ReceiveAsync: a coroutine that starts now runs after all of them.
func (e *engine) drainHandlers(ctx workflow.Context) error {
	turned := false
	workflow.GoNamed(ctx, "after all handlers", func(workflow.Context) { turned = true })
	if err := workflow.Await(ctx,
		func() bool { return turned && e.control.busy == 0 && workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	e.control.drainSignals(ctx)
	return nil
}

func (e *engine) close(ctx workflow.Context, end run.RunEnd) (contract.Result, error) {
	if e.j.newer {
		return contract.Result{}, errNewer
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx) // a cancellation comes too late
	defer cancel()
	if end.Status == run.Cancelled {
		if err := e.cancelProjects(ctx); err != nil {
			return contract.Result{}, err
		}
	}
	if err := e.stopLanes(ctx); err != nil {
		return contract.Result{}, err
	}
	e.control.drainSignals(ctx)
	if err := e.control.journalRefusedCount(ctx); err != nil {
		return contract.Result{}, err
	}
	if err := e.j.emit(ctx, run.KindRunEnd, "", end); err != nil {
		return contract.Result{}, err
	}
	if err := e.flushAll(ctx); err != nil {
		return contract.Result{}, err
	}
	e.showDetails(ctx)
	e.tellParent(ctx)
	return e.result(), nil
}

// result returns the result of the run.
func (e *engine) result() contract.Result {
	s := e.j.state
	r := contract.Result{
		RunID: s.RunID, Status: s.Status, Reason: s.Reason, USD: s.Total(), Score: s.Score, Tail: e.j.disk.tail,
		Head: e.j.head,
	}
	if s.Artifact != nil {
		r.Artifact = s.Artifact.Digest
	}
	return r
}

// closeFailed closes the run after an error that no retry fixes.
func (e *engine) closeFailed(ctx workflow.Context, cause error) (contract.Result, error) {
	r, err := e.close(ctx, run.RunEnd{Status: run.Failed, Reason: errorMessage(cause)})
	if err != nil {
		return r, errors.Join(cause, err)
	}
	return r, temporal.NewNonRetryableApplicationError(errorMessage(cause), "Failed", cause)
}

// closeCancelled closes a cancelled run.
func (e *engine) closeCancelled(ctx workflow.Context) (contract.Result, error) {
	r, err := e.close(ctx, run.RunEnd{Status: run.Cancelled})
	if err != nil {
		return r, err
	}
	return r, temporal.NewCanceledError("the run was cancelled")
}

// runningCall is a call that an operator can interrupt.
type runningCall struct {
	pass   *pass
	cancel workflow.CancelFunc
}

// cancelCalls cancels all running calls, for a forced pause.
func (e *engine) cancelCalls() {
	for _, c := range e.calls {
		c.cancel()
	}
}

func (e *engine) budgetWarnShare() float64 {
	b := e.in.Start.Budget
	if b.CapUSD <= 0 {
		return 0.8
	}
	return b.WarnUSD / b.CapUSD
}
