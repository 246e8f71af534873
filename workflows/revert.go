package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// VerbRevert takes a run that rests back to a checkpoint.
const VerbRevert = "revert"

// Reverting is a revert that somebody asked for and the main loop has not made yet.
type Reverting struct {
	To   string `json:"to"` // checkpoint, or a boundary: pass-35
	By   string `json:"by,omitempty"`
	Note string `json:"note,omitempty"`
	Rest bool   `json:"rest,omitempty"` // stay paused there
}

// mayRevert holds what speaks against a revert.
func (c *control) mayRevert(m Message) error {
	s := c.e.j.state
	switch {
	case m.To == "":
		return refuse("say where to: {\"to\":\"cp-S3\"}; `starter checkpoints` lists them")
	case c.Revert != nil && c.Revert.To == m.To:
		return nil
	case c.Revert != nil:
		return refuse("the run goes back to %s already", c.Revert.To)
	case c.Resume:
		return refuse("the run is about to go on: pause it first")
	}
	if err := run.May(s.Status, run.Revert, run.Terms{}); err != nil {
		return conflict(s, run.Revert, "%v. Pause it first", err)
	}
	return nil
}

// revert makes the revert that was asked for. One that cannot be made changes nothing: it is journaled as refused, and the run goes on resting.
func (e *engine) revert(ctx workflow.Context) error {
	r := *e.control.Revert
	refused, err := e.goBack(ctx, r)
	e.control.Revert = nil
	if err != nil {
		return err
	}
	if refused != "" {
		ev := run.DecisionRefused{Verb: VerbRevert, Reason: refused, By: r.By}
		if err := e.j.emit(ctx, run.KindDecisionRefused, e.j.state.Phase, ev); err != nil {
			return err
		}
	}
	if (r.Rest || refused != "") && e.j.state.Status != run.Paused {
		why := "it was taken back to " + r.To
		if refused != "" {
			why = "it could not be taken back to " + r.To + ": " + refused
		}
		if err := e.pause(ctx, run.UserRequested, why, r.By); err != nil {
			return err
		}
	}
	return e.j.flush(ctx)
}

// goBack takes the run to a checkpoint: place, artifact, notes and workspace become what they were. A checkpoint of what was comes first, so that the
// revert can be taken back too. refused: why it cannot be done.
func (e *engine) goBack(ctx workflow.Context, r Reverting) (refused string, err error) {
	in := work.CheckpointInput{Store: e.in.Target.Store, RunID: e.in.Target.RunID, ID: r.To}
	var c run.Checkpoint
	err = e.local(ctx, work.FindCheckpoint, in, &c)
	if isType(err, work.ErrBadInput) {
		return message(err), nil
	}
	if err != nil {
		return "", fmt.Errorf("find checkpoint %s: %w", r.To, err)
	}
	if err := e.j.flush(ctx); err != nil { // the directory is in line with the journal before anybody looks at what lies in it
		return "", err
	}
	if err := e.inspect(ctx); err != nil { // what a person has edited is journaled, and in the checkpoint
		return "", err
	}
	if e.standsAt(c) {
		if s := e.j.state; !r.Rest && s.Status == run.Paused {
			return "", e.j.emit(ctx, run.KindRunResumed, s.Phase, run.RunResumed{Epoch: s.Epoch, From: run.Paused, By: r.By, Note: r.Note})
		}
		return "", nil
	}
	if err := e.checkpoint(ctx, "cp-REVERT-"+workflow.Now(ctx).UTC().Format("20060102T150405Z")); err != nil {
		return "", err
	}
	commit, err := e.putBack(ctx, c)
	if err != nil {
		return "", err
	}
	now := e.j.state // also with what messages have changed meanwhile: a budget
	then := c.Reverted(now)
	then.Commit = commit
	ev := run.RunReverted{
		To: c.Seq, Cause: "revert", Abandoned: run.Range{First: c.Seq + 1, Last: now.Seq}, State: &then, Checkpoint: c.ID, By: r.By, Note: r.Note, WasUSD: now.Total(),
	}
	e.round, e.asked, e.wentTo = work.Round{}, places{}, c.Seq
	return "", e.j.emit(ctx, run.KindRunReverted, then.Phase, ev)
}

// standsAt says that the last revert went to this checkpoint, and nothing has happened since.
func (e *engine) standsAt(c run.Checkpoint) bool {
	s, then := e.j.state, c.State
	return e.wentTo == c.Seq && s.Next == then.Next && s.Spent == then.Spent && slices.Equal(s.Tries, then.Tries) && run.DigestOf(s.Artifact) == run.DigestOf(then.Artifact) &&
		run.DigestOf(s.Tree) == run.DigestOf(then.Tree)
}

// putBack makes artifact and checkout what they were, and writes down what that changes: whoever asks which call last wrote a file finds the revert.
// It gives the commit of the checkout.
func (e *engine) putBack(ctx workflow.Context, c run.Checkpoint) (commit string, err error) {
	now, then := e.j.state, c.State
	if then.Artifact != nil && now.Artifact != nil && then.Artifact.Digest != now.Artifact.Digest {
		if err := e.j.emit(ctx, run.KindArtifactUpdated, now.Phase, run.ArtifactUpdated{Artifact: *then.Artifact, Cause: "reverted"}); err != nil {
			return "", err
		}
	}
	if e.tree() == nil || then.Tree == nil || then.Tree.Digest == now.Tree.Digest {
		return now.Commit, nil
	}
	carry := work.CarryInput{
		Target: e.in.Target, Tree: *e.tree(), From: now.Tree, Was: now.Tree, Message: fmt.Sprintf("Back to %s\n\nPassbook-Run: %s\n", c.ID, e.in.Target.RunID),
	}
	carry.Tree.Tree = *then.Tree
	var out work.CarryResult
	if err := e.onTree(ctx, "take the checkout back to "+c.ID, work.Carry, &carry, &out); err != nil {
		return "", fmt.Errorf("take the checkout back to %s: %w", c.ID, err)
	}
	if err := e.noteTroubles(ctx, "", out.Troubles, 0); err != nil {
		return "", err
	}
	if out.Changes == nil {
		return out.Commit, nil
	}
	ev := *out.Changes
	ev.Cause, ev.Commit = "reverted", out.Commit
	return out.Commit, e.j.emit(ctx, run.KindWorkspaceUpdated, now.Phase, ev)
}
