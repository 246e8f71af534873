package cli

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// fakeTemporal has the histories of some runs, and records starts. A started run gets its first events at once.
type fakeTemporal struct {
	workflowservice.UnimplementedWorkflowServiceServer
	check     func(error)
	server    *grpc.Server
	address   string
	histories map[string][]*historypb.HistoryEvent
	mu        sync.Mutex
	started   int
	last      contract.Input // of a start
	open      []string       // runs with an open workflow
	cancelled []string       // runs whose cancellation was requested
	updates   []string       // names
	refuse    error          // the error of a start
}

func newTemporal(check func(error)) *fakeTemporal {
	f := &fakeTemporal{check: check, server: grpc.NewServer(), histories: map[string][]*historypb.HistoryEvent{}}
	workflowservice.RegisterWorkflowServiceServer(f.server, f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	f.address = l.Addr().String()
	go f.server.Serve(l)
	return f
}

func (f *fakeTemporal) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.started
}

// input returns what the last run was started with.
func (f *fakeTemporal) input() contract.Input {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// remember adds the history of a run.
func (f *fakeTemporal) remember(id string, d rundir.Dir) {
	claim, err := d.Claim()
	f.check(err)
	raw, err := os.ReadFile(d.Path(rundir.EventsFile))
	f.check(err)
	payloads := func(v any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(v)
		f.check(err)
		return p
	}
	in := contract.Input{Claim: claim, Target: contract.Target{RunID: id, Dir: d.Root, Store: claim.Store}}
	lines := contract.ProjectInput{Target: contract.Target{Epoch: 1}, First: 1,
		Lines: slices.Collect(strings.SplitSeq(strings.TrimSpace(string(raw)), "\n"))}
	f.histories[id] = []*historypb.HistoryEvent{
		{EventId: 1, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: payloads(in)},
		}},
		{EventId: 2, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: contract.Project}, Input: payloads(lines),
			},
		}},
		{EventId: 3, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 2,
				Result: payloads(contract.ProjectResult{Outcome: run.ProjectionWritten})},
		}},
	}
}

func (f *fakeTemporal) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}},
		nil
}

func (f *fakeTemporal) DescribeNamespace(context.Context,
	*workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (f *fakeTemporal) GetClusterInfo(context.Context,
	*workflowservice.GetClusterInfoRequest) (*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{ClusterId: "this"}, nil
}

func (f *fakeTemporal) DescribeWorkflowExecution(_ context.Context,
	r *workflowservice.DescribeWorkflowExecutionRequest) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if slices.Contains(f.open, r.Execution.WorkflowId) {
		return &workflowservice.DescribeWorkflowExecutionResponse{
			ExecutionConfig: &workflowpb.WorkflowExecutionConfig{},
			WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Execution: r.Execution,
				Type:             &commonpb.WorkflowType{Name: contract.PipelineWorkflow},
				SearchAttributes: &commonpb.SearchAttributes{}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}, nil
	}
	return nil, serviceerror.ToStatus(serviceerror.NewNotFound("no such workflow")).Err()
}

// UpdateWorkflowExecution finds no open run: each has ended since it was described.
func (f *fakeTemporal) UpdateWorkflowExecution(_ context.Context,
	r *workflowservice.UpdateWorkflowExecutionRequest) (*workflowservice.UpdateWorkflowExecutionResponse, error) {
	if f.updates = append(f.updates, r.Request.Input.Name); r.Request.Input.Name != contract.VerbLook {
		f.open = nil
	}
	return nil, serviceerror.ToStatus(serviceerror.NewNotFound("workflow execution already completed")).Err()
}

// QueryWorkflow answers as a workflow that has one event.
func (f *fakeTemporal) QueryWorkflow(_ context.Context,
	r *workflowservice.QueryWorkflowRequest) (*workflowservice.QueryWorkflowResponse, error) {
	if r.Query.QueryType != contract.QueryStatus {
		return nil, serviceerror.ToStatus(serviceerror.NewInvalidArgument("unknown query")).Err()
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(contract.StatusAnswer{State: run.State{Seq: 1}})
	return &workflowservice.QueryWorkflowResponse{QueryResult: p}, err
}

func (f *fakeTemporal) RequestCancelWorkflowExecution(_ context.Context,
	r *workflowservice.RequestCancelWorkflowExecutionRequest) (*workflowservice.RequestCancelWorkflowExecutionResponse, error) {
	f.cancelled = append(f.cancelled, r.WorkflowExecution.WorkflowId)
	return &workflowservice.RequestCancelWorkflowExecutionResponse{}, nil
}

func (f *fakeTemporal) GetWorkflowExecutionHistory(_ context.Context,
	r *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse,
	error) {
	return &workflowservice.GetWorkflowExecutionHistoryResponse{
		History: &historypb.History{Events: f.histories[r.Execution.WorkflowId]},
	}, nil
}

func (f *fakeTemporal) StartWorkflowExecution(ctx context.Context,
	r *workflowservice.StartWorkflowExecutionRequest) (*workflowservice.StartWorkflowExecutionResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.started++
	var in contract.Input
	err := converter.GetDefaultDataConverter().FromPayloads(r.Input, &in)
	if f.last = in; err == nil {
		err = begin(ctx, in)
	}
	return &workflowservice.StartWorkflowExecutionResponse{RunId: "1"}, err
}

// begin projects the first events of a run.
func begin(ctx context.Context, in contract.Input) error {
	batch := rundir.Batch{Epoch: 1, First: 1}
	events := []event{{run.KindRunStart, in.Start}, {run.KindPhaseStart, run.PhaseStart{Title: "The first stage"}}}
	if in.Reopen != nil {
		state := in.Snapshot.State
		state.Status = run.Running
		batch = rundir.Batch{Epoch: in.Reopen.Epoch, First: in.Snapshot.Tail.Seq + 1, Prev: in.Snapshot.Tail.Chain}
		events = []event{{run.KindRunResumed, run.RunResumed{Epoch: in.Reopen.Epoch, From: in.Reopen.From, State: &state}}}
	}
	for i, e := range events {
		text, err := line(batch.First+int64(i), e.kind, e.payload)
		if err != nil {
			return err
		}
		batch.Lines = append(batch.Lines, text)
	}
	s, err := store.Open(ctx, in.Target.Store)
	if err != nil {
		return err
	}
	_, err = rundir.At(in.Target.Dir).Project(ctx, blobs.Of(s), batch)
	return err
}
