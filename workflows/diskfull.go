package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

type targetSetter interface {
	SetTarget(to contract.Target)
}

// runDirectoryActivity runs an activity on the host of the directory, and waits while its disk is full.
func (e *engine) runDirectoryActivity(ctx workflow.Context, summary, activity string, in targetSetter, out any) error {
	defer e.clearDiskFull(ctx) // and not before: a retry that is under way is still held up
	for stale := 0; ; {
		asked := e.control.retryRequests
		in.SetTarget(e.targetIn(ctx))
		err := workflow.ExecuteActivity(e.directoryOptions(ctx, summary), activity, in).Get(ctx, out)
		if compares := activity == contract.Inspect || activity == contract.ArchiveSegment; compares &&
			isType(err, contract.ErrNewer) {
			if err := e.requireCurrent(ctx, stale, err); err != nil {
				return err
			}
			stale++
			continue
		}
		if isType(err, contract.ErrDirectoryLost) {
			if err := e.j.rebuildLost(ctx); err != nil {
				return err
			}
			continue
		}
		if !isType(err, contract.ErrDiskFull) {
			e.diskFullTries = 0
			return err
		}
		if err := e.awaitDiskSpace(ctx, err, asked); err != nil {
			return err
		}
	}
}

// Backoff for a full disk: each retry adds to the history.
const (
	diskRetryMin = 15 * time.Second
	diskRetryMax = 10 * time.Minute
)

// awaitDiskSpace pauses the run for a full disk. The pause itself cannot be written yet: queries, the Web UI and
// search attributes show it at once, the files once there is space. It returns when it is time to retry, or when
// an operator asks for a retry. asked is the number of such requests when the failed attempt began, so that none
// is missed.
func (e *engine) awaitDiskSpace(ctx workflow.Context, full error, asked int) error {
	if e.active() && !e.j.newer {
		if err := e.j.emit(ctx, run.KindRunPaused, e.j.state.Phase, run.RunPaused{
			Reason: run.DiskFull, Detail: errorMessage(full),
		}); err != nil {
			return err
		}
	}
	next := time.Duration(float64(min(diskRetryMin<<min(e.diskFullTries, 10), diskRetryMax)) * e.in.Options.TimeScale)
	e.diskFullTries++
	_, err := e.wait(ctx, wait{name: waitDisk, until: workflow.Now(ctx).Add(next), cause: errorMessage(full),
		summary: "before the next attempt at writing to a full disk",
		wakes:   func() bool { return e.control.retryRequests != asked }})
	return err
}

// clearDiskFull ends the message that a full disk holds the run up.
func (e *engine) clearDiskFull(ctx workflow.Context) {
	if e.held.Held {
		e.held = contract.HeldAnswer{}
		e.showDetails(ctx)
	}
}
