package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// engine is one execution of a run.
type engine struct {
	in      Input
	j       *journal
	control *control
	home    home
	round   work.Round // of the plan, as read last
	readAt  run.Place
	calls   []workflow.CancelFunc // each ends a call that runs
	asked   places                // where a decision of the open hand-off leads
	heard   string                // question whose answers after a reset count
	opened  bool                  // the directory is this execution's: messages may be acted on
	away    bool                  // no worker has opened it for a while
	waits   *Waiting              // for the answer to a question that an earlier execution asked
	hide    func(string) string   // only for side effects: what is a secret may differ from worker to worker
	noRoom  int                   // tries in a row that found a disk full
	held    HeldAnswer            // while it is waited for
	steps   int                   // done by this execution
	wentTo  int64                 // seq that the last revert went back to
	used    map[string]int        // ids of activities, and how often
	permits map[string]string     // what a person has said of a replay's calls
	permit  string                // that the open question is about
	notices notices
	looking workflow.Mutex // whoever looks, behind a reset, whether the run is done
	looked  bool
	stop    workflow.CancelFunc // ends all that runs; never called at the end of an execution, which ends it too
}

// runPlan runs a plan to its end. Its steps are: open the directory; then, until the plan is through, rest where a pause is wanted, and do the
// next step; then close the journal. The run's place, not the code, says what comes next, so an execution can begin anywhere.
func runPlan(ctx workflow.Context, in Input, hide func(string) string) (Result, error) {
	if err := in.check(workflow.GetInfo(ctx).WorkflowExecution.ID); err != nil {
		return Result{}, err
	}
	e, err := begin(ctx, in, hide)
	if err != nil {
		return Result{}, err
	}
	all, stop := workflow.WithCancel(ctx)
	e.stop = stop
	e.watchReset(all)
	r, err := e.run(all)
	if e.j.final {
		return e.doneBefore(ctx)
	}
	return r, err
}

// run does the steps of [runPlan].
func (e *engine) run(ctx workflow.Context) (Result, error) {
	cancels := e.in.Reopen != nil && e.in.Reopen.Cancel
	if err := e.open(ctx); err != nil {
		return Result{}, err
	}
	if cancels {
		return e.cancelled(ctx)
	}
	for {
		over, err := e.next(ctx)
		switch {
		case e.j.final:
			return Result{}, errFinal
		case temporal.IsCanceledError(err) || ctx.Err() != nil:
			return e.cancelled(ctx)
		case errors.Is(err, errHandOver):
			return Result{}, e.goOn(ctx)
		case err != nil:
			return e.failed(ctx, err)
		case over != nil:
			return e.close(ctx, *over)
		case e.full(ctx):
			return Result{}, e.goOn(ctx)
		}
	}
}

// begin registers every handler before the workflow yields for the first time.
func begin(ctx workflow.Context, in Input, hide func(string) string) (*engine, error) {
	in.Options = in.Options.complete()
	e := &engine{in: in, hide: hide}
	e.j = &journal{e: e, mu: workflow.NewMutex(ctx)}
	e.looking = workflow.NewMutex(ctx)
	e.control = &control{e: e}
	if c := in.Carry; c != nil {
		e.j.state, e.j.base, e.j.tail, e.j.head, e.j.sealed = c.State, c.State, c.Tail, c.Head, c.Sealed
		e.control.Control, e.control.refusals, e.waits, e.permits = c.Control, c.Refusals, c.Waiting, c.Permits
	}
	if err := e.answer(ctx); err != nil {
		return nil, err
	}
	if err := e.control.listen(ctx); err != nil {
		return nil, err
	}
	e.control.courier(ctx)
	return e, nil
}

// open has the directory looked at, and writes the first event of a new run.
func (e *engine) open(ctx workflow.Context) error {
	if e.in.Reopen != nil {
		return e.reopen(ctx)
	}
	if e.in.Carry != nil {
		if err := e.takeUpWait(ctx); err != nil { // an answer must find where it leads
			return err
		}
		e.opened = true
		return nil
	}
	begun, cancel := workflow.NewDisconnectedContext(ctx) // a run that is cancelled before anybody works on it has its beginning and its end in the journal too
	defer cancel()
	if err := e.take(begun, work.OpenInput{Epoch: e.in.Start.Epoch, Cluster: e.in.Claim.Cluster, Embedded: e.in.Claim.Embedded}); err != nil {
		return err
	}
	e.opened = true
	if err := e.j.emit(ctx, run.KindRunStart, "", e.in.Start); err != nil {
		return err
	}
	return e.replaying(ctx)
}

