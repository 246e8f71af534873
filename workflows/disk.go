package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// targeted is the input of an activity on the directory's host.
type targeted interface{ Moved(to work.Target) }

// onDisk has an activity done on the directory's host, and waits while its disk is full.
func (e *engine) onDisk(ctx workflow.Context, summary, activity string, in targeted, out any) error {
	if err := e.behindReset(ctx); err != nil {
		return err
	}
	for {
		asked := e.control.tries
		err := e.atHome(ctx, func() error {
			in.Moved(e.in.Target)
			return workflow.ExecuteActivity(e.directory(ctx, summary), activity, in).Get(ctx, out)
		})
		if isType(err, work.ErrFinal) {
			return errors.Join(err, e.look(ctx))
		}
		if !isType(err, work.ErrDiskFull) {
			e.noRoom = 0
			return err
		}
		if err := e.awaitRoom(ctx, err, asked); err != nil {
			return err
		}
	}
}

// A full disk is tried again after roomFirst, then twice as long each time, up to roomMost: each try stands in the history.
const (
	roomFirst = 15 * time.Second
	roomMost  = 10 * time.Minute
)

// awaitRoom pauses the run for a full disk, even though the pause itself cannot be written to the directory: queries, the Web UI and the search
// attributes show it at once, the files when there is space again. It returns when the disk is worth another try: after a while, or at once when an
// operator asks for it, each time. asked is how often that had been done when the last try began, so that no request is missed meanwhile.
func (e *engine) awaitRoom(ctx workflow.Context, full error, asked int) error {
	if e.live() {
		if err := e.j.emit(ctx, run.KindRunPaused, e.j.state.Phase, run.RunPaused{Reason: run.DiskFull, Detail: message(full)}); err != nil {
			return err
		}
	}
	wait := time.Duration(float64(min(roomFirst<<min(e.noRoom, 10), roomMost)) * e.in.Options.TimeScale)
	e.noRoom++
	e.held = HeldAnswer{Held: true, Message: message(full), RetryAt: run.Time(workflow.Now(ctx).Add(wait))}
	e.show(ctx)
	defer func() {
		e.held = HeldAnswer{}
		e.show(ctx)
	}()
	opts := workflow.AwaitOptions{Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: "before the full disk is tried again"}}
	_, err := workflow.AwaitWithOptions(ctx, opts, func() bool { return e.control.tries != asked })
	return err
}
