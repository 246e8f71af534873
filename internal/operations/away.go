package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/run"
)

const (
	workerWait = 5 * time.Second  // for a worker that is being started
	answerWait = 30 * time.Second // for the answer to a message

	updates     = 20                     // how often a superseded message is sent, at most
	updateAgain = 500 * time.Millisecond // for the next execution
)

// attended returns when a worker polls the workflow tasks of an open run; it waits for a worker that is starting.
// Otherwise no message would be answered before its deadline. Missing information from the server is not an obstacle.
func (o Operator) attended(ctx context.Context, runID string) error {
	d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil //nolint:nilerr // the message itself reports the error
	}
	if failed := o.FailingTask(ctx, runID, d); failed != "" {
		return errors.New(failed)
	}
	queue := taskQueue{d.GetExecutionConfig().GetTaskQueue().GetName(), enumspb.TASK_QUEUE_TYPE_WORKFLOW}
	pinned := listedVersion(pinnedBy(d.GetWorkflowExecutionInfo()))
	last := time.Now().Add(workerWait)
	for {
		none := o.unattended(ctx, queue, pinned)
		switch {
		case none == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(last):
			return fmt.Errorf("no %s takes task queue %s, so the message cannot be processed. %s; then send it again",
				none.Needed(), queue.name, none.Fix(runID, "starter server start or the worker program, on the host of the run"))
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// unattended returns nil if a worker polls a queue that gets the workflow tasks of a run, as far as the server knows.
func (o Operator) unattended(ctx context.Context, queue taskQueue, pinned pinnedVersion) *run.NoWorker {
	o.WorkerStarts = false // its first poll is awaited
	return o.polled().noWorker(ctx, run.EffectiveStatus{Liveness: run.LiveOpen}, []taskQueue{queue}, pinned)
}