// take makes the directory this epoch's: it must end where the journal does.
func (e *engine) take(ctx workflow.Context, in work.OpenInput) error {
	in.Target, in.Claim, in.Tail, in.Execution = e.in.Target, e.in.Claim, e.j.tail, workflow.GetInfo(ctx).FirstRunID
	var res work.OpenResult
	if err := e.onDisk(ctx, "open the run directory", work.Open, &in, &res); err != nil {
		return fmt.Errorf("open %s: %w", e.in.Target.Dir, err)
	}
	return nil
}

// reopen begins a new epoch of a run that had closed: the directory is taken over, what no segment holds yet is stored, and the journal says
// what happened and from which state it goes on.
func (e *engine) reopen(ctx workflow.Context) error {
	r := *e.in.Reopen
	e.in.Reopen = nil
	if err := e.take(ctx, work.OpenInput{Epoch: r.Epoch, Cluster: r.Cluster, Embedded: r.Embedded, Address: r.Address}); err != nil {
		return err
	}
	if err := e.j.seal(ctx, e.j.tail); err != nil {
		return err
	}
	if r.Torn != "" {
		if err := e.j.emit(ctx, run.KindRunInterrupted, e.j.state.Phase, run.RunInterrupted{Reason: r.Torn, At: e.j.now(ctx)}); err != nil {
			return err
		}
	}
	from := e.j.state
	from.InFlight = nil
	ev := run.RunResumed{Epoch: r.Epoch, From: r.From, By: r.By, Note: r.Note, Force: r.Force, Why: r.Why, Host: r.Host, Build: r.Build, Overruled: r.Overruled, State: &from}
	if err := e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev); err != nil {
		return err
	}
	if err := e.j.noteDamage(ctx, r.Repaired); err != nil {
		return err
	}
	if err := e.decideAtOnce(ctx, r.Decision); err != nil {
		return err
	}
	e.opened = true
	if r.Cancel {
		return nil
	}
	if e.control.Revert = r.Revert; r.Revert != nil {
		return e.revert(ctx)
	}
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	return e.inspect(ctx)
}

// next rests where a pause is wanted, or does one step. over: the run is to end so.
func (e *engine) next(ctx workflow.Context) (over *run.RunEnd, err error) {
	if err := e.control.failed; err != nil {
		return nil, err
	}
	if err := e.rest(ctx, true); err != nil {
		return nil, err
	}
	if err := e.control.noteCounted(ctx); err != nil {
		return nil, err
	}
	if err := e.waitOn(ctx); err != nil {
		return nil, err
	}
	if owed := e.j.state.Review; owed != "" && e.live() {
		return nil, e.pause(ctx, run.UserReview, owed, "")
	}
	at := e.j.state.Next
	if at.Stage >= len(e.in.Start.Stages) || e.j.state.Status.Settled() {
		return e.finish(ctx)
	}
	if err := e.read(ctx, at); err != nil {
		return nil, err
	}
	if err := e.enter(ctx, at); err != nil {
		return nil, err
	}
	if at.Step >= len(e.round.Steps) || e.met() {
		return nil, e.leave(ctx, at)
	}
	if e.spent() { // looked at here, where a call would follow: a run that is through is not paused for money
		return nil, e.overBudget(ctx)
	}
	e.steps++
	return nil, e.step(ctx, at)
}

// read gets the round at a place from the stored plan.
func (e *engine) read(ctx workflow.Context, at run.Place) error {
	if e.readAt == (run.Place{Stage: at.Stage, Round: at.Round}) && e.round.Stage != "" {
		return nil
	}
	in := work.RoundInput{Store: e.in.Target.Store, Plan: e.in.Start.Plan, Stage: at.Stage, Round: at.Round}
	var r work.Round
	if err := e.local(ctx, work.ReadRound, in, &r); err != nil {
		return fmt.Errorf("read round %d of stage %d from the plan: %w", at.Round, at.Stage+1, err)
	}
	e.round, e.readAt = r, run.Place{Stage: at.Stage, Round: at.Round}
	return nil
}

