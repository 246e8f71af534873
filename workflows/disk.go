package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// onDisk has an activity done on the directory's host, and waits while its disk is full.
func (e *engine) onDisk(ctx workflow.Context, summary, activity string, in, out any) error {
	for {
		err := workflow.ExecuteActivity(e.directory(ctx, summary), activity, in).Get(ctx, out)
		if !isType(err, work.ErrDiskFull) {
			e.noRoom = 0
			return err
		}
		if err := e.awaitRoom(ctx, err); err != nil {
			return err
		}
	}
}

// A full disk is tried again after roomFirst, then twice as long each time, up to roomMost: each try stands in the history.
const (
	roomFirst = 15 * time.Second
	roomMost  = 10 * time.Minute
)

// awaitRoom has the run rest for a full disk, even though the pause itself cannot be written to the directory: queries, the Web UI and the search
// attributes say so at once, the files when there is room again. It returns when the disk is worth another try: after a while, or when somebody
// asks for the run to go on.
func (e *engine) awaitRoom(ctx workflow.Context, full error) error {
	if e.live() {
		if err := e.j.emit(ctx, run.KindRunPaused, e.j.state.Phase, run.RunPaused{Reason: run.DiskFull, Detail: message(full)}); err != nil {
			return err
		}
	}
	e.show(ctx)
	resumed := e.control.Resume
	wait := min(roomFirst<<min(e.noRoom, 10), roomMost)
	e.noRoom++
	opts := workflow.AwaitOptions{
		Timeout: time.Duration(float64(wait) * e.in.Options.TimeScale), TimerOptions: workflow.TimerOptions{Summary: "before the full disk is tried again"},
	}
	_, err := workflow.AwaitWithOptions(ctx, opts, func() bool { return e.control.Resume && !resumed })
	return err
}
