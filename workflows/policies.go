package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/work"
)

// tooLarge is how the server's client reports a payload over its limit: trying again gives the same.
const tooLarge = "payloadSizeError"

// directory options: short work on the host of the run directory, tried until the disk takes it.
func (e *engine) directory(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           e.in.DirQueue,
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    time.Duration(e.in.Options.HeartbeatMS) * time.Millisecond,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
			NonRetryableErrorTypes: []string{tooLarge, work.ErrClaimed, work.ErrStale},
		},
	})
}

// trees options: work on checkouts, which may be large, and may stand in a way that only a person can mend.
func (e *engine) trees(ctx workflow.Context, summary string) workflow.Context {
	ctx = e.directory(ctx, summary)
	opts := workflow.GetActivityOptions(ctx)
	opts.StartToCloseTimeout = time.Hour
	opts.RetryPolicy.MaximumAttempts = 6
	opts.RetryPolicy.NonRetryableErrorTypes = append(opts.RetryPolicy.NonRetryableErrorTypes, work.ErrNoSlot) // asked for anew instead: it uses up no attempt
	return workflow.WithActivityOptions(ctx, opts)
}

// local options: reads of the store and pure work, done by whichever worker has the workflow.
func local(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
			NonRetryableErrorTypes: []string{tooLarge, work.ErrBadInput, work.ErrNoStore},
		},
	})
}

// once makes an activity's id one that this execution has not used: one that was cancelled before it was even sent still holds its own.
func (e *engine) once(id string) string {
	if e.used == nil {
		e.used = map[string]int{}
	}
	if e.used[id]++; e.used[id] > 1 {
		return fmt.Sprintf("%s-%d", id, e.used[id])
	}
	return id
}

// call options: one delivery of one call. Temporal never tries it again; the workflow does.
func (e *engine) call(ctx workflow.Context, queue, id, summary string, timeout, wait time.Duration) workflow.Context {
	const slack = 10 * time.Minute // for composing, storing and a machine that slept
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             e.once(id),
		TaskQueue:              queue,
		ScheduleToStartTimeout: wait,
		StartToCloseTimeout:    timeout + slack,
		HeartbeatTimeout:       time.Duration(e.in.Options.HeartbeatMS) * time.Millisecond,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}
