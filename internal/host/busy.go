package host

import (
	"context"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/workflows/contract"
)

const running = "ExecutionStatus = 'Running'"

// AnyOpen reports whether a run is open. It returns true if the server does not answer.
func AnyOpen(ctx context.Context, c client.Client, namespace string) bool {
	req := &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: running}
	open, err := c.CountWorkflow(ctx, req)
	return err != nil || open.GetCount() > 0
}

// AnyCall reports whether a call is running; its worker should not be stopped. It returns true if the server does not
// answer.
func AnyCall(ctx context.Context, c client.Client, namespace string) bool {
	var token []byte
	for {
		req := &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, Query: running,
			NextPageToken: token}
		page, err := c.ListWorkflow(ctx, req)
		calling := func(x *workflowpb.WorkflowExecutionInfo) bool { return calls(ctx, c, x.GetExecution()) }
		if err != nil || slices.ContainsFunc(page.GetExecutions(), calling) {
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
		name := p.GetActivityType().GetName()
		return (name == contract.RunPass || name == contract.Turn) &&
			p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED
	})
}
