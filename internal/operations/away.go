package operations

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

const (
	workerWait = 5 * time.Second  // for a worker that is being started
	answerWait = 30 * time.Second // for the answer to a message
)

// attended returns when a worker polls the workflow tasks of an open run; it waits for a worker that is starting.
// Otherwise no message would be answered before its deadline. Missing information from the server is no obstacle.
func (o Operator) attended(ctx context.Context, runID string) error {
	d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
	if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil //nolint:nilerr // the message itself reports the error
	}
	queue := d.GetExecutionConfig().GetTaskQueue().GetName()
	last := time.Now().Add(workerWait)
	for !o.attendedNow(ctx, queue) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(last) {
			return fmt.Errorf("no worker takes task queue %s, so the message cannot be processed. Start one on the "+
				"host of the run (starter server start, or the worker program), then send it again", queue)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// attendedNow reports whether a worker polls a queue for workflow tasks, as far as the server knows.
func (o Operator) attendedNow(ctx context.Context, queue string) bool {
	found, err := o.Pollers(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	return err != nil || len(found.Identities) > 0
}
