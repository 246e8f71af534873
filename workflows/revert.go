package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// reverts takes the run back to its checkpoints.
type reverts struct {
	*execution
	lanes *lanes
	to    int64 // seq of the target of the last revert
}

// revert makes the requested revert. One that cannot be made changes nothing: it is journaled as refused and the
// run stays paused.
func (rv *reverts) revert(ctx workflow.Context) error {
	r := *rv.inbox.reverts()
	refused, err := rv.restoreCheckpoint(ctx, r)
	rv.inbox.revert(nil)
	if err != nil {
		return err
	}
	if refused != "" {
		ev := run.DecisionRefused{Verb: contract.VerbRevert, Reason: refused, By: r.By}
		rv.journal.emit(ctx, run.KindDecisionRefused, rv.state().Phase, ev)
	}
	waits := refused != "" && rv.state().Status == run.WaitingLimit
	if (r.StayPaused || refused != "") && rv.state().Status != run.Paused && !waits {
		why := "reverted to " + r.To
		if refused != "" {
			why = "revert to " + r.To + ": " + refused
		}
		rv.pause(ctx, run.UserRequested, why, r.By)
	}
	return rv.journal.flush(ctx)
}

// restoreCheckpoint restores place, artifact, notes and workspace of a checkpoint. It first creates a checkpoint
// of the current state, so that the revert can be reverted. refused: why it is not possible.
func (rv *reverts) restoreCheckpoint(ctx workflow.Context, r contract.PendingRevert) (refused string, err error) {
	in := contract.CheckpointInput{
		Store: rv.in.Target.Store, RunID: rv.in.Target.RunID, PlanUse: rv.planUse(), ID: r.To,
	}
	var c run.Checkpoint
	err = rv.host.readStore(ctx, contract.FindCheckpoint, in, &c)
	if isType(err, contract.ErrBadInput) {
		return errorMessage(err), nil
	}
	if err != nil {
		return "", fmt.Errorf("find checkpoint %s: %w", r.To, err)
	}
	if err := rv.journal.flush(ctx); err != nil { // the directory is current before an operator's edits are read
		return "", err
	}
	if err := rv.checkout.inspect(ctx, true); err != nil { // an operator's edits are journaled and in the checkpoint
		return "", err
	}
	if rv.alreadyAt(c) {
		if s := rv.state(); !r.StayPaused && s.Status == run.Paused {
			rv.journal.emit(ctx, run.KindRunResumed, s.Phase, run.RunResumed{
				Epoch: s.Epoch, From: run.Paused, By: r.By, Note: r.Note,
			})
			return "", nil
		}
		return "", nil
	}
	if err := rv.lanes.stop(ctx); err != nil {
		return "", err
	}
	rv.checkpoint(ctx, rv.checkpointNow(ctx, "cp-REVERT-"))
	commit, refused, err := rv.restoreFiles(ctx, c)
	if err != nil || refused != "" {
		return refused, err
	}
	now := rv.state() // includes changes by messages meanwhile, such as a budget
	then := c.Reverted(now)
	then.Commit = commit
	ev := run.RunReverted{
		To: c.Seq, Cause: "revert", Abandoned: run.Range{First: c.Seq + 1, Last: now.Seq}, State: &then,
		Checkpoint: c.ID,
		By:         r.By, Note: r.Note, WasUSD: now.Total(),
	}
	rv.round.forget()
	rv.to = c.Seq
	rv.journal.emit(ctx, run.KindRunReverted, then.Phase, ev)
	return "", nil
}

// alreadyAt reports whether the last revert went to this checkpoint and nothing has happened since.
func (rv *reverts) alreadyAt(c run.Checkpoint) bool {
	s, then := rv.state(), c.State
	return rv.to == c.Seq && s.Next == then.Next && s.Spent == then.Spent && slices.Equal(s.Tries, then.Tries) &&
		run.DigestOf(s.Artifact) == run.DigestOf(then.Artifact) &&
		run.DigestOf(s.Tree) == run.DigestOf(then.Tree)
}

// restoreFiles restores checkout and artifact and journals the changes, so that the origin of each file shows the
// revert. It returns the commit of the checkout, or why nothing could be restored.
func (rv *reverts) restoreFiles(ctx workflow.Context, c run.Checkpoint) (commit, refused string, err error) {
	commit, refused, err = rv.restoreCheckout(ctx, c)
	if err != nil || refused != "" {
		return "", refused, err
	}
	now, then := rv.state(), c.State
	if then.Artifact == nil || now.Artifact == nil || then.Artifact.Digest == now.Artifact.Digest {
		return commit, "", nil
	}
	rv.journal.emit(ctx, run.KindArtifactUpdated, now.Phase, run.ArtifactUpdated{
		Artifact: *then.Artifact, Cause: "reverted",
	})
	return commit, "", nil
}

func (rv *reverts) restoreCheckout(ctx workflow.Context, c run.Checkpoint) (commit, refused string, err error) {
	now, then := rv.state(), c.State
	if len(now.Projects) > 0 {
		rv.children.forget() // those that ended since then are read again, and not run again
		return now.Commit, "", nil
	}
	if rv.workspace() == nil || then.Tree == nil || then.Tree.Digest == now.Tree.Digest {
		return now.Commit, "", nil
	}
	in := contract.SyncWorkspaceInput{
		Target: rv.in.Target, Tree: *rv.workspace(), DiffFrom: now.Tree, Previous: now.Tree,
		Message: fmt.Sprintf("Revert to %s\n\nPassbook-Run: %s\n", c.ID, rv.in.Target.RunID),
	}
	in.Tree.Tree = *then.Tree
	var out contract.SyncWorkspaceResult
	summary := "revert the checkout to " + c.ID
	failed, err := rv.checkout.try(ctx, summary, contract.SyncWorkspace, &in, &out)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", summary, err)
	}
	if failed != nil {
		return "", summary + ": " + errorMessage(failed), nil
	}
	rv.journalRecovered(ctx, "", out.Recovered, 0)
	if out.Changes == nil {
		return out.Commit, "", nil
	}
	ev := *out.Changes
	ev.Cause, ev.Commit = "reverted", out.Commit
	rv.journal.emit(ctx, run.KindWorkspaceUpdated, now.Phase, ev)
	return out.Commit, "", nil
}
