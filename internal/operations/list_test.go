package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// fakeTemporal lists executions, a page each, and describes those of described.
type fakeTemporal struct {
	describing func() // before a workflow is described
	client.Client
	executions []*workflowpb.WorkflowExecutionInfo
	described  map[string]enumspb.WorkflowExecutionStatus
	queries    []string
	attributes bool
	cluster    fakeCluster

	pollers map[string]*taskqueuepb.PollerInfo // by queue
	asked   []string                           // queues, in order
}

func (f *fakeTemporal) DescribeTaskQueue(_ context.Context, queue string,
	_ enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	f.asked = append(f.asked, queue)
	r := &workflowservice.DescribeTaskQueueResponse{}
	if p, there := f.pollers[queue]; there {
		r.Pollers = append(r.Pollers, p)
	}
	return r, nil
}

func (f *fakeTemporal) ListWorkflow(_ context.Context,
	r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.queries = append(f.queries, r.Query)
	if !f.attributes && r.Query != allRuns {
		return nil, serviceerror.NewInvalidArgument("unknown search attribute")
	}
	at := len(r.NextPageToken)
	if at >= len(f.executions) {
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	}
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: f.executions[at : at+1],
		NextPageToken: make([]byte, at+1)}, nil
}

func (f *fakeTemporal) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	if f.describing != nil {
		f.describing()
	}
	status, there := f.described[id]
	if !there {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	d := &client.WorkflowExecutionDescription{}
	d.Status = status
	return d, nil
}

func (f *fakeTemporal) WorkflowService() workflowservice.WorkflowServiceClient { return f.cluster }

// fakeCluster is the cluster "this", and its namespace "the namespace".
type fakeCluster struct {
	workflowservice.WorkflowServiceClient
	hosted bool // it does not disclose the cluster
}

const allRuns = "WorkflowType = 'Pipeline' AND ExecutionStatus != 'ContinuedAsNew'"

func payloadOf(t *testing.T, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return p
}

func execution(t *testing.T, id string, hour int, status enumspb.WorkflowExecutionStatus,
	attributes map[string]any) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	fields := map[string]*commonpb.Payload{}
	for name, value := range attributes {
		require.Contains(t, workflows.SearchAttributes(), name)
		fields[name] = payloadOf(t, value)
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Status: status,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
		StartTime:        timestamppb.New(time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC)),
	}
}

const (
	isOpen     = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed  = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	terminated = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
)

