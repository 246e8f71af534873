package serve

import (
	"context"
	"fmt"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/work"
)

const running = "ExecutionStatus = 'Running'"

// AnyOpen says whether a run is open. It is true when it cannot be told.
func AnyOpen(ctx context.Context, c client.Client, namespace string) bool {
	open, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: running})
	return err != nil || open.GetCount() > 0
}

// Scheduled are the schedules that will start something: they are not paused, and have a next time.
func Scheduled(ctx context.Context, c client.Client) ([]string, error) {
	all, err := c.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: 100})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	var names []string
	for all.HasNext() {
		s, err := all.Next()
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if !s.Paused && len(s.NextActionTimes) > 0 {
			names = append(names, s.ID)
		}
	}
	slices.Sort(names)
	return names, nil
}

// anyScheduled is true when it cannot be told.
func anyScheduled(ctx context.Context, c client.Client) bool {
	names, err := Scheduled(ctx, c)
	return err != nil || len(names) > 0
}

// AnyCall says whether a call is being made: a worker that makes one should not be stopped. It is true when it cannot be told.
func AnyCall(ctx context.Context, c client.Client, namespace string) bool {
	var token []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: running, NextPageToken: token})
		if err != nil || slices.ContainsFunc(page.GetExecutions(), func(x *workflowpb.WorkflowExecutionInfo) bool { return calls(ctx, c, x.GetExecution()) }) {
			return true
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return false
		}
	}
}

func calls(ctx context.Context, c client.Client, x *commonpb.WorkflowExecution) bool {
	d, err := c.DescribeWorkflowExecution(ctx, x.GetWorkflowId(), x.GetRunId())
	if err != nil {
		return true
	}
	return slices.ContainsFunc(d.GetPendingActivities(), func(p *workflowpb.PendingActivityInfo) bool {
		return p.GetActivityType().GetName() == work.RunPass && p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
	})
}
