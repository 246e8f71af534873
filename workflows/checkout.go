package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// adoptEdits takes over edits of the artifact made while the run was paused: no call was in progress, so any
// difference is an operator's.
func (co *checkout) adoptEdits(ctx workflow.Context) error { return co.inspect(ctx, false) }

// inspect takes over edits. back: the run goes back, and reads no answer of a call that has ended.
func (co *checkout) inspect(ctx workflow.Context, back bool) error {
	if len(co.state().Projects) > 0 || co.in.Start.Lane != nil { // the checkouts are those of other runs
		return nil
	}
	if co.workspace() != nil {
		return co.inspectWorkspace(ctx, back)
	}
	known := co.state().Artifact
	if known == nil || co.in.Start.Artifact == nil {
		return nil
	}
	in := contract.InspectInput{Target: co.in.Target, File: co.in.Start.Artifact.File, Digest: known.Digest}
	var res contract.InspectResult
	if err := co.journal.runDirectoryActivity(ctx, "inspect the artifact", contract.Inspect, &in, &res); err != nil {
		return fmt.Errorf("inspect %s: %w", in.File, err)
	}
	switch {
	case res.Edited != nil:
		co.journal.emit(ctx, run.KindArtifactUpdated, co.state().Phase, run.ArtifactUpdated{
			Artifact: *res.Edited, Cause: run.CauseEdited,
		})
		return nil
	case res.Restored:
		co.journal.emit(ctx, run.KindArtifactUpdated, co.state().Phase, run.ArtifactUpdated{
			Artifact: *known, Cause: "restored",
		})
		return nil
	}
	return nil
}

// inspectWorkspace does the same for the run's checkout.
func (co *checkout) inspectWorkspace(ctx workflow.Context, back bool) error {
	var res contract.InspectResult
	if err := co.run(ctx, "inspect the workspace", contract.Inspect, func() targetSetter {
		return &contract.InspectInput{Tree: co.workspace(), Back: back}
	}, &res); err != nil {
		return fmt.Errorf("inspect the workspace: %w", err)
	}
	co.journalRecovered(ctx, "", res.Recovered, 0)
	if res.Workspace == nil {
		return nil
	}
	co.journal.emit(ctx, run.KindWorkspaceUpdated, co.state().Phase, *res.Workspace)
	return nil
}

// checkout is the artifact or the workspace of the run, which operators may edit too.
type checkout struct{ *execution }

// same is an input that stays as it is.
func same(in targetSetter) func() targetSetter { return func() targetSetter { return in } }

// run runs an activity on a checkout. After six failed attempts the run pauses; a resume tries again, with the input of
// then, and a revert ends the step.
func (co *checkout) run(ctx workflow.Context, summary, activity string, in func() targetSetter, out any) error {
	for {
		failed, err := co.try(ctx, summary, activity, in(), out)
		if failed == nil || err != nil {
			return err
		}
		co.pause(ctx, run.PassFailed, summary+": "+errorMessage(failed), "")
		if err := co.resumed(ctx); err != nil {
			return err
		}
	}
}

// try runs an activity on a checkout as soon as its host can. failed: six attempts failed.
func (co *checkout) try(ctx workflow.Context, summary, activity string, in targetSetter,
	out any) (failed, err error) {
	for away, stale := 0, 0; ; {
		asked := co.inbox.requested()
		in.SetTarget(co.journal.target())
		err := workflow.ExecuteActivity(co.host.checkoutOptions(ctx, summary), activity, in).Get(ctx, out)
		switch {
		case isType(err, contract.ErrNewer):
			err = co.journal.requireCurrent(ctx, stale, err)
			stale++
		case err == nil, ctx.Err() != nil, isType(err, contract.ErrBadInput),
			isType(err, contract.ErrClaimed):
			return nil, err
		case isType(err, contract.ErrNoStore):
			err = co.host.awaitRetry(ctx, away, summary+": "+errorMessage(err), never)
			away++
		case isType(err, contract.ErrNoSlot):
			continue
		case isType(err, contract.ErrDirectoryLost):
			err = co.journal.rebuildLost(ctx)
		case isType(err, contract.ErrDiskFull):
			err = co.journal.awaitDiskSpace(ctx, err, asked)
		default:
			return err, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
