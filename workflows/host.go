package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// host runs activities, and keeps what holds them up.
type host struct {
	*execution
	held        contract.HeldAnswer // cause of the current wait
	steps       int                 // done by this execution
	activityIDs map[string]int      // uses of each activity id
}

func (ho *host) heldUp() contract.HeldAnswer { return ho.held }

func (ho *host) hold(h contract.HeldAnswer) { ho.held = h }

// stepDone counts the steps of this execution.
func (ho *host) stepDone() { ho.steps++ }

// continueSuggested reports whether a waiting execution has enough history.
func (ho *host) continueSuggested(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// clearDiskFull ends the message that a full disk holds the run up.
func (ho *host) clearDiskFull(ctx workflow.Context) {
	if ho.held.Held {
		ho.held = contract.HeldAnswer{}
		ho.show(ctx)
	}
}

// historyFull reports whether the next execution should continue.
func (ho *host) historyFull(ctx workflow.Context) bool {
	limit := ho.in.Options.ContinueAfter
	if limit > 0 {
		return ho.steps >= limit
	}
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// directoryOptions are for short activities on the host of the run directory, retried without limit.
func (ho *host) directoryOptions(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           ho.in.DirQueue,
		StartToCloseTimeout: 5 * time.Minute,
		HeartbeatTimeout:    time.Duration(ho.in.Options.HeartbeatMS) * time.Millisecond,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
			NonRetryableErrorTypes: []string{tooLarge, contract.ErrClaimed, contract.ErrNewer, contract.ErrDamaged},
		},
	})
}

// checkoutOptions are for activities on checkouts, which may be large and may need an operator.
func (ho *host) checkoutOptions(ctx workflow.Context, summary string) workflow.Context {
	ctx = ho.directoryOptions(ctx, summary)
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
func (ho *host) uniqueActivityID(id string) string {
	if ho.activityIDs[id]++; ho.activityIDs[id] > 1 {
		return fmt.Sprintf("%s-%d", id, ho.activityIDs[id])
	}
	return id
}

// callOptions are for one delivery of a call. Temporal does not retry it; the workflow does.
func (ho *host) callOptions(ctx workflow.Context, queue, id, summary string,
	timeout, wait time.Duration) workflow.Context {
	const slack = 10 * time.Minute // for composing, storing, and a host that was suspended
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:             ho.uniqueActivityID(id),
		TaskQueue:              queue,
		ScheduleToStartTimeout: wait,
		StartToCloseTimeout:    timeout + slack,
		HeartbeatTimeout:       time.Duration(ho.in.Options.HeartbeatMS) * time.Millisecond,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// callQueue returns the task queue for calls of a program.
func (ho *host) callQueue(program string) string {
	if ho.hostBound() || program == "" {
		return ho.in.Calls
	}
	return contract.ProgramQueue(ho.in.Calls, program)
}

// screenshotQueue returns the task queue for screenshots. If the definition installs a browser, any worker can
// take them.
func (ho *host) screenshotQueue(s contract.Step) string {
	if ho.hostBound() || len(s.Shots.Install) > 0 {
		return ho.in.Calls
	}
	return contract.BrowserQueue(ho.in.Calls)
}

// readStore runs a local activity that reads the store, and retries while the store is unreachable.
func (ho *host) readStore(ctx workflow.Context, activity string, in, out any) error {
	for n := 0; ; n++ {
		err := workflow.ExecuteLocalActivity(localOptions(ctx), activity, in).Get(ctx, out)
		if err == nil || ctx.Err() != nil || permanent(err) {
			return err
		}
		if err := ho.awaitRetry(ctx, n, errorMessage(err), never); err != nil {
			return err
		}
	}
}

// Backoff for a host that lacks the store or a program.
const (
	unavailableRetryMin = time.Second
	unavailableRetryMax = time.Minute
)

// awaitRetry waits before the attempt that follows n others, and shows the cause. The run is not paused. A message
// that asks for a retry, such as a resume, ends the wait, and so does over.
func (ho *host) awaitRetry(ctx workflow.Context, n int, cause string, over func() bool) error {
	asked := ho.inbox.requested()
	next := time.Duration(float64(min(unavailableRetryMin<<min(n, 10), unavailableRetryMax)) * ho.in.Options.TimeScale)
	_, err := ho.wait(ctx, wait{name: waitHost, until: workflow.Now(ctx).Add(next), cause: cause,
		summary: "before the next attempt: " + run.OneLine(cause),
		wakes:   func() bool { return ho.inbox.requested() != asked || over() }})
	ho.held = contract.HeldAnswer{}
	ho.show(ctx)
	return err
}

func never() bool { return false }
