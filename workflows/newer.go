package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// A directory that has lines or an epoch which this execution does not know is newer: Temporal's database was restored
// from a backup, the workflow was reset, or another cluster has continued the run. There is one open execution of a run,
// so it takes the next epoch from the directory: continue-as-new, with nothing of what it knows itself. It finds out by
// what it writes, and while it stands still, by a comparison before it answers an Update.

// errNewer stops an execution whose directory is newer.
var errNewer = temporal.NewNonRetryableApplicationError("the run directory has later events: they count", contract.ErrNewer,
	nil)

func superseded() error {
	return temporal.NewNonRetryableApplicationError("the run continues from its directory, which has later events: send "+
		"the message again", contract.Superseded, nil)
}

// becomeNewer stops everything but running calls, which are paid for: nothing more is journaled. When they have ended, so
// does this execution.
func (j *journal) becomeNewer() error {
	j.newer, j.pending = true, nil
	if len(j.e.calls) == 0 {
		j.e.stop()
	}
	return errNewer
}

// look writes what is pending, or compares the directory with this execution.
func (j *journal) look(ctx workflow.Context) error {
	if len(j.pending) > 0 || j.mu.IsLocked() {
		return j.flush(ctx)
	}
	return j.compare(ctx, hostTimeout)
}

// compare asks the directory whether it has later events, while nothing is written. within bounds the wait for its host;
// 0: nothing does.
func (j *journal) compare(ctx workflow.Context, within time.Duration) error {
	if ctx.Value(writing{}) == nil {
		if err := j.mu.Lock(ctx); err != nil {
			return err
		}
		defer j.mu.Unlock()
	}
	e := j.e
	ctx = e.directoryOptions(ctx, "compare the run directory")
	opts := workflow.GetActivityOptions(ctx)
	opts.ScheduleToCloseTimeout = within
	in := contract.ProjectInput{Target: e.target(), First: j.disk.tail.Seq + 1, Prev: j.disk.tail.Chain, Head: j.head}
	var res contract.ProjectResult
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), contract.Project, in).Get(ctx, &res)
	switch {
	case j.newer:
		return errNewer
	case err == nil && res.Outcome == run.ProjectionNewer:
		return j.becomeNewer()
	}
	return err
}

// writing is the key of contexts whose coroutine holds the journal's mutex.
type writing struct{}

// hostTimeout is the time a message waits for the directory's host.
const hostTimeout = 5 * time.Second

// awaitFor waits for a condition with a timeout. If the condition already holds, it adds nothing to history.
func awaitFor(ctx workflow.Context, most time.Duration, summary string, condition func() bool) (bool, error) {
	if condition() {
		return true, nil
	}
	return workflow.AwaitWithOptions(ctx,
		workflow.AwaitOptions{Timeout: most, TimerOptions: workflow.TimerOptions{Summary: summary}}, condition)
}

// confirm has the directory compared before an Update is answered. A run that works finds out by what it writes. A host that
// does not answer in time does not hold up the answer.
func (c *control) confirm(ctx workflow.Context) error {
	c.looks++
	mine := c.looks
	if _, err := awaitFor(ctx, hostTimeout, "until the directory is compared",
		func() bool { return c.looked >= mine || c.e.j.newer }); err != nil && !c.e.j.newer {
		return err
	}
	if c.e.j.newer {
		return superseded()
	}
	return nil
}

// askedAgain reports whether the step that asks an open question finds it without its wait: what a project asks, and what
// a replay needs a permission for.
func askedAgain(q run.Question) bool {
	return q.Project != nil || slices.Contains([]string{run.TriggerBlocked, run.TriggerEffect, run.TriggerAction,
		run.TriggerUnrecorded}, q.Trigger)
}

// standsStill reports whether a run writes nothing until something comes from outside.
func standsStill(s run.State) bool {
	return s.Status.Class() == run.OperatorPause
}

// startWorkerHint describes what to do if no worker polls the queue of a directory.
func startWorkerHint(queue string) string {
	return "No worker polls task queue " + queue +
		": start one on that host (run \"starter server start\" or the worker program), then send the message again"
}

// target locates the run for an activity that must know the end of the directory's journal: what this execution has
// written. What it has not written may differ from what the directory has.
func (e *engine) target() contract.Target {
	t, j := e.in.Target, e.j
	t.Epoch, t.Seq = max(t.Epoch, j.state.Epoch), j.disk.tail.Seq
	return t
}

// targetIn is the target of an activity in a context. While the journal is repaired, nothing else writes: what is pending may
// be on disk.
func (e *engine) targetIn(ctx workflow.Context) contract.Target {
	t := e.target()
	if ctx.Value(writing{}) != nil {
		t.Seq = e.j.state.Seq
	}
	return t
}

