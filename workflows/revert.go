package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateRevert checks the preconditions of a revert.
func (c *control) validateRevert(m contract.Message) error {
	s := c.e.j.state
	switch {
	case c.e.in.Start.Lane != nil:
		return refuse("a lane is not reverted: revert its run, %s", shell.Quote(c.e.in.Start.Lane.RunID))
	case m.To == "":
		return refuse(`the checkpoint is missing: send {"to":"cp-S3"}; run "starter checkpoints %s" to list them`,
			shell.Quote(c.runID()))
	case c.Revert != nil && c.Revert.To == m.To:
		return nil
	case c.Revert != nil:
		return unmet("the run is already being reverted to %s", c.Revert.To)
	case c.Resume:
		return unmet("the run is resuming: pause it first")
	}
	_, open := s.Asks()
	if err := run.May(s.Status, run.Revert, run.Terms{Undecided: open}); err != nil {
		return conflict(s, run.Revert, "%v. Pause it first", err)
	}
	return nil
}

// revert makes the requested revert. One that cannot be made changes nothing: it is journaled as refused and the
// run stays paused.
func (e *engine) revert(ctx workflow.Context) error {
	r := *e.control.Revert
	refused, err := e.restoreCheckpoint(ctx, r)
	e.control.Revert = nil
	if err != nil {
		return err
	}
	if refused != "" {
		ev := run.DecisionRefused{Verb: contract.VerbRevert, Reason: refused, By: r.By}
		if err := e.j.emit(ctx, run.KindDecisionRefused, e.j.state.Phase, ev); err != nil {
			return err
		}
	}
	waits := refused != "" && e.j.state.Status == run.WaitingLimit
	if (r.StayPaused || refused != "") && e.j.state.Status != run.Paused && !waits {
		why := "reverted to " + r.To
		if refused != "" {
			why = "revert to " + r.To + ": " + refused
		}
		if err := e.pause(ctx, run.UserRequested, why, r.By); err != nil {
			return err
		}
	}
	return e.j.flush(ctx)
}

// restoreCheckpoint restores place, artifact, notes and workspace of a checkpoint. It first creates a checkpoint
// of the current state, so that the revert can be reverted. refused: why it is not possible.
func (e *engine) restoreCheckpoint(ctx workflow.Context, r contract.PendingRevert) (refused string, err error) {
	in := contract.CheckpointInput{
		Store: e.in.Target.Store, RunID: e.in.Target.RunID, PlanUse: e.planUse(), ID: r.To,
	}
	var c run.Checkpoint
	err = e.readStore(ctx, contract.FindCheckpoint, in, &c)
	if isType(err, contract.ErrBadInput) {
		return errorMessage(err), nil
	}
	if err != nil {
		return "", fmt.Errorf("find checkpoint %s: %w", r.To, err)
	}
	if err := e.j.flush(ctx); err != nil { // the directory is current before an operator's edits are read
		return "", err
	}
	if err := e.inspect(ctx, true); err != nil { // an operator's edits are journaled and in the checkpoint
		return "", err
	}
	if e.alreadyAt(c) {
		if s := e.j.state; !r.StayPaused && s.Status == run.Paused {
			return "", e.j.emit(ctx, run.KindRunResumed, s.Phase, run.RunResumed{
				Epoch: s.Epoch, From: run.Paused, By: r.By, Note: r.Note,
			})
		}
		return "", nil
	}
	if err := e.stopLanes(ctx); err != nil {
		return "", err
	}
	if err := e.checkpoint(ctx, e.checkpointNow(ctx, "cp-REVERT-")); err != nil {
		return "", err
	}
	commit, refused, err := e.restoreFiles(ctx, c)
	if err != nil || refused != "" {
		return refused, err
	}
	now := e.j.state // includes changes by messages meanwhile, such as a budget
	then := c.Reverted(now)
	then.Commit = commit
	ev := run.RunReverted{
		To: c.Seq, Cause: "revert", Abandoned: run.Range{First: c.Seq + 1, Last: now.Seq}, State: &then,
		Checkpoint: c.ID,
		By:         r.By, Note: r.Note, WasUSD: now.Total(),
	}
	e.round, e.routes, e.revertedTo = contract.Round{}, routes{}, c.Seq
	return "", e.j.emit(ctx, run.KindRunReverted, then.Phase, ev)
}

// alreadyAt reports whether the last revert went to this checkpoint and nothing has happened since.
func (e *engine) alreadyAt(c run.Checkpoint) bool {
	s, then := e.j.state, c.State
	return e.revertedTo == c.Seq && s.Next == then.Next && s.Spent == then.Spent && slices.Equal(s.Tries, then.Tries) &&
		run.DigestOf(s.Artifact) == run.DigestOf(then.Artifact) &&
		run.DigestOf(s.Tree) == run.DigestOf(then.Tree)
}

// restoreFiles restores checkout and artifact and journals the changes, so that the origin of each file shows the
// revert. It returns the commit of the checkout, or why nothing could be restored.
func (e *engine) restoreFiles(ctx workflow.Context, c run.Checkpoint) (commit, refused string, err error) {
	commit, refused, err = e.restoreCheckout(ctx, c)
	if err != nil || refused != "" {
		return "", refused, err
	}
	now, then := e.j.state, c.State
	if then.Artifact == nil || now.Artifact == nil || then.Artifact.Digest == now.Artifact.Digest {
		return commit, "", nil
	}
	return commit, "", e.j.emit(ctx, run.KindArtifactUpdated, now.Phase, run.ArtifactUpdated{
		Artifact: *then.Artifact, Cause: "reverted",
	})
}

func (e *engine) restoreCheckout(ctx workflow.Context, c run.Checkpoint) (commit, refused string, err error) {
	now, then := e.j.state, c.State
	if len(now.Projects) > 0 {
		e.children = nil // those that ended since then are read again, and not run again
		return now.Commit, "", nil
	}
	if e.workspace() == nil || then.Tree == nil || then.Tree.Digest == now.Tree.Digest {
		return now.Commit, "", nil
	}
	in := contract.SyncWorkspaceInput{
		Target: e.in.Target, Tree: *e.workspace(), DiffFrom: now.Tree, Previous: now.Tree,
		Message: fmt.Sprintf("Revert to %s\n\nPassbook-Run: %s\n", c.ID, e.in.Target.RunID),
	}
	in.Tree.Tree = *then.Tree
	var out contract.SyncWorkspaceResult
	summary := "revert the checkout to " + c.ID
	failed, err := e.tryCheckoutActivity(ctx, summary, contract.SyncWorkspace, &in, &out)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", summary, err)
	}
	if failed != nil {
		return "", summary + ": " + errorMessage(failed), nil
	}
	if err := e.journalRecovered(ctx, "", out.Recovered, 0); err != nil {
		return "", "", err
	}
	if out.Changes == nil {
		return out.Commit, "", nil
	}
	ev := *out.Changes
	ev.Cause, ev.Commit = "reverted", out.Commit
	return out.Commit, "", e.j.emit(ctx, run.KindWorkspaceUpdated, now.Phase, ev)
}
