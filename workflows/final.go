package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// A directory that ends in run.end{done} is final. An execution that finds one writes nothing, and completes with the result that the directory holds: it
// came of a reset, or of an earlier epoch.

// MemoFinal is the memo of an execution that has found its run done.
const MemoFinal = "final"

// errFinal ends the work of an execution that has found its run done.
var errFinal = errors.New("the run is done, and done is final")

// finish takes over the end that the directory holds. Behind the end that this execution has written itself, only messages were written down: they are
// dropped.
func (j *journal) finish(ctx workflow.Context, res work.ProjectResult) error {
	if res.End == nil {
		return fmt.Errorf("project to %s: the directory is final, and does not say how", j.e.in.Target.Dir)
	}
	if j.base.Status == run.Done && j.tail == res.Tail {
		workflow.GetLogger(ctx).Warn("events behind the end of the run are dropped", "events", len(j.pending))
		j.pending, j.state = nil, j.base
		return nil
	}
	j.final, j.pending = true, nil
	j.state, j.base, j.tail, j.head = res.End.State, res.End.State, res.Tail, res.End.Head
	j.e.opened = true // messages are answered: they are refused
	j.e.stop()
	return errFinal
}

// doneBefore completes an execution that has found its run done, and says so.
func (e *engine) doneBefore(ctx workflow.Context) (Result, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err := e.hear(ctx); err != nil {
		return Result{}, err
	}
	s := e.j.state
	why := fmt.Sprintf("the run was done at %s (event %d of %s), and done is final: this execution has changed nothing", s.FinishedAt, e.j.tail.Seq, e.in.Target.Dir)
	workflow.GetLogger(ctx).Warn("completed without work: " + why)
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoFinal: why}); err != nil {
		return Result{}, err
	}
	if err := e.publish(ctx, run.State{}); err != nil {
		return Result{}, err
	}
	e.show(ctx)
	return e.result(), nil
}
