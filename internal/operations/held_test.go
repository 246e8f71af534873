package operations

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// fakeRun is an open workflow.
type fakeRun struct {
	client.Client
	held    *workflows.HeldAnswer // nil: no worker answers
	pending []*workflowpb.PendingActivityInfo
	queries int
	needs   *Needs // in the memo
	task    *workflowpb.PendingWorkflowTaskInfo
	polled  []string
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

func (f *fakeRun) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d := &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: f.pending, PendingWorkflowTask: f.task}
	if f.needs != nil {
		p, err := converter.GetDefaultDataConverter().ToPayload(f.needs)
		if err != nil {
			return nil, err
		}
		d.WorkflowExecutionInfo = &workflowpb.WorkflowExecutionInfo{
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{MemoNeeds: p}},
		}
	}
	return d, nil
}

func (f *fakeRun) DescribeTaskQueue(_ context.Context, queue string,
	_ enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	d := &workflowservice.DescribeTaskQueueResponse{}
	if slices.Contains(f.polled, queue) {
		d.Pollers = []*taskqueuepb.PollerInfo{{Identity: "1@elsewhere@", LastAccessTime: timestamppb.Now()}}
	}
	return d, nil
}

func TestHeldNamesMissingCapabilities(t *testing.T) {
	n := &Needs{Queue: "q", Store: "s3://b", Programs: []string{"claude", "/opt/my agent"}}
	waits := func(queue string, ago time.Duration) []*workflowpb.PendingActivityInfo {
		return []*workflowpb.PendingActivityInfo{{
			ActivityType:    &commonpb.ActivityType{Name: contract.RunPass},
			State:           enumspb.PENDING_ACTIVITY_STATE_SCHEDULED,
			ScheduledTime:   timestamppb.New(time.Now().Add(-ago)),
			ActivityOptions: &activitypb.ActivityOptions{TaskQueue: &taskqueuepb.TaskQueue{Name: queue}},
		}}
	}
	task := &workflowpb.PendingWorkflowTaskInfo{State: enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED,
		ScheduledTime: timestamppb.New(time.Now().Add(-time.Hour))}
	mine := contract.ProgramQueue("q-calls", "/opt/my agent")
	for _, row := range []struct {
		name string
		run  fakeRun
		want string // beginning; empty: nothing holds it up
	}{
		{"a program", fakeRun{needs: n, pending: waits("q-calls-claude", time.Minute)},
			"no worker that reaches the store s3://b has the program claude (queue q-calls-claude, since "},
		{"a program with a path", fakeRun{needs: n, pending: waits(mine, time.Minute)},
			"no worker that reaches the store s3://b has the program /opt/my agent (queue " + mine},
		{"a browser", fakeRun{needs: n, pending: waits("q-browser", time.Minute)},
			"no worker that reaches the store s3://b has a browser (queue q-browser"},
		{"the store", fakeRun{needs: n, task: task}, "no worker reaches the store s3://b (queue q,"},
		{"busy workers", fakeRun{needs: n, pending: waits("q-calls-claude", time.Minute),
			polled: []string{"q-calls-claude"}}, ""},
		{"a task of this moment", fakeRun{needs: n, pending: waits("q-calls-claude", 0)}, ""},
		{"a run that is bound to its host", fakeRun{pending: waits("q-calls-claude", time.Minute)}, ""},
		{"a wait of the workflow", fakeRun{needs: n,
			held: &workflows.HeldAnswer{Waiting: true, Message: "list s3://b: the store is not reachable"}},
			"list s3://b: the store is not reachable"},
	} {
		t.Run(row.name, func(t *testing.T) {
			held := Operator{Client: &row.run}.Held(t.Context(), "x",
				run.EffectiveStatus{Status: run.Running, Recorded: run.Running, Live: run.Running, Liveness: run.LiveOpen})
			if row.want == "" {
				require.Nil(t, held)
				return
			}
			require.NotNil(t, held)
			require.True(t, strings.HasPrefix(held.Cause, row.want), held.Cause)
			require.False(t, held.DiskFull)
		})
	}
}

func TestHeld(t *testing.T) {
	failing := func(attempt int32) []*workflowpb.PendingActivityInfo {
		return []*workflowpb.PendingActivityInfo{
			{ActivityType: &commonpb.ActivityType{Name: "RunPass"}, Attempt: 1},
			{ActivityType: &commonpb.ActivityType{Name: "Project"}, Attempt: attempt,
				LastFailure: &failurepb.Failure{Message: "open /runs/x/events.jsonl: permission denied"}},
		}
	}
	waiting := func(beat *commonpb.Payloads) []*workflowpb.PendingActivityInfo {
		id := "pass-012" + contract.HostClaim{Host: "far", Until: "2026-01-02T03:04:05.000Z"}.Suffix()
		return []*workflowpb.PendingActivityInfo{{ActivityId: id, HeartbeatDetails: beat, Attempt: 1}}
	}
	ahead := run.EffectiveStatus{Status: run.Running, Recorded: run.Running, Live: run.Paused, Liveness: run.LiveOpen}
	level := run.EffectiveStatus{Status: run.Running, Recorded: run.Running, Live: run.Running, Liveness: run.LiveOpen}
	full := &workflows.HeldAnswer{Held: true, Message: "write /runs/x: no space left on device"}
	for _, row := range []struct {
		name      string
		effective run.EffectiveStatus
		run       fakeRun
		want      *run.Held
		queries   int
	}{
		{"a full disk", ahead, fakeRun{held: full},
			&run.Held{Cause: "write /runs/x: no space left on device", DiskFull: true}, 1},
		{"paused for something else", ahead, fakeRun{held: &workflows.HeldAnswer{}}, nil, 1},
		{"no worker", ahead, fakeRun{}, nil, 1},
		{"at work", level, fakeRun{held: full, pending: failing(1)[:1]}, nil, 0},
		{"at work in the workflow", level, fakeRun{held: &workflows.HeldAnswer{}}, nil, 1},
		{"work that fails", level, fakeRun{pending: failing(7)},
			&run.Held{Cause: "Project failed, last with: open /runs/x/events.jsonl: permission denied"}, 0},
		{"work that failed once", level, fakeRun{pending: failing(2)}, nil, 0},
		{"waits for another host", level, fakeRun{pending: waiting(nil)}, &run.Held{
			Waits: true,
			Cause: "host far may still be making the call, and no worker answers there; start one, or wait: the " +
				"call is made elsewhere after 2026-01-02T03:04:05.000Z",
		}, 0},
		{"has found the other host", level, fakeRun{pending: waiting(&commonpb.Payloads{})}, nil, 0},
		{"closed", run.EffectiveStatus{Liveness: run.LiveClosed, Recorded: run.Done},
			fakeRun{held: full, pending: failing(7)},
			nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, Operator{Client: &row.run}.Held(t.Context(), "x", row.effective))
			require.Equal(t, row.queries, row.run.queries)
		})
	}
}
