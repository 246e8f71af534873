package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// A directory that ends in run.end{done} is final. An execution that finds one came from a reset or an earlier
// epoch. It writes nothing and completes with the result in the directory.

// MemoFinal is the memo key of an execution that found its run already done.
const MemoFinal = "final"

// errFinal stops an execution that found its run already done.
var errFinal = errors.New("the run is already done")

// adoptEnd takes over the end of the run from the directory. If this execution wrote that end, only messages are
// pending: they are dropped.
func (j *journal) adoptEnd(ctx workflow.Context, res contract.ProjectResult) error {
	if res.End == nil {
		return fmt.Errorf("project to %s: the directory is final, but the end of its run is missing", j.e.in.Target.Dir)
	}
	if j.disk.state.Status == run.Done && j.disk.tail == res.Tail {
		workflow.GetLogger(ctx).Warn("dropped events after the end of the run", "events", len(j.pending))
		j.pending, j.state = nil, j.disk.state
		return nil
	}
	j.final, j.pending = true, nil
	j.state, j.disk, j.head = res.End.State, written{res.End.State, res.Tail}, res.End.Head
	j.showLanes()
	j.e.open = true // messages are handled: they are refused
	j.e.stop()
	return errFinal
}

// completeFinal completes an execution that found its run already done.
func (e *engine) completeFinal(ctx workflow.Context) (Result, error) {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	if err := e.drainHandlers(ctx); err != nil {
		return Result{}, err
	}
	s := e.j.state
	why := fmt.Sprintf("the run was already done at %s (event %d of %s): this execution changed nothing", s.FinishedAt,
		e.j.disk.tail.Seq, e.in.Target.Dir)
	workflow.GetLogger(ctx).Warn("completed without work: " + why)
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoFinal: why}); err != nil {
		return Result{}, err
	}
	if err := e.publish(ctx, run.State{}); err != nil {
		return Result{}, err
	}
	e.showDetails(ctx)
	return e.result(), nil
}
