package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// pauseIfRequested is the boundary between steps: budget warning, then pause. It returns when the run may
// continue. resumable: the next execution can continue the wait, since this one holds no other state. Otherwise the
// caller is in the middle of a step, which a revert ends.
func (lp *loop) pauseIfRequested(ctx workflow.Context, resumable bool) error {
	generation := lp.state().Generation
	lp.warnBudget(ctx)
	if lp.inbox.pauses() && (lp.active() || lp.state().Status == run.WaitingLimit) {
		lp.pauseWith(ctx, run.RunPaused{Reason: run.UserRequested, Detail: lp.inbox.pauseNote(),
			By: lp.inbox.pauseBy()})
	}
	for lp.state().Status == run.Paused { // back, if the disk was full when the resume was to be written down
		if err := lp.waitForResume(ctx, resumable); err != nil {
			return err
		}
		if !resumable && lp.state().Generation != generation {
			return errBeginAgain
		}
	}
	return nil
}

func (lp *loop) waitForResume(ctx workflow.Context, resumable bool) error {
	lp.inbox.pauseBegun()
	if err := lp.journal.flush(ctx); err != nil {
		return err
	}
	lp.show(ctx)
	lp.children.tellParent(ctx)
	w := lp.waitPaused()
	w.inStep = !resumable
	if _, err := lp.wait(ctx, w); err != nil {
		return err
	}
	if err := lp.inbox.failed(); err != nil {
		return err
	}
	if lp.inbox.reverts() != nil {
		return lp.reverts.revert(ctx)
	}
	c := lp.inbox.take()
	if !c.Resume { // the pull request has changed
		c.By = byForge
	}
	ev := run.RunResumed{Epoch: lp.state().Epoch, From: run.Paused, By: c.By, Note: c.Note, Force: c.Force,
		Why: c.Reason}
	lp.journal.emit(ctx, run.KindRunResumed, lp.state().Phase, ev)
	if err := lp.journal.flush(ctx); err != nil { // the directory is current before an operator's edits are read
		return err
	}
	if err := lp.checkout.adoptEdits(ctx); err != nil {
		return err
	}
	if err := lp.journal.flush(ctx); err != nil { // the directory shows at once that the run continues
		return err
	}
	lp.children.tellLanes(ctx, contract.VerbResume, contract.Message{Note: c.Note})
	lp.children.tellParent(ctx)
	return nil
}
