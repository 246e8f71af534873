package operations

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

const (
	isOpen     = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	completed  = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	terminated = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED

	allRuns = "WorkflowType = 'Pipeline' AND ExecutionStatus != 'ContinuedAsNew'"
)

// fakeTemporal is a server in memory: cluster "this", its namespace "the namespace".
type fakeTemporal struct {
	client.Client
	hosted   bool  // the server does not disclose its cluster
	err      error // the answer to every request but a start
	startErr error

	executions []*workflowpb.WorkflowExecutionInfo                // in the list, one a page
	attributes bool                                               // the search attributes are registered
	described  map[string]enumspb.WorkflowExecutionStatus         // by workflow, before executions
	details    *workflowservice.DescribeWorkflowExecutionResponse // of every workflow
	pollers    map[string]*taskqueuepb.PollerInfo                 // by queue
	versions   *taskqueuepb.TaskQueueVersioningInfo               // of every queue
	answers    map[string]any                                     // by query; no worker answers others
	history    []*historypb.HistoryEvent                          // of every workflow

	afterDescribe func()
	update        func(workflowID string) error
	await         func() // a workflow ends

	started   []contract.Input
	cancelled []string // workflows
	updated   []client.UpdateWorkflowOptions
	listed    []string // list queries
	asked     []string // queues
	queried   int
	detailed  int
}

func (f *fakeTemporal) ListWorkflow(_ context.Context,
	r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	f.listed = append(f.listed, r.Query)
	if !f.attributes && r.Query != allRuns {
		return nil, serviceerror.NewInvalidArgument("unknown search attribute")
	}
	at := len(r.NextPageToken)
	if at >= len(f.executions) {
		return &workflowservice.ListWorkflowExecutionsResponse{}, f.err
	}
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: f.executions[at : at+1],
		NextPageToken: make([]byte, at+1)}, f.err
}

func (f *fakeTemporal) execution(id string) (*workflowpb.WorkflowExecutionInfo, error) {
	if f.err != nil {
		return nil, f.err
	}
	if status, there := f.described[id]; there {
		return &workflowpb.WorkflowExecutionInfo{Status: status}, nil
	}
	i := slices.IndexFunc(f.executions, func(x *workflowpb.WorkflowExecutionInfo) bool {
		return x.Execution.WorkflowId == id
	})
	if i < 0 {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	return f.executions[i], nil
}

func (f *fakeTemporal) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	x, err := f.execution(id)
	if f.afterDescribe != nil {
		f.afterDescribe()
	}
	if err != nil {
		return nil, err
	}
	d := &client.WorkflowExecutionDescription{}
	d.Status = x.Status
	return d, nil
}

func (f *fakeTemporal) DescribeWorkflowExecution(_ context.Context, id,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.detailed++
	if f.details != nil {
		return f.details, nil
	}
	x, err := f.execution(id)
	if err != nil {
		return nil, err
	}
	r := &workflowservice.DescribeWorkflowExecutionResponse{}
	if x.Execution != nil {
		r.WorkflowExecutionInfo = x
	}
	return r, nil
}

func (f *fakeTemporal) DescribeTaskQueue(_ context.Context, queue string,
	_ enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	f.asked = append(f.asked, queue)
	r := &workflowservice.DescribeTaskQueueResponse{VersioningInfo: f.versions}
	if p, there := f.pollers[queue]; there {
		r.Pollers = append(r.Pollers, p)
	}
	return r, f.err
}

func (f *fakeTemporal) ExecuteWorkflow(_ context.Context, _ client.StartWorkflowOptions, _ any,
	args ...any) (client.WorkflowRun, error) {
	f.started = append(f.started, args[0].(contract.Input))
	return nil, f.startErr
}

func (f *fakeTemporal) TerminateWorkflow(_ context.Context, id, _, _ string, _ ...any) error {
	f.described[id] = terminated
	return f.err
}

func (f *fakeTemporal) UpdateWorkflow(_ context.Context,
	o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if f.updated = append(f.updated, o); f.update != nil {
		return accepted{}, f.update(o.WorkflowID)
	}
	return accepted{}, f.err
}

// accepted is an Update with an empty answer.
type accepted struct{ client.WorkflowUpdateHandle }

func (accepted) Get(context.Context, any) error { return nil }

func (f *fakeTemporal) CancelWorkflow(_ context.Context, id, _ string) error {
	f.cancelled = append(f.cancelled, id)
	return f.err
}

func (f *fakeTemporal) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return awaited{end: f.await}
}

type awaited struct {
	client.WorkflowRun
	end func()
}

func (a awaited) Get(context.Context, any) error { a.end(); return nil }

func (f *fakeTemporal) QueryWorkflow(_ context.Context, _, _, query string, _ ...any) (converter.EncodedValue, error) {
	f.queried++
	value, there := f.answers[query]
	if !there {
		return nil, errors.New("no worker")
	}
	return jsonAnswer{value}, nil
}

type jsonAnswer struct{ value any }

func (a jsonAnswer) HasValue() bool { return true }

func (a jsonAnswer) Get(to any) error {
	raw, err := json.Marshal(a.value)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

func (f *fakeTemporal) GetWorkflowHistory(context.Context, string, string, bool,
	enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &recordedHistory{events: f.history}
}

// recordedHistory is the events of a history, in order.
type recordedHistory struct{ events []*historypb.HistoryEvent }

func (h *recordedHistory) HasNext() bool { return len(h.events) > 0 }

func (h *recordedHistory) Next() (*historypb.HistoryEvent, error) {
	e := h.events[0]
	h.events = h.events[1:]
	return e, nil
}

func (f *fakeTemporal) WorkflowService() workflowservice.WorkflowServiceClient {
	return fakeCluster{f: f}
}

type fakeCluster struct {
	workflowservice.WorkflowServiceClient
	f *fakeTemporal
}

func (c fakeCluster) GetClusterInfo(context.Context, *workflowservice.GetClusterInfoRequest,
	...grpc.CallOption) (*workflowservice.GetClusterInfoResponse, error) {
	if c.f.hosted {
		return nil, serviceerror.NewPermissionDenied("Request unauthorized.", "")
	}
	return &workflowservice.GetClusterInfoResponse{ClusterId: "this"}, nil
}

func (fakeCluster) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest,
	...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Id: "the namespace"}},
		nil
}

func (c fakeCluster) DeleteWorkflowExecution(_ context.Context, r *workflowservice.DeleteWorkflowExecutionRequest,
	_ ...grpc.CallOption) (*workflowservice.DeleteWorkflowExecutionResponse, error) {
	c.f.executions = slices.DeleteFunc(c.f.executions, func(x *workflowpb.WorkflowExecutionInfo) bool {
		return x.Execution.RunId == r.WorkflowExecution.RunId
	})
	return &workflowservice.DeleteWorkflowExecutionResponse{}, c.f.err
}

func payloadOf(t *testing.T, value any) *commonpb.Payload {
	t.Helper()
	return must(converter.GetDefaultDataConverter().ToPayload(value))(t)
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

func poller(identity string, at time.Time) *taskqueuepb.PollerInfo {
	return &taskqueuepb.PollerInfo{Identity: identity, LastAccessTime: timestamppb.New(at)}
}

// endedHere is the identity of a worker of this machine that has ended.
func endedHere(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	id := must(process.Of(cmd.Process.Pid))(t)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	return WorkerIdentity(id, "here")
}
