package operate

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// fakeRun is an open workflow.
type fakeRun struct {
	client.Client
	held    *workflows.HeldAnswer // nil: no worker answers
	pending []*workflowpb.PendingActivityInfo
	queries int
}

func (f *fakeRun) QueryWorkflow(_ context.Context, _, _, query string, _ ...any) (converter.EncodedValue, error) {
	f.queries++
	if query != workflows.QueryHeld || f.held == nil {
		return nil, errors.New("no worker")
	}
	return answer{*f.held}, nil
}

type answer struct{ held workflows.HeldAnswer }

func (a answer) HasValue() bool { return true }

func (a answer) Get(to any) error {
	*to.(*workflows.HeldAnswer) = a.held
	return nil
}

func (f *fakeRun) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: f.pending}, nil
}

func TestHeld(t *testing.T) {
	failing := func(attempt int32) []*workflowpb.PendingActivityInfo {
		return []*workflowpb.PendingActivityInfo{
			{ActivityType: &commonpb.ActivityType{Name: "RunPass"}, Attempt: 1},
			{ActivityType: &commonpb.ActivityType{Name: "Project"}, Attempt: attempt, LastFailure: &failurepb.Failure{Message: "open /runs/x/events.jsonl: permission denied"}},
		}
	}
	ahead := run.Standing{Status: run.Running, Recorded: run.Running, Live: run.Paused, Liveness: run.LiveOpen}
	level := run.Standing{Status: run.Running, Recorded: run.Running, Live: run.Running, Liveness: run.LiveOpen}
	full := &workflows.HeldAnswer{Held: true, Message: "write /runs/x: no space left on device"}
	for _, row := range []struct {
		name    string
		stands  run.Standing
		run     fakeRun
		want    *run.Held
		queries int
	}{
		{"a full disk", ahead, fakeRun{held: full}, &run.Held{Cause: "write /runs/x: no space left on device", DiskFull: true}, 1},
		{"paused for something else", ahead, fakeRun{held: &workflows.HeldAnswer{}}, nil, 1},
		{"no worker", ahead, fakeRun{}, nil, 1},
		{"at work", level, fakeRun{held: full}, nil, 0},
		{"work that fails", level, fakeRun{pending: failing(7)}, &run.Held{Cause: "Project failed, last with: open /runs/x/events.jsonl: permission denied"}, 0},
		{"work that failed once", level, fakeRun{pending: failing(2)}, nil, 0},
		{"closed", run.Standing{Liveness: run.LiveClosed, Recorded: run.Done}, fakeRun{held: full, pending: failing(7)}, nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, Operator{Client: &row.run}.Held(t.Context(), "x", row.stands))
			require.Equal(t, row.queries, row.run.queries)
		})
	}
}
