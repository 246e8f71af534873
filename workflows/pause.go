package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// errBeginAgain ends a step in its middle, because the state has changed under it: the run continues from its state.
var errBeginAgain = errors.New("the run continues from another place")

// pauseIfRequested is the boundary between steps: budget warning, then pause. It returns when the run may
// continue. resumable: the next execution can continue the wait, since this one holds no other state. Otherwise the
// caller is in the middle of a step, which a revert ends.
func (e *engine) pauseIfRequested(ctx workflow.Context, resumable bool) error {
	generation := e.j.state.Generation
	if err := e.warnBudget(ctx); err != nil {
		return err
	}
	if e.control.Pause && (e.active() || e.j.state.Status == run.WaitingLimit) {
		if err := e.pauseWith(ctx, run.RunPaused{Reason: run.UserRequested, Detail: e.control.Note,
			By: e.control.PauseBy}); err != nil {
			return err
		}
	}
	for e.j.state.Status == run.Paused { // back, if the disk was full when the resume was to be written down
		if err := e.waitForResume(ctx, resumable); err != nil {
			return err
		}
		if !resumable && e.j.state.Generation != generation {
			return errBeginAgain
		}
	}
	return nil
}

// pause journals a pause, with a checkpoint if an operator requested it. A paused run stays paused.
func (e *engine) pause(ctx workflow.Context, reason, detail, by string) error {
	return e.pauseWith(ctx, run.RunPaused{Reason: reason, Detail: detail, By: by})
}

func (e *engine) pauseWith(ctx workflow.Context, ev run.RunPaused) error {
	if e.j.state.Status == run.Paused {
		return nil
	}
	now := e.control.Now
	if err := e.j.emit(ctx, run.KindRunPaused, e.j.state.Phase, ev); err != nil {
		return err
	}
	e.tellLanes(ctx, contract.VerbPause, contract.Message{Note: ev.Detail, Now: now})
	if ev.Reason != run.UserRequested {
		return nil
	}
	return e.checkpoint(ctx, e.checkpointNow(ctx, "cp-PAUSE-"))
}

func (e *engine) waitForResume(ctx workflow.Context, resumable bool) error {
	e.control.Pause, e.control.Now = false, false
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.showDetails(ctx)
	e.tellParent(ctx)
	if _, err := e.wait(ctx, wait{name: waitPause, inStep: !resumable}); err != nil {
		return err
	}
	if err := e.control.err; err != nil {
		return err
	}
	if e.control.Revert != nil {
		return e.revert(ctx)
	}
	c := e.control.Control
	e.control.Control, e.tryNow = contract.Control{}, true
	ev := run.RunResumed{Epoch: e.j.state.Epoch, From: run.Paused, By: c.By, Note: c.Note, Force: c.Force,
		Why: c.Reason}
	if err := e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev); err != nil {
		return err
	}
	if err := e.j.flush(ctx); err != nil { // the directory is current before an operator's edits are read
		return err
	}
	if err := e.adoptEdits(ctx); err != nil {
		return err
	}
	if err := e.j.flush(ctx); err != nil { // the directory shows at once that the run continues
		return err
	}
	e.tellLanes(ctx, contract.VerbResume, contract.Message{Note: c.Note})
	e.tellParent(ctx)
	return nil
}

// pausing describes a pause that was requested and has not begun.
func (c *control) pausing() string {
	switch {
	case !c.Pause:
		return ""
	case c.Now:
		return "a pause is requested" + byWhom(c.PauseBy) + ": the running call is being ended"
	}
	return "a pause is requested" + byWhom(c.PauseBy) + ": it begins after the running pass; a resume cancels it"
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + run.OneLine(name)
}

// adoptEdits takes over edits of the artifact made while the run was paused: no call was in progress, so any
// difference is an operator's.
func (e *engine) adoptEdits(ctx workflow.Context) error { return e.inspect(ctx, false) }

// inspect takes over edits. back: the run goes back, and reads no answer of a call that has ended.
func (e *engine) inspect(ctx workflow.Context, back bool) error {
	if len(e.j.state.Projects) > 0 || e.in.Start.Lane != nil { // the checkouts are those of other runs
		return nil
	}
	if t := e.workspace(); t != nil {
		return e.inspectWorkspace(ctx, contract.InspectInput{Target: e.in.Target, Tree: t, Back: back})
	}
	known := e.j.state.Artifact
	if known == nil || e.in.Start.Artifact == nil {
		return nil
	}
	in := contract.InspectInput{Target: e.in.Target, File: e.in.Start.Artifact.File, Digest: known.Digest}
	var res contract.InspectResult
	if err := e.runDirectoryActivity(ctx, "inspect the artifact", contract.Inspect, &in, &res); err != nil {
		return fmt.Errorf("inspect %s: %w", in.File, err)
	}
	switch {
	case res.Edited != nil:
		return e.j.emit(ctx, run.KindArtifactUpdated, e.j.state.Phase, run.ArtifactUpdated{
			Artifact: *res.Edited, Cause: run.CauseEdited,
		})
	case res.Restored:
		return e.j.emit(ctx, run.KindArtifactUpdated, e.j.state.Phase, run.ArtifactUpdated{
			Artifact: *known, Cause: "restored",
		})
	}
	return nil
}

// inspectWorkspace does the same for the run's checkout.
func (e *engine) inspectWorkspace(ctx workflow.Context, in contract.InspectInput) error {
	var res contract.InspectResult
	if err := e.runCheckoutActivity(ctx, "inspect the workspace", contract.Inspect, &in, &res); err != nil {
		return fmt.Errorf("inspect the workspace: %w", err)
	}
	if err := e.journalRecovered(ctx, "", res.Recovered, 0); err != nil {
		return err
	}
	if res.Workspace == nil {
		return nil
	}
	return e.j.emit(ctx, run.KindWorkspaceUpdated, e.j.state.Phase, *res.Workspace)
}

// checkpoint journals a named checkpoint of the current state.
func (e *engine) checkpoint(ctx workflow.Context, id string) error {
	s := e.j.state
	return e.j.emit(ctx, run.KindCheckpointCreated, s.Phase, run.CheckpointCreated{
		ID: id, AtPass: s.Passes.LastSettled, AtRound: s.Rounds, USD: s.Total(), Score: s.Score,
	})
}

// checkpointNow is the name of a checkpoint with its time. Of several in one second, each later one has a number.
func (e *engine) checkpointNow(ctx workflow.Context, prefix string) string {
	name := prefix + workflow.Now(ctx).UTC().Format("20060102T150405Z")
	taken := func(id string) bool {
		return slices.ContainsFunc(e.j.state.Checkpoints, func(c run.CheckpointRef) bool { return c.ID == id })
	}
	id := name
	for n := 2; taken(id); n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	return id
}

// sleepUnlessPaused waits before the next attempt; false: a pause has ended it.
func (e *engine) sleepUnlessPaused(ctx workflow.Context, d time.Duration, why string) (completed bool, err error) {
	return e.wait(ctx, wait{name: waitAttempt, until: workflow.Now(ctx).Add(d), summary: why})
}
