package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// finish does what follows the last stage: review of a plan or delivery of the work. It returns how the run ends,
// or nil if it continues.
func (lp *loop) finish(ctx workflow.Context) (*run.RunEnd, error) {
	lp.leaveReplay(ctx)
	if lp.in.Start.Lane != nil {
		return lp.lanes.finish(ctx)
	}
	s := lp.state()
	if len(s.Projects) > 0 {
		return lp.projects.finish(ctx)
	}
	planOnly := pipeline.PlanOnly(lp.in.Start.Kind)
	switch run.BeforeDelivery(s.Status == run.Halted, planOnly, s.Status == run.Done || planOnly && lp.deliveries.accepted()) {
	case run.Halted:
		return &run.RunEnd{Status: run.Halted, Reason: s.Reason}, nil
	case run.AwaitingHumanReview:
		return nil, lp.deliveries.askPlanReview(ctx)
	}
	if s.Status == run.Done || !lp.in.Start.Delivers {
		return &run.RunEnd{Status: run.Done, Reason: s.Reason}, nil
	}
	return lp.deliveries.deliver(ctx)
}

// handOver continues in the next execution. If the run is cancelled before that, this execution closes it.
func (lp *loop) handOver(ctx workflow.Context) (contract.Result, error) {
	err := lp.continueAsNew(ctx)
	if lp.journal.isNewer() {
		return contract.Result{}, errNewer
	}
	if temporal.IsCanceledError(err) {
		return lp.closeCancelled(ctx)
	}
	return contract.Result{}, err
}

// continueAsNew starts the next execution once everything is on disk and archived, no handler is running and no
// signal is pending.
func (lp *loop) continueAsNew(ctx workflow.Context) error {
	if err := lp.inbox.journalRefusedCount(ctx); err != nil {
		return err
	}
	if err := lp.flushAll(ctx); err != nil {
		return err
	}
	in := lp.in
	in.Snapshot = lp.journal.snapshot()
	lp.inbox.save(in.Snapshot)
	lp.questions.save(in.Snapshot)
	lp.replay.save(in.Snapshot)
	return nextExecution(ctx, contract.PipelineWorkflow, in)
}

// flushAll writes and archives everything, including what messages journal meanwhile.
func (lp *loop) flushAll(ctx workflow.Context) error {
	for {
		if err := lp.handlers.drainHandlers(ctx); err != nil {
			return err
		}
		if lp.journal.whole() {
			if lp.notices.started() {
				return nil
			}
			if err := lp.notices.awaitNotices(ctx); err != nil {
				return err
			}
			continue // events may have been journaled meanwhile
		}
		if err := lp.journal.flush(ctx); err != nil {
			return err
		}
		if err := lp.journal.archive(ctx); err != nil {
			return err
		}
	}
}

func (lp *loop) close(ctx workflow.Context, end run.RunEnd) (contract.Result, error) {
	if lp.journal.isNewer() {
		return contract.Result{}, errNewer
	}
	ctx, cancel := workflow.NewDisconnectedContext(ctx) // a cancellation comes too late
	defer cancel()
	if end.Status == run.Cancelled {
		if err := lp.projects.cancel(ctx); err != nil {
			return contract.Result{}, err
		}
	}
	if err := lp.lanes.stop(ctx); err != nil {
		return contract.Result{}, err
	}
	lp.handlers.drainSignals(ctx)
	lp.forge.leave(ctx, end.Status)
	if err := lp.inbox.journalRefusedCount(ctx); err != nil {
		return contract.Result{}, err
	}
	lp.journal.emit(ctx, run.KindRunEnd, "", end)
	if err := lp.flushAll(ctx); err != nil {
		return contract.Result{}, err
	}
	lp.show(ctx)
	lp.children.tellParent(ctx)
	return lp.result(), nil
}

// result returns the result of the run.
func (lp *loop) result() contract.Result {
	last := lp.journal.snapshot()
	s := last.State
	r := contract.Result{
		RunID: s.RunID, Status: s.Status, Reason: s.Reason, USD: s.Total(), Score: s.Score, Tail: last.Tail, Head: last.Head,
	}
	if s.Artifact != nil {
		r.Artifact = s.Artifact.Digest
	}
	return r
}

// closeFailed closes the run after an error that no retry fixes.
func (lp *loop) closeFailed(ctx workflow.Context, cause error) (contract.Result, error) {
	lp.journal.forgive()
	r, err := lp.close(ctx, run.RunEnd{Status: run.Failed, Reason: errorMessage(cause)})
	if err != nil {
		return r, errors.Join(cause, err)
	}
	return r, temporal.NewNonRetryableApplicationError(errorMessage(cause), "Failed", cause)
}

// closeCancelled closes a cancelled run.
func (lp *loop) closeCancelled(ctx workflow.Context) (contract.Result, error) {
	lp.journal.forgive()
	r, err := lp.close(ctx, run.RunEnd{Status: run.Cancelled, Reason: lp.closedIssue()})
	if err != nil {
		return r, err
	}
	return r, temporal.NewCanceledError("the run was cancelled")
}