// wrote makes a directory whose run has begun, and stands at this status.
func wrote(t *testing.T, dir, id, pipeline, kind string) {
	t.Helper()
	require.NoError(t, projector.At(dir).Take(run.Claim{Version: 1, RunID: id, Pipeline: pipeline,
		CreatedAt: "2026-01-02T03:04:05.000Z"}))
	lines := ""
	if kind != "" {
		lines = fmt.Sprintf(
			`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"pipeline":%q,"run_id":%q,`+
				`"total_passes":4}}`+"\n"+
				`{"seq":2,"ts":"2026-01-02T03:04:06.000Z","kind":"phase.start","phase":"build","payload":{"phase_key":"build",`+
				`"title":"Build"}}`+"\n", pipeline, id,
		)
	}
	if kind == "done" {
		lines += `{"seq":3,"ts":"2026-01-02T03:04:07.000Z","kind":"run.end","phase":null,"payload":{"status":"done"}}` +
			"\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, layout.EventsFile), []byte(lines), 0o600))
}

func statuses(l Listing) map[string]run.Status {
	out := map[string]run.Status{}
	for _, r := range l.Runs {
		out[r.RunID] = r.EffectiveStatus.Status
	}
	return out
}

func TestListCombinesDirectoriesAndTemporal(t *testing.T) {
	state, root := t.TempDir(), t.TempDir()
	for id, kind := range map[string]string{"open": "running", "over": "done", "dead": "running", "late": "running",
		"lost": "running", "next": "running", "new": ""} {
		wrote(t, filepath.Join(root, id), id, "small", kind)
	}
	backup := filepath.Join(t.TempDir(), "aside")
	wrote(t, backup, "aside", "small", "done")
	require.NoError(t, Index(state, "aside", backup))
	require.NoError(t, Index(state, "open", filepath.Join(root, "open")))
	require.NoError(t, Index(state, "taken", backup))                   // another run's by now
	require.NoError(t, Index(state, "gone", filepath.Join(root, "no"))) // deleted; Temporal knows it
	require.NoError(t, Index(state, "forgotten", filepath.Join(root, "no")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a file"), nil, 0o600))

	f := &fakeTemporal{attributes: true, described: map[string]enumspb.WorkflowExecutionStatus{"late": isOpen,
		"dead": terminated, "next": isOpen}}
	score := 2.5
	f.executions = []*workflowpb.WorkflowExecutionInfo{
		execution(t, "open", 3, isOpen, map[string]any{"PassbookStatus": "paused"}),
		execution(t, "over", 3, completed, nil),
		execution(t, "dead", 3, terminated, nil),
		execution(t, "next", 3, completed, nil), // its next epoch is not in the list yet
		execution(t, "gone", 5, isOpen, map[string]any{"PassbookPipeline": "big", "PassbookStatus": "running",
			"PassbookStage": "pa", "PassbookCostUSD": 1.5, "PassbookScore": score}),
		execution(t, "gone", 4, terminated, map[string]any{"PassbookStatus": "paused"}), // an epoch before
		execution(t, "there", 6, terminated, map[string]any{"PassbookPipeline": "big", "PassbookStatus": "paused"}),
	}
	rows, lost, err := Here(state, root)
	require.NoError(t, err)
	slices.Sort(lost)
	require.Equal(t, []string{"forgotten", "gone", "taken"}, lost)
	l, err := Operator{Client: f, Namespace: "default"}.List(t.Context(), rows, lost, Filter{})
	require.NoError(t, err)
	require.Equal(t, map[string]run.Status{
		"open": run.Running, "over": run.Done, "dead": run.Interrupted, "late": run.Running, "lost": run.Interrupted,
		"next": run.Running, "new": run.Pending,
		"aside": run.Done, "gone": run.Running, "there": run.Interrupted,
	}, statuses(l))
	require.Equal(t, []string{"forgotten", "taken"}, l.Forgotten)
	require.Equal(t, allRuns, f.queries[0])
	for _, r := range l.Runs {
		switch r.RunID {
		case "open":
			require.Equal(t, run.Paused, r.EffectiveStatus.Live)
			require.Equal(t, Row{
				RunID: "open", Pipeline: "small", EffectiveStatus: r.EffectiveStatus, Stage: "build", Passes: 4,
				CostKnown: "exact", StartedAt: "2026-01-02T03:04:05.000Z",
				Directory: filepath.Join(root, "open"), claim: r.claim, begun: true, why: r.why,
			}, r)
		case "over":
			require.Contains(t, r.Damage, "meta.json: no such file", "of an open run it would be written again")
		case "gone":
			require.Equal(t, Row{
				RunID: "gone", Pipeline: "big", EffectiveStatus: r.EffectiveStatus, Stage: "pa", CostUSD: 1.5, Score: &score,
				StartedAt: "2026-01-02T05:00:00.000Z",
			}, r)
		}
	}
}

func (c fakeCluster) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest,
	...grpc.CallOption) (*workflowservice.GetClusterInfoResponse, error) {
	if c.hosted {
		return nil, serviceerror.NewPermissionDenied("Request unauthorized.", "")
	}
	return &workflowservice.GetClusterInfoResponse{ClusterId: "this"}, nil
}

func (fakeCluster) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest,
	...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Id: "the namespace"}},
		nil
}

func TestListOffline(t *testing.T) {
	root := t.TempDir()
	wrote(t, filepath.Join(root, "a"), "a", "small", "running")
	wrote(t, filepath.Join(root, "b"), "b", "small", "")
	wrote(t, filepath.Join(root, "c"), "c", "small", "done")
	require.NoError(t, os.WriteFile(filepath.Join(root, "c", layout.MetaFile), []byte("{"), 0o600))
	rows, lost, err := Here(t.TempDir(), root)
	require.NoError(t, err)
	l := Offline(rows, lost, Filter{}, "nobody asked")
	require.Equal(t, map[string]run.Status{"a": run.Running, "b": run.Pending, "c": run.Done}, statuses(l))
	for _, r := range l.Runs {
		require.Equal(t, run.LiveUnknown, r.EffectiveStatus.Liveness)
		require.Equal(t, "nobody asked", r.EffectiveStatus.Detail)
		require.Contains(t, r.Damage, map[string]string{"a": "no such file", "c": "damaged"}[r.RunID])
		require.Equal(t, r.RunID == "b", r.Damage == "", "a run that has not begun has nothing to be damaged")
	}
	require.Equal(t, map[string]run.Status{"c": run.Done},
		statuses(Offline(rows, lost, Filter{Status: []run.Status{run.Done}}, "")))
}

