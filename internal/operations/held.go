package operations

import (
	"cmp"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// transient is how often work on a directory may fail before it is reported: it fails once when a worker is replaced.
const transient = 2

// Held returns what blocks the open workflow of a run that is not paused: a full disk, a missing worker, or repeated
// failures of work on the directory. The workflow is asked only if it is ahead of the directory. Nil: nothing blocks
// it, or it is not known.
func (o Operator) Held(ctx context.Context, runID string, effective run.EffectiveStatus) *run.Held {
	if effective.Liveness != run.LiveOpen {
		return nil
	}
	var found *run.Held
	ahead := effective.Live != effective.Recorded
	if ahead {
		if found = o.queryHeld(ctx, runID); found != nil && found.DiskFull {
			return found
		}
	}
	d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	if err != nil {
		return nil
	}
	if failed := o.FailingTask(ctx, runID, d); failed != "" {
		return &run.Held{Cause: failed}
	}
	for _, p := range d.GetPendingActivities() {
		// a working worker reports at once; a frozen one only accepts the task
		if claimed, waits := contract.ClaimInActivityID(p.GetActivityId()); waits && p.GetHeartbeatDetails() == nil {
			return &run.Held{Waits: true,
				Cause: fmt.Sprintf("host %s may still be making the call, and no worker answers there; start one, "+
					"or wait: the call is made elsewhere after %s", claimed.Host, claimed.Until)}
		}
	}
	for _, p := range d.GetPendingActivities() {
		if f := p.GetLastFailure(); f != nil && p.GetAttempt() > transient {
			return &run.Held{Cause: p.GetActivityType().GetName() + " failed, last with: " + f.GetMessage()}
		}
	}
	if missing := o.missing(ctx, d); missing != "" {
		return &run.Held{Cause: missing}
	}
	// it may be waiting for a store
	if len(d.GetPendingActivities()) == 0 && d.GetPendingWorkflowTask() == nil && effective.Status.Class() == run.Live {
		if !ahead {
			found = o.queryHeld(ctx, runID)
		}
		return found
	}
	return nil
}

// FailingTask describes the workflow task that a worker of another build cannot complete; empty: none, or it is not
// known. The server records the first failure only.
func (o Operator) FailingTask(ctx context.Context, runID string,
	d *workflowservice.DescribeWorkflowExecutionResponse) string {
	attempt := d.GetPendingWorkflowTask().GetAttempt()
	if attempt <= transient {
		return ""
	}
	var failed *historypb.WorkflowTaskFailedEventAttributes
	var runs string // the build that completed the last task
	for it := o.Client.GetWorkflowHistory(ctx, runID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			return ""
		}
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			failed, runs = nil, done.GetWorkerVersion().GetBuildId() //nolint:staticcheck // the server fills no other
		} else if f := e.GetWorkflowTaskFailedEventAttributes(); f != nil {
			failed = f
		}
	}
	if failed == nil {
		return ""
	}
	return fmt.Sprintf("its workflow task failed, attempt %d, last with: %s. Worker %s has build %s, and build %s "+
		"continued the run last: start a worker of that build", attempt, run.OneLine(failed.GetFailure().GetMessage()),
		machineOf(failed.GetIdentity()), cmp.Or(failed.GetWorkerVersion().GetBuildId(), //nolint:staticcheck // as above
			o.buildOf(ctx, d, failed.GetIdentity()),
			"unknown"), runs)
}

// failingRun is what holds up an open run of a list: its failing workflow task. The list does not have that.
func (o Operator) failingRun(ctx context.Context, runID string, effective run.EffectiveStatus) *run.Held {
	if effective.Liveness != run.LiveOpen || effective.NoWorker != nil {
		return nil
	}
	d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	if err != nil {
		return nil
	}
	if failed := o.FailingTask(ctx, runID, d); failed != "" {
		return &run.Held{Cause: failed}
	}
	return nil
}

// buildOf returns the build of a worker of the workflow: events of failed tasks lack that of a deployment.
func (o Operator) buildOf(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse,
	identity string) string {
	queue, err := o.Client.DescribeTaskQueue(ctx, d.GetExecutionConfig().GetTaskQueue().GetName(),
		enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return ""
	}
	for _, p := range queue.GetPollers() {
		if p.GetIdentity() == identity {
			return cmp.Or(p.GetDeploymentOptions().GetBuildId(), p.GetWorkerVersionCapabilities().GetBuildId()) //nolint:staticcheck // of workers without a deployment
		}
	}
	return ""
}

// Pausing describes a pause of a working run that was requested and has not begun; empty: none, or it is not known.
// Only the workflow knows, and it needs a worker to answer.
func (o Operator) Pausing(ctx context.Context, runID string, effective run.EffectiveStatus) string {
	works := effective.Status.Class() == run.Live || effective.Status == run.WaitingLimit
	if effective.Liveness != run.LiveOpen || effective.NoWorker != nil || effective.Held != nil || !works {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var answer contract.StatusAnswer
	if v, err := o.Client.QueryWorkflow(ctx, runID, "", contract.QueryStatus); err != nil || v.Get(&answer) != nil {
		return ""
	}
	return answer.Pausing
}

// queryHeld queries the workflow, which needs a worker.
func (o Operator) queryHeld(ctx context.Context, runID string) *run.Held {
	var held contract.HeldAnswer
	v, err := o.Client.QueryWorkflow(ctx, runID, "", contract.QueryHeld)
	if err != nil || v.Get(&held) != nil || !held.Held && !held.Waiting {
		return nil
	}
	return &run.Held{Cause: held.Message, DiskFull: held.Held}
}
