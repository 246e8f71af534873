package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// rest is the boundary between steps: the budget's warning, then a pause. It returns when the run may go on. bare: nothing is under way that only
// this execution knows, so that the next one can go on with the wait.
func (e *engine) rest(ctx workflow.Context, bare bool) error {
	if err := e.warn(ctx); err != nil {
		return err
	}
	if e.control.Pause && e.live() {
		if err := e.pause(ctx, run.UserRequested, e.control.Note, e.control.PauseBy); err != nil {
			return err
		}
	}
	for e.j.state.Status == run.Paused { // again, if the disk was full when the resume was to be written down
		if err := e.waitForResume(ctx, bare); err != nil {
			return err
		}
	}
	return nil
}

// warn says once that most of the budget is spent.
func (e *engine) warn(ctx workflow.Context) error {
	s := e.j.state
	if s.Budget.WarnUSD <= 0 || s.Total() < s.Budget.WarnUSD || s.Warned {
		return nil
	}
	return e.j.emit(ctx, run.KindBudgetWarning, s.Phase, run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total()})
}

// spent says that the cap is reached.
func (e *engine) spent() bool {
	s := e.j.state
	return s.Budget.CapUSD > 0 && s.Total() >= s.Budget.CapUSD
}

// overBudget pauses the run before its next call.
func (e *engine) overBudget(ctx workflow.Context) error {
	s := e.j.state
	if err := e.j.emit(ctx, run.KindBudgetExceeded, s.Phase, run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total()}); err != nil {
		return err
	}
	return e.pause(ctx, run.BudgetThreshold, fmt.Sprintf("%.2f USD are spent, the budget is %.2f", s.Total(), s.Budget.CapUSD), "")
}

// pause writes the pause down, and a checkpoint of it where a person asked for it. A run that rests already goes on resting.
func (e *engine) pause(ctx workflow.Context, reason, detail, by string) error {
	if e.j.state.Status == run.Paused {
		return nil
	}
	phase := e.j.state.Phase
	if err := e.j.emit(ctx, run.KindRunPaused, phase, run.RunPaused{Reason: reason, Detail: detail, By: by}); err != nil {
		return err
	}
	if reason != run.UserRequested {
		return nil
	}
	return e.checkpoint(ctx, "cp-PAUSE-"+workflow.Now(ctx).UTC().Format("20060102T150405Z"))
}

func (e *engine) waitForResume(ctx workflow.Context, bare bool) error {
	e.control.Pause, e.control.Now = false, false
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.show(ctx)
	goesOn := func() bool { return e.control.Resume || e.control.Revert != nil || e.control.failed != nil }
	if err := workflow.Await(ctx, func() bool { return goesOn() || bare && e.crowded(ctx) }); err != nil {
		return err
	}
	if err := e.control.failed; err != nil {
		return err
	}
	if !goesOn() {
		return errHandOver
	}
	if e.control.Revert != nil {
		return e.revert(ctx)
	}
	c := e.control.Control
	e.control.Control = Control{}
	ev := run.RunResumed{Epoch: e.j.state.Epoch, From: run.Paused, By: c.By, Note: c.Note, Force: c.Force, Why: c.Reason}
	if err := e.j.emit(ctx, run.KindRunResumed, e.j.state.Phase, ev); err != nil {
		return err
	}
	if err := e.j.flush(ctx); err != nil { // the directory is in line with the journal before anybody looks at what lies in it
		return err
	}
	if err := e.inspect(ctx); err != nil {
		return err
	}
	return e.j.flush(ctx) // whoever looks at the directory sees at once that it goes on
}

// inspect takes over what was done to the artifact while the run rested: nothing was in flight, so a difference is somebody's edit.
func (e *engine) inspect(ctx workflow.Context) error {
	if t := e.tree(); t != nil {
		return e.inspectTree(ctx, t)
	}
	known := e.j.state.Artifact
	if known == nil || e.in.Start.Artifact == nil {
		return nil
	}
	in := work.InspectInput{Target: e.in.Target, File: e.in.Start.Artifact.File, Digest: known.Digest}
	var res work.InspectResult
	if err := e.onDisk(ctx, "look at the artifact", work.Inspect, &in, &res); err != nil {
		return fmt.Errorf("look at %s: %w", in.File, err)
	}
	switch {
	case res.Edited != nil:
		return e.j.emit(ctx, run.KindArtifactUpdated, e.j.state.Phase, run.ArtifactUpdated{Artifact: *res.Edited, Cause: "edited"})
	case res.Restored:
		return e.j.emit(ctx, run.KindArtifactUpdated, e.j.state.Phase, run.ArtifactUpdated{Artifact: *known, Cause: "restored"})
	}
	return nil
}

// inspectTree does the same with the run's own checkout.
func (e *engine) inspectTree(ctx workflow.Context, t *work.Tree) error {
	in := work.InspectInput{Target: e.in.Target, Tree: t}
	var res work.InspectResult
	if err := e.onTree(ctx, "look at the workspace", work.Inspect, &in, &res); err != nil {
		return fmt.Errorf("look at the workspace: %w", err)
	}
	if res.Workspace == nil {
		return nil
	}
	return e.j.emit(ctx, run.KindWorkspaceUpdated, e.j.state.Phase, *res.Workspace)
}

// checkpoint names the state as it is now.
func (e *engine) checkpoint(ctx workflow.Context, id string) error {
	s := e.j.state
	return e.j.emit(ctx, run.KindCheckpointCreated, s.Phase, run.CheckpointCreated{
		ID: id, AtPass: s.Passes.LastSettled, AtRound: s.Rounds, USD: s.Total(), Score: s.Score,
	})
}

// wait is a durable timer that a pause cuts short; why is what the Web UI shows. whole: it ran to its end.
func (e *engine) wait(ctx workflow.Context, d time.Duration, why string) (whole bool, err error) {
	opts := workflow.AwaitOptions{Timeout: d, TimerOptions: workflow.TimerOptions{Summary: why}}
	cut, err := workflow.AwaitWithOptions(ctx, opts, func() bool { return e.control.Pause })
	return !cut, err
}