func TestListOfAnotherNamespace(t *testing.T) {
	row := Row{RunID: "a", begun: true, claim: run.Claim{Namespace: "theirs"}}
	row.EffectiveStatus.Recorded = run.Running
	l, err := Operator{Client: &fakeTemporal{}, Namespace: "ours"}.List(t.Context(), []Row{row}, nil, Filter{})
	require.NoError(t, err)
	require.Equal(t, run.Running, l.Runs[0].EffectiveStatus.Status)
	require.Equal(t, run.LiveUnknown, l.Runs[0].EffectiveStatus.Liveness)
	require.Contains(t, l.Runs[0].EffectiveStatus.Detail, "theirs")
}

func TestFilterNarrowsTheQuery(t *testing.T) {
	for _, row := range []struct {
		name string
		f    Filter
		want string
	}{
		{"nothing", Filter{}, allRuns},
		{"pipeline", Filter{Pipeline: "it's"},
			"WorkflowType = 'Pipeline' AND PassbookPipeline = 'it''s' AND ExecutionStatus != 'ContinuedAsNew'"},
		{"a status of closed runs", Filter{Status: []run.Status{run.Running, run.Interrupted}, Stage: "pa"}, allRuns},
		{"stage alone", Filter{Stage: "pa"}, allRuns},
		{
			"statuses of open runs", Filter{Status: []run.Status{run.Running, run.Paused}, Stage: "pa"},
			"WorkflowType = 'Pipeline' AND ExecutionStatus = 'Running' AND PassbookStatus IN ('running', 'paused') " +
				"AND PassbookStage = 'pa'",
		},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.f.query()) })
	}
}

func TestListWithoutSearchAttributesAsksForAll(t *testing.T) {
	f := &fakeTemporal{executions: []*workflowpb.WorkflowExecutionInfo{execution(t, "a", 3, isOpen, nil)}}
	l, err := Operator{Client: f, Namespace: "default"}.List(t.Context(), nil, []string{"a"}, Filter{Pipeline: "small"})
	require.NoError(t, err)
	require.Empty(t, l.Runs, "its pipeline is not known")
	require.Empty(t, l.Forgotten)
	require.Contains(t, f.queries, allRuns)
}

// Scripts read this.
func TestRowAsJSON(t *testing.T) {
	raw, err := json.Marshal(Row{EffectiveStatus: run.NewEffectiveStatus(run.Running, run.LiveOpen, "")})
	require.NoError(t, err)
	require.JSONEq(t,
		`{"run_id": "", "pipeline": "", "task": "", "thread_id": "",
		"standing": {"status": "running", "recorded": "running", "liveness": "open"}, "stage": "", "passes_settled": 0,
		"passes_total": 0, "rounds": 0, "cost_usd": 0, "unknown_calls": 0, "cost_known": "", "not_approved": false,
		"score": null, "started_at": "", "directory": "", "damage": ""}`, string(raw))
}

func TestFilters(t *testing.T) {
	score := func(v float64) *float64 { return &v }
	since, err := time.Parse(time.RFC3339, "2026-01-02T00:00:00Z")
	require.NoError(t, err)
	rows := []Row{
		{RunID: "a1", Pipeline: "pages", StartedAt: "2026-01-01T23:59:59.999Z", Score: score(3.5),
			Directory: "/runs/night"},
		{RunID: "b2", Pipeline: "reviews", StartedAt: "2026-01-02T00:00:00.000Z", Score: score(2.5),
			Task: "Mend the Sum"},
		{RunID: "c3", Pipeline: "reviews", StartedAt: "2026-01-03T00:00:00.000Z"},
	}
	for name, row := range map[string]struct {
		f    Filter
		want string
	}{
		"all":                 {Filter{}, "a1 b2 c3"},
		"since":               {Filter{Since: since}, "b2 c3"},
		"at least":            {Filter{MinScore: score(2.5)}, "a1 b2"},
		"at most":             {Filter{MaxScore: score(2.5)}, "b2"},
		"between":             {Filter{MinScore: score(2.6), MaxScore: score(3.4)}, ""},
		"text in the task":    {Filter{Text: "the sum"}, "b2"},
		"text in a directory": {Filter{Text: "NIGHT"}, "a1"},
		"text in an id":       {Filter{Text: "c3"}, "c3"},
		"two at once":         {Filter{Pipeline: "reviews", Since: since, Text: "c"}, "c3"},
	} {
		var got []string
		for _, r := range rows {
			if row.f.wants(r) {
				got = append(got, r.RunID)
			}
		}
		require.Equal(t, row.want, strings.Join(got, " "), name)
		require.Equal(t, name != "all", row.f.Narrow(), name)
	}
}