// full says that this execution has enough history; the next one goes on.
func (e *engine) full(ctx workflow.Context) bool {
	limit := e.in.Options.ContinueAfter
	if limit > 0 {
		return e.steps >= limit
	}
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// goOn hands over to the next execution: the journal is on disk and sealed, no handler is at work, no signal is lost.
func (e *engine) goOn(ctx workflow.Context) error {
	if err := e.control.noteCounted(ctx); err != nil {
		return err
	}
	if err := e.settle(ctx); err != nil {
		return err
	}
	in := e.in
	in.Carry = &Carry{
		State: e.j.state, Tail: e.j.tail, Head: e.j.head, Sealed: e.j.sealed, Control: e.control.Control, Refusals: e.control.refusals,
		Waiting: e.waits, Permits: e.permits,
	}
	return workflow.NewContinueAsNewError(ctx, Name, in)
}

// settle brings everything to the directory and into the store, also what messages write down meanwhile. On return nothing is pending and no
// signal that has arrived is unread.
func (e *engine) settle(ctx workflow.Context) error {
	for {
		if err := e.hear(ctx); err != nil {
			return err
		}
		if len(e.j.pending) == 0 && e.j.stored() {
			if e.toldAll() {
				return nil
			}
			if err := e.told(ctx); err != nil {
				return err
			}
			continue // something may have been written down meanwhile
		}
		if err := e.j.flush(ctx); err != nil {
			return err
		}
		if err := e.j.seal(ctx, e.j.tail); err != nil {
			return err
		}
	}
}

// hear gives every handler its turn. A signal may have been handed to its coroutine in this very workflow task, where no drain finds it: a
// coroutine that is started now runs after all of them.
func (e *engine) hear(ctx workflow.Context) error {
	turned := false
	workflow.GoNamed(ctx, "after all handlers", func(workflow.Context) { turned = true })
	if err := workflow.Await(ctx, func() bool { return turned && e.control.busy == 0 && workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	e.control.drain(ctx)
	return nil
}

// close ends the run.
func (e *engine) close(ctx workflow.Context, end run.RunEnd) (Result, error) {
	e.control.drain(ctx)
	if err := e.control.noteCounted(ctx); err != nil {
		return Result{}, err
	}
	if err := e.j.emit(ctx, run.KindRunEnd, "", end); err != nil {
		return Result{}, err
	}
	if err := e.settle(ctx); err != nil {
		return Result{}, err
	}
	e.show(ctx)
	return e.result(), nil
}

// result is what the run has come to.
func (e *engine) result() Result {
	s := e.j.state
	r := Result{RunID: s.RunID, Status: s.Status, Reason: s.Reason, USD: s.Total(), Score: s.Score, Tail: e.j.tail, Head: e.j.head}
	if s.Artifact != nil {
		r.Artifact = s.Artifact.Digest
	}
	return r
}

// failed closes the run because of something that no later attempt can mend.
func (e *engine) failed(ctx workflow.Context, cause error) (Result, error) {
	if isType(cause, work.ErrStale) {
		return Result{}, cause // another start owns the directory: there is nothing to write
	}
	r, err := e.close(ctx, run.RunEnd{Status: run.Failed, Reason: cause.Error()})
	if err != nil {
		return r, errors.Join(cause, err)
	}
	return r, temporal.NewNonRetryableApplicationError(cause.Error(), "Failed", cause)
}

// cancelled closes the run on a context of its own: the workflow's has ended.
func (e *engine) cancelled(ctx workflow.Context) (Result, error) {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	r, err := e.close(free, run.RunEnd{Status: run.Cancelled})
	if err != nil {
		return r, err
	}
	return r, temporal.NewCanceledError("the run was cancelled")
}

// endCalls ends the calls that run: a forced pause.
func (e *engine) endCalls() {
	for _, end := range e.calls {
		end()
	}
}

func (e *engine) warnShare() float64 {
	b := e.in.Start.Budget
	if b.CapUSD <= 0 {
		return 0.8
	}
	return b.WarnUSD / b.CapUSD
}
