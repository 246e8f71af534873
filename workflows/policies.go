package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/workflows/contract"
)

// tooLarge is the type of the SDK's error for a payload above the server's limit: a retry cannot succeed.
const tooLarge = "payloadSizeError"

// directoryOptions are for short activities on the host of the run directory, retried without limit.
func (e *engine) directoryOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           e.in.DirQueue,
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    time.Duration(e.in.Options.HeartbeatMS) * time.Millisecond,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
			NonRetryableErrorTypes: []string{tooLarge, contract.ErrClaimed, contract.ErrNewer, contract.ErrDamaged},
		},
	})
}

// checkoutOptions are for activities on checkouts, which may be large and may need an operator.
func (e *engine) checkoutOptions(ctx workflow.Context, summary string) workflow.Context {
	ctx = e.directoryOptions(ctx, summary)
	opts := workflow.GetActivityOptions(ctx)
	opts.StartToCloseTimeout = time.Hour
	opts.RetryPolicy.MaximumAttempts = 6
	// scheduled again instead: it uses up no attempt
	opts.RetryPolicy.NonRetryableErrorTypes = append(opts.RetryPolicy.NonRetryableErrorTypes, contract.ErrNoSlot)
	return workflow.WithActivityOptions(ctx, opts)
}

// localOptions are for reads of the store and pure functions, on any worker.
func localOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
			NonRetryableErrorTypes: []string{tooLarge, contract.ErrBadInput, contract.ErrNoStore},
		},
	})
}

// uniqueActivityID makes an id unique within this execution: a cancelled activity still holds its id.
func (e *engine) uniqueActivityID(id string) string {
	if e.activityIDs[id]++; e.activityIDs[id] > 1 {
		return fmt.Sprintf("%s-%d", id, e.activityIDs[id])
	}
	return id
}

// callOptions are for one delivery of a call. Temporal does not retry it; the workflow does.
func (e *engine) callOptions(ctx workflow.Context, queue, id, summary string,
	timeout, wait time.Duration) workflow.Context {
	const slack = 10 * time.Minute // for composing, storing, and a host that was suspended
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             e.uniqueActivityID(id),
		TaskQueue:              queue,
		ScheduleToStartTimeout: wait,
		StartToCloseTimeout:    timeout + slack,
		HeartbeatTimeout:       time.Duration(e.in.Options.HeartbeatMS) * time.Millisecond,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}
