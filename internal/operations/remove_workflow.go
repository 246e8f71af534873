package operations

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/run"
)

// deleteFor bounds the wait for the server, which deletes in the background: at once, three seconds late if the
// execution has just closed, and half a minute or more with default settings.
const deleteFor = 5 * time.Second

// workflowParts lists the closed executions of the run's workflow, over all epochs and continue-as-new, and those of
// its lanes and notices.
func (o Operator) workflowParts(ctx context.Context, p *Removable, r Removal, _ removed, _ []removed) error {
	if r.Offline {
		p.keep("its workflow executions in Temporal, until their retention ends (--offline)")
		return nil
	}
	if p.EffectiveStatus.Liveness == run.LiveUnknown {
		return nil // a problem is recorded
	}
	all, open, err := o.executionsOf(ctx, p.RunID)
	if err != nil {
		return err
	}
	if open > 0 && len(p.Problems) == 0 {
		p.keep("%s of its notifications in Temporal: the server closes them", counted(open, "open execution"))
	}
	if len(all) == 0 {
		return nil
	}
	p.part("workflow", fmt.Sprintf("%s, namespace %s", o.Address, o.Namespace), Amount{Objects: len(all)},
		counted(len(all), "closed execution")+"; the server deletes them in the background",
		func(ctx context.Context) error {
			return o.deleteExecutions(ctx, p.RunID, all)
		})
	return nil
}

// executionsOf lists the closed executions of a run, its lanes and its notices, and counts the open ones. The newest is
// requested separately, because the list may be behind.
func (o Operator) executionsOf(ctx context.Context,
	id string) (closed []*commonpb.WorkflowExecution, open int, err error) {
	seen := map[string]bool{}
	add := func(x *commonpb.WorkflowExecution, status enumspb.WorkflowExecutionStatus) {
		switch {
		case seen[x.GetRunId()]:
		case status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			open++
		default:
			closed = append(closed, x)
		}
		seen[x.GetRunId()] = true
	}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: o.Namespace, PageSize: pageSize, Query: fmt.Sprintf("WorkflowId = %s OR WorkflowId STARTS_WITH %s OR "+
			"WorkflowId STARTS_WITH %s", quoted(id), quoted("notice/"+id+"/"), quoted(id+".")),
	}
	for {
		page, err := o.Client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, 0, fmt.Errorf("list the executions of run %s: %w", id, err)
		}
		for _, x := range page.GetExecutions() {
			add(x.GetExecution(), x.GetStatus())
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			break
		}
	}
	d, err := o.Client.DescribeWorkflowExecution(ctx, id, "")
	if gone := (*serviceerror.NotFound)(nil); errors.As(err, &gone) {
		return closed, open, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("ask Temporal about run %s: %w", id, err)
	}
	add(d.GetWorkflowExecutionInfo().GetExecution(), d.GetWorkflowExecutionInfo().GetStatus())
	return closed, open, nil
}

// deleteExecutions deletes executions and waits a moment until the server no longer has them. It never gets an open
// one: deleting would end it.
func (o Operator) deleteExecutions(ctx context.Context, id string, all []*commonpb.WorkflowExecution) error {
	for _, x := range all {
		_, err := o.Client.WorkflowService().DeleteWorkflowExecution(ctx,
			&workflowservice.DeleteWorkflowExecutionRequest{Namespace: o.Namespace, WorkflowExecution: x})
		if gone := (*serviceerror.NotFound)(nil); err != nil && !errors.As(err, &gone) {
			return fmt.Errorf("delete execution %s: %w", x.GetRunId(), err)
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(deleteFor); ; {
		left, _, err := o.executionsOf(ctx, id)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-late:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
