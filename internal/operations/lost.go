package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// WorkerIdentity names a worker for Temporal: its process, and its host, whose next worker knows then whether it is dead.
func WorkerIdentity(self process.Identity, host string) string { return self.Text() + "/" + host }

// workerOf returns process and host that an identity names; false: it is not that of a worker of this program.
func workerOf(identity string) (id process.Identity, host string, ok bool) {
	i := strings.LastIndex(identity, "/")
	if i < 0 {
		return id, "", false
	}
	id, ok = process.Parse(identity[:i])
	return id, identity[i+1:], ok
}

// machineOf returns the process and the machine of an identity, for people: 1234@machine.
func machineOf(identity string) string {
	short, _, _ := strings.Cut(identity, "/")
	return strings.TrimSuffix(short, "@")
}

// deadWorker reports whether an identity is that of a worker of a host that has ended.
func deadWorker(identity, host string) bool {
	id, of, ok := workerOf(identity)
	return ok && of == host && !id.Alive()
}

// EndLost fails the activities of workers of this host that are dead, in the runs that this host has recorded, so that they
// are scheduled again at once: Temporal notices only after a heartbeat timeout. A call whose supervisor lives is joined.
func (o Operator) EndLost(ctx context.Context) error {
	all, err := o.openRuns()
	for _, r := range all {
		if ctx.Err() != nil {
			break
		}
		if r.status.Class() == run.OperatorPause { // it has no activity
			continue
		}
		if one := o.endLost(ctx, r.id); one != nil {
			err = errors.Join(err, fmt.Errorf("end the activities of a dead worker in run %s: %w", r.id, one))
		}
	}
	return err
}

func (o Operator) endLost(ctx context.Context, id string) error {
	d, err := o.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil || d.WorkflowExecutionInfo.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return ignoreNotFound(err)
	}
	var dead []string
	for _, a := range d.PendingActivities {
		if a.State == enumspb.PENDING_ACTIVITY_STATE_STARTED && deadWorker(a.LastWorkerIdentity, o.Host) {
			dead = append(dead, a.ActivityId)
		}
	}
	if len(dead) == 0 && d.PendingWorkflowTask == nil {
		return nil
	}
	// workflow tasks wait for the dead worker's sticky queue otherwise
	_, err = o.Client.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
		Namespace: o.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
	err = ignoreNotFound(err)
	for _, activity := range dead {
		lost := temporal.NewApplicationError("the worker has ended", contract.ErrWorkerLost, contract.Heartbeat{Host: o.Host})
		err = errors.Join(err, ignoreNotFound(o.Client.CompleteActivityByID(ctx, o.Namespace, id, "", activity, nil, lost)))
	}
	return err
}

// ignoreNotFound returns nil if what was to end has ended.
func ignoreNotFound(err error) error {
	if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
		return nil
	}
	return err
}
