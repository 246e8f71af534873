package operations

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

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
