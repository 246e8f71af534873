package operate

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

// transient is how often work on a directory may fail before anybody is told: a worker that was replaced fails once.
const transient = 2

// Held names what keeps the open workflow of a run from continuing, although nobody has paused it: a full disk, what no worker has, or work on the directory that fails
// again and again. stands is where the run stands; the workflow is asked only where that is ahead of the directory. nil: nothing does, or it is not known.
func (o Operator) Held(ctx context.Context, runID string, stands run.Standing) *run.Held {
	if stands.Liveness != run.LiveOpen {
		return nil
	}
	var said *run.Held
	ahead := stands.Live != stands.Recorded
	if ahead {
		if said = o.says(ctx, runID); said != nil && said.DiskFull {
			return said
		}
	}
	d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	if err != nil {
		return nil
	}
	for _, p := range d.GetPendingActivities() {
		if claimed, waits := work.WaitsFor(p.GetActivityId()); waits && p.GetHeartbeatDetails() == nil { // a worker that takes it reports at once; a frozen one has only taken it
			return &run.Held{Waits: true, Cause: fmt.Sprintf("host %s may still be making the call, and no worker answers there; start one, or wait: the call is made elsewhere after %s", claimed.Host, claimed.Until)}
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
	if len(d.GetPendingActivities()) == 0 && d.GetPendingWorkflowTask() == nil && stands.Status.Class() == run.Live { // it may wait for a store
		if !ahead {
			said = o.says(ctx, runID)
		}
		return said
	}
	return nil
}

// says asks the workflow itself, which needs a worker.
func (o Operator) says(ctx context.Context, runID string) *run.Held {
	var held workflows.HeldAnswer
	v, err := o.Client.QueryWorkflow(ctx, runID, "", workflows.QueryHeld)
	if err != nil || v.Get(&held) != nil || !held.Held && !held.Waits {
		return nil
	}
	return &run.Held{Cause: held.Message, DiskFull: held.Held}
}
