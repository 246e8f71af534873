package operations

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestUnansweredMessageMayTakeEffect: a worker that is frozen answers later, so the message is not reported as lost.
func TestUnansweredMessageMayTakeEffect(t *testing.T) {
	err := refusalOf("r1", "decide", client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded))
	require.EqualError(t, err, "decide run r1: its worker did not answer in time, and may still act on the message; see "+
		"starter status r1 before you send it again")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// endingRun is a run that closes while a message is on its way.
type endingRun struct {
	*fakeTemporal
	err error
}

func (c endingRun) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
}

func (c endingRun) UpdateWorkflow(_ context.Context,
	o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.described[o.WorkflowID] = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	return nil, c.err
}

func TestMessageToARunThatCloses(t *testing.T) {
	for name, err := range map[string]error{
		"closed":           serviceerror.NewNotFound("workflow execution already completed"),
		"closed in answer": temporal.NewApplicationError("the workflow completed", "AcceptedUpdateCompletedWorkflow"),
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := terminal(t, nil)
			d := journaled(t, o, "run-2",
				`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"pipeline":"small",`+
					`"run_id":"run-2"}}`,
				`{"seq":2,"ts":"2026-01-02T03:04:06.000Z","kind":"run.end","phase":null,"payload":{"status":"cancelled"}}`)
			o.Client = endingRun{&fakeTemporal{described: map[string]enumspb.WorkflowExecutionStatus{
				"run-2": enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}, err}
			_, err := o.SendUpdate(t.Context(), d, workflows.VerbPause, workflows.Message{})
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.True(t, refused.Closed)
			var conflict *run.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, run.Cancelled, conflict.From)
			require.Contains(t, conflict.Allowed, run.Resume)
			require.EqualError(t, err, "pause refused: "+conflict.Error())
		})
	}
}

// A question in a line that the directory has lost cannot be answered there: the refusal says so.
func TestDecisionOnDamagedDirectory(t *testing.T) {
	o, d := terminal(t, nil)
	o.Client = &fakeTemporal{described: map[string]enumspb.WorkflowExecutionStatus{
		"run-1": enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}
	_, err := o.Decide(t.Context(), d, workflows.Message{Action: run.ActionContinue})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.NotContains(t, err.Error(), "damaged")
	p, err := d.Meta()
	require.NoError(t, err)
	require.NoError(t, os.Truncate(d.Path(layout.EventsFile), p.Events.Size-20))
	_, err = o.Decide(t.Context(), d, workflows.Message{Action: run.ActionContinue})
	require.ErrorContains(t, err, "But its directory is damaged: "+d.Path(layout.EventsFile)+" is not the file that "+
		"meta.json has seen (1 events, ")
}
