package host_test

import (
	"context"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/internal/operations"
)

// doctoredServer is a server as a test wants it. Its runs are all open.
type doctoredServer struct {
	workflowservice.UnimplementedWorkflowServiceServer
	operatorservice.UnimplementedOperatorServiceServer
	keeps      time.Duration
	attributes map[string]enumspb.IndexedValueType
	polled     map[string]string  // by queue: who polls it
	late       atomic.Int32       // questions about queues that are answered without a poller
	needs      []operations.Needs // of open runs
}

func (f *doctoredServer) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}},
		nil
}

func (f *doctoredServer) GetClusterInfo(context.Context,
	*workflowservice.GetClusterInfoRequest) (*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{ServerVersion: "1.2.3", ClusterId: "this"}, nil
}

func (f *doctoredServer) DescribeNamespace(context.Context,
	*workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{
		Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(f.keeps)},
	}, nil
}

func (f *doctoredServer) ListSearchAttributes(context.Context,
	*operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: f.attributes}, nil
}

func (f *doctoredServer) DescribeTaskQueue(_ context.Context,
	r *workflowservice.DescribeTaskQueueRequest) (*workflowservice.DescribeTaskQueueResponse, error) {
	who, there := f.polled[r.TaskQueue.Name]
	if !there || f.late.Add(-1) >= 0 {
		return &workflowservice.DescribeTaskQueueResponse{}, nil
	}
	return &workflowservice.DescribeTaskQueueResponse{Pollers: []*taskqueuepb.PollerInfo{{Identity: who,
		LastAccessTime: timestamppb.Now()}}}, nil
}

// at serves the doctoredServer, and makes it the one that is named.
func at(t *testing.T, f *doctoredServer) string {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if f == nil {
		return ""
	}
	s := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(s, f)
	operatorservice.RegisterOperatorServiceServer(s, f)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	t.Setenv("TEMPORAL_ADDRESS", l.Addr().String())
	return l.Addr().String()
}

func (f *doctoredServer) ListWorkflowExecutions(context.Context,
	*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, n := range f.needs {
		p, err := converter.GetDefaultDataConverter().ToPayload(n)
		if err != nil {
			return nil, err
		}
		out.Executions = append(out.Executions,
			&workflowpb.WorkflowExecutionInfo{
				Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{operations.MemoNeeds: p}},
			})
	}
	return out, nil
}
