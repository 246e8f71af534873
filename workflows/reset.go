package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// After a reset, Temporal reapplies later messages. A reapplied decision answers a question from before the reset:
// it is journaled as refused and the question stays open. Decisions that are sent later count.
//
// Only an execution that came from a reset checks this. GetVersion distinguishes what ran before the reset: old
// history has no versions. (SDK: OriginalRunID is that of the execution that was reset.)

func wasReset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.OriginalRunID != "" && info.WorkflowExecution.RunID != info.OriginalRunID
}

// afterReset reports whether an execution has passed its reset point, at a place that runs once.
func afterReset(ctx workflow.Context, what string) bool {
	return workflow.GetVersion(ctx, what, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// checkAfterReset asks the directory, before the first action after a reset, whether its run is already done.
func (e *engine) checkAfterReset(ctx workflow.Context) error {
	e = e.root
	if e.j.final {
		return errFinal
	}
	// before the directory is first opened, it is empty
	if !wasReset(ctx) || e.finalChecked || !e.open && e.j.disk.tail.Seq == 0 {
		return nil
	}
	if err := e.finalCheck.Lock(ctx); err != nil {
		return err
	}
	defer e.finalCheck.Unlock()
	if e.j.final || e.finalChecked || !taskAfterReset(ctx) {
		return e.j.finalErr()
	}
	return e.checkFinal(ctx)
}

// checkFinal asks the directory whether its run is done.
func (e *engine) checkFinal(ctx workflow.Context) error {
	in := contract.ProjectInput{
		Target: e.in.Target, Epoch: e.j.state.Epoch, First: e.j.disk.tail.Seq + 1, Prev: e.j.disk.tail.Chain, CheckOnly: true,
	}
	var res contract.ProjectResult
	err := e.withDirectory(ctx, func() error {
		in.SetTarget(e.in.Target)
		return workflow.ExecuteActivity(e.directoryOptions(ctx, "check whether the run is done"), contract.Project,
			in).Get(ctx, &res)
	})
	if err != nil {
		return fmt.Errorf("check whether run %s is done: %w", e.in.Target.RunID, err)
	}
	e.finalChecked = true
	if res.Outcome == run.ProjectionFinal {
		return e.j.adoptEnd(ctx, res)
	}
	// An execution that waits has nothing to journal, and its directory would show what the reset abandoned.
	e.j.abandoned, e.control.unflushed = res.Tail, e.control.unflushed || res.Tail.Seq > e.j.disk.tail.Seq
	return e.j.finalErr()
}

// finalErr returns errFinal once the directory was found final.
func (j *journal) finalErr() error {
	if j.final {
		return errFinal
	}
	return nil
}

// taskAfterReset reports whether this workflow task came after the reset.
func taskAfterReset(ctx workflow.Context) bool {
	return afterReset(ctx, fmt.Sprintf("task at %d", workflow.GetInfo(ctx).GetCurrentHistoryLength()))
}

// watchReset runs checkAfterReset in an execution that only waits after the reset.
func (e *engine) watchReset(ctx workflow.Context) {
	if !wasReset(ctx) {
		return
	}
	workflow.GoNamed(ctx, "after reset", func(ctx workflow.Context) {
		err := workflow.Await(ctx, func() bool { return e.finalChecked || e.j.final || e.open && taskAfterReset(ctx) })
		// all messages that the reset reapplied are in this task
		if q, open := e.j.state.Asks(); err == nil && open && q.ID != e.answerable && afterReset(ctx, "open "+q.ID) {
			e.acceptAnswersTo(ctx, q.ID)
		}
		if err == nil {
			err = e.checkAfterReset(ctx)
		}
		if err != nil && ctx.Err() == nil {
			// the next action checks again
			workflow.GetLogger(ctx).Error("check after a reset whether the run is done", "error", err)
		}
	})
}

// noteQuestion accepts answers to a question asked after the reset: the same id may have been answered before it.
func (e *engine) noteQuestion(ctx workflow.Context, id string) {
	if wasReset(ctx) && afterReset(ctx, "asked "+id) {
		e.acceptAnswersTo(ctx, id)
	}
}

// acceptAnswersTo accepts answers to a question once all reapplied messages are handled.
func (e *engine) acceptAnswersTo(ctx workflow.Context, id string) {
	workflow.GoNamed(ctx, "after reset", func(ctx workflow.Context) {
		if workflow.Sleep(ctx, time.Millisecond) == nil {
			e.answerable = id
		}
	})
}

// rejectReapplied refuses a decision that the reset reapplied.
func (e *engine) rejectReapplied(ctx workflow.Context) error {
	q, open := e.j.state.Asks()
	if !open || !wasReset(ctx) || q.ID == e.answerable || !afterReset(ctx, "answered "+q.ID) {
		return nil
	}
	e.acceptAnswersTo(ctx, q.ID)
	return refuse("the workflow was reset to a point before this decision: %s is open again", q.ID)
}