// requireCurrent returns whether the directory is newer, after an activity was refused for the nth time because it has more
// events than this execution knew then: another coroutine may have written them meanwhile.
func (e *engine) requireCurrent(ctx workflow.Context, n int, refused error) error {
	const most = 5 // then something else is wrong
	if n >= most {
		if err := e.awaitRetry(ctx, n-most, errorMessage(refused), never); err != nil {
			return err
		}
	}
	j := e.j
	if ctx.Value(writing{}) == nil && (len(j.pending) > 0 || j.mu.IsLocked()) {
		return j.flush(ctx)
	}
	return j.compare(ctx, 0)
}

// nextEpoch continues the run from its directory. A closed run is not continued: the execution ends as the directory
// records. One that another cluster executes ends here.
func (e *engine) nextEpoch(outer workflow.Context) (contract.Result, error) {
	ctx, cancel := workflow.NewDisconnectedContext(outer)
	defer cancel()
	e.j.newer, e.open = true, true // messages are answered
	e.control.superseded = append(e.control.superseded, e.control.unwritten...)
	if err := e.drainHandlers(ctx); err != nil {
		return contract.Result{}, err
	}
	knew := e.j.disk.tail.Seq
	in := contract.NextEpochInput{Claim: e.in.Claim}
	var next contract.NextEpochResult
	if err := e.awaitNextEpoch(ctx, outer, &in, &next); err != nil {
		return contract.Result{}, err
	}
	if next.Elsewhere != "" {
		return contract.Result{}, temporal.NewNonRetryableApplicationError(fmt.Sprintf("run %s continues on the Temporal cluster %s",
			e.in.Target.RunID, next.Elsewhere), contract.ErrNewer, nil)
	}
	if next.State.Status.Closed() && (next.Ended || next.State.Status != run.Done) {
		return e.recordedEnd(ctx, next)
	}
	if err := e.drainHandlers(ctx); err != nil {
		return contract.Result{}, err
	}
	return contract.Result{}, nextExecution(ctx, contract.PipelineWorkflow, e.nextInput(next, knew, outer.Err() != nil))
}

// awaitNextEpoch asks the host of the directory, until the directory can be continued or the run is cancelled.
func (e *engine) awaitNextEpoch(ctx, outer workflow.Context, in *contract.NextEpochInput,
	next *contract.NextEpochResult) error {
	for n := 0; ; n++ {
		err := e.runDirectoryActivity(ctx, "continue from the run directory", contract.NextEpoch, in, next)
		if !isType(err, contract.ErrDamaged) && !isType(err, contract.ErrBadInput) && !isType(err, contract.ErrNoStore) {
			return err
		}
		if outer.Err() != nil {
			return outer.Err()
		}
		if err := e.awaitRetry(ctx, n, errorMessage(err), func() bool { return outer.Err() != nil }); err != nil {
			return err
		}
	}
}

// recordedEnd ends this execution as the directory records the end of the run.
func (e *engine) recordedEnd(ctx workflow.Context, next contract.NextEpochResult) (contract.Result, error) {
	e.j.state, e.j.disk, e.j.head = next.State, written{next.State, next.Tail}, next.Head
	s := e.j.state
	workflow.GetLogger(ctx).Warn("the run has ended already: this execution changed nothing", "status", s.Status)
	if err := e.publish(ctx, run.State{}); err != nil {
		return contract.Result{}, err
	}
	e.showDetails(ctx)
	e.tellParent(ctx)
	switch s.Status {
	case run.Failed, run.Interrupted:
		return e.result(), temporal.NewNonRetryableApplicationError(s.Reason, "Failed", errors.New(s.Reason))
	case run.Cancelled:
		return e.result(), temporal.NewCanceledError("the run was cancelled")
	}
	return e.result(), nil
}

// nextInput is the input of the next epoch. A run that waits continues to wait for the same.
func (e *engine) nextInput(next contract.NextEpochResult, knew int64, cancelled bool) contract.Input {
	in, s := e.in, next.State
	in.Start, in.Options.TimeScale = next.Start, next.TimeScale
	in.Snapshot = &contract.Snapshot{State: s, Tail: next.Tail, Head: next.Head, Archived: next.Archived}
	in.Reopen = &contract.Reopen{
		Epoch: next.Epoch, From: run.Interrupted, Host: next.Host, Cluster: next.Cluster, Embedded: next.Embedded,
		Address: next.Address, Repaired: next.Repaired, Cancel: cancelled, Refused: e.control.superseded,
		Interruption: fmt.Sprintf("its workflow had %d of the %s of this directory, as after a reset, or after Temporal's "+
			"database was restored from a backup", knew, run.Plural(int(next.Tail.Seq), "event")),
	}
	in.Snapshot.Permits = e.permits
	if q, asks := s.Asks(); asks && !askedAgain(q) {
		in.Snapshot.Pending = &contract.PendingWait{ID: q.ID, At: s.Next, LastReminded: q.RequestedAt}
	}
	if s.Status == run.Done { // only its end is missing
		in.Reopen.From = run.Done
	}
	in.Reopen.Waits = !cancelled && standsStill(s)
	return in
}
