package operations

import (
	"cmp"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
)

// closesNow is a run that closes when a message reaches it.
type closesNow struct {
	client.Client
	closed bool
	sent   int
}

func (c *closesNow) DescribeWorkflow(ctx context.Context, id, of string) (*client.WorkflowExecutionDescription, error) {
	if c.closed {
		return c.Client.DescribeWorkflow(ctx, id, of)
	}
	d := &client.WorkflowExecutionDescription{}
	d.Status = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	return d, nil
}

func (c *closesNow) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
}

func (c *closesNow) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.closed = true
	c.sent++
	return nil, serviceerror.NewNotFound("workflow execution already completed")
}

// TestRevertOfARunThatCloses: its end is on disk, and its workflow closes before it handles the message.
func TestRevertOfARunThatCloses(t *testing.T) {
	o, d, started := closing(t, run.Failed)
	c := &closesNow{Client: o.Client}
	o.Client = c
	back, err := o.Revert(t.Context(), d, Reverting{To: "cp-1"})
	require.NoError(t, err)
	require.Equal(t, []any{1, 1, 2, "cp-1"}, []any{c.sent, len(*started), back.Epoch, back.Checkpoint})
	require.Equal(t, "cp-1", (*started)[0].Reopen.Revert.To)
}

// TestResumeOfARunThatCloses: its end is on disk, and its workflow closes while the resume looks at it.
func TestResumeOfARunThatCloses(t *testing.T) {
	t.Run("before the message", func(t *testing.T) {
		o, d, started := closing(t, run.Cancelled)
		c := &closesLooked{closesNow{Client: o.Client}}
		o.Client = c
		back, err := o.Resume(t.Context(), d, Reopening{})
		require.NoError(t, err)
		require.Equal(t, []any{0, 1, 2}, []any{c.sent, len(*started), back.Epoch})
	})
	t.Run("after it refused the message", func(t *testing.T) {
		o, d, started := closing(t, run.Cancelled)
		c := &refusesLast{closesNow: closesNow{Client: o.Client}}
		o.Client = c
		back, err := o.Resume(t.Context(), d, Reopening{})
		require.NoError(t, err)
		require.Equal(t, []any{1, 1, 1, 2}, []any{c.sent, c.awaited, len(*started), back.Epoch})
	})
	t.Run("not when it refused for another reason", func(t *testing.T) {
		o, d, started := closing(t, run.Cancelled)
		c := &refusesLast{closesNow: closesNow{Client: o.Client}, status: run.Running}
		o.Client = c
		_, err := o.Resume(t.Context(), d, Reopening{})
		require.ErrorContains(t, err, "it accepts no more messages")
		require.Equal(t, []any{1, 0, 0}, []any{c.sent, c.awaited, len(*started)})
	})
}

// closesLooked is a run that closes after its workflow was found open once.
type closesLooked struct{ closesNow }

func (c *closesLooked) DescribeWorkflow(ctx context.Context, id, of string) (*client.WorkflowExecutionDescription,
	error) {
	d, err := c.closesNow.DescribeWorkflow(ctx, id, of)
	c.closed = true
	return d, err
}

// refusesLast is a run whose workflow refuses the message, because it writes its end, and closes then.
type refusesLast struct {
	closesNow
	client.WorkflowRun
	status  run.Status
	awaited int
}

func (c *refusesLast) UpdateWorkflow(context.Context,
	client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.sent++
	return nil, temporal.NewApplicationErrorWithOptions("the run is cancelled: it accepts no more messages", "Refused",
		temporal.ApplicationErrorOptions{NonRetryable: true,
			Details: []any{*run.Conflict(cmp.Or(c.status, run.Cancelled), run.Resume, run.Terms{})}})
}

func (c *refusesLast) GetWorkflow(context.Context, string, string) client.WorkflowRun { return c }

func (c *refusesLast) Get(context.Context, any) error {
	c.closed = true
	c.awaited++
	return nil
}

func (c *refusesLast) DescribeWorkflowExecution(ctx context.Context, id,
	of string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return c.Client.DescribeWorkflowExecution(ctx, id, of)
}
