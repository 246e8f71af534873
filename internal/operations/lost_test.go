package operations

import (
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lostTemporal records which activities were failed by id.
type lostTemporal struct {
	*fakeTemporal
	resets, failed []string
	gone           bool // what is failed has ended
	cause          error
}

// lostService is the service of a lostTemporal.
type lostService struct {
	workflowservice.WorkflowServiceClient
	f *lostTemporal
}

func (f *lostTemporal) WorkflowService() workflowservice.WorkflowServiceClient {
	return lostService{f: f}
}

func (s lostService) ResetStickyTaskQueue(_ context.Context, r *workflowservice.ResetStickyTaskQueueRequest,
	_ ...grpc.CallOption) (*workflowservice.ResetStickyTaskQueueResponse, error) {
	s.f.resets = append(s.f.resets, r.Execution.WorkflowId)
	return nil, nil
}

func (f *lostTemporal) CompleteActivityByID(_ context.Context, _, workflow, _, activity string, _ any, cause error) error {
	f.failed, f.cause = append(f.failed, workflow+" "+activity), cause
	if f.gone {
		return serviceerror.NewNotFound("the activity has ended")
	}
	return nil
}

// TestActivitiesOfDeadWorkersEnd: those of a worker of this host whose process has ended, and no others.
func TestActivitiesOfDeadWorkersEnd(t *testing.T) {
	self, err := process.Self()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), "sleep", "60")
	require.NoError(t, child.Start())
	dead, err := process.Of(child.Process.Pid)
	require.NoError(t, err)
	alive := WorkerIdentity(dead, "here")
	require.False(t, deadWorker(alive, "here"))
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())

	started, waits := enumspb.PENDING_ACTIVITY_STATE_STARTED, enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	working := entry{run.KindPhaseStart, run.PhaseStart{Key: "write"}}
	for name, row := range map[string]struct {
		last     entry
		identity string
		state    enumspb.PendingActivityState
		task     bool // a workflow task waits
		gone     bool
		ends     bool
		resets   bool
	}{
		"dead":                      {last: working, identity: alive, state: started, ends: true, resets: true},
		"dead, and ended meanwhile": {last: working, identity: alive, state: started, gone: true, ends: true, resets: true},
		"dead, and scheduled again": {last: working, identity: alive, state: waits},
		"a workflow task":           {last: working, identity: alive, state: waits, task: true, resets: true},
		"alive":                     {last: working, identity: WorkerIdentity(self, "here"), state: started},
		"of another host":           {last: working, identity: WorkerIdentity(dead, "there"), state: started},
		"of another program":        {last: working, identity: "1234@machine@", state: started},
		"of another, with a host":   {last: working, identity: "1234@machine/here", state: started},
		"a run that waits":          {last: pausedEntry(), identity: alive, state: started},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, fake, _ := openRun(t, row.last)
			f := &lostTemporal{fakeTemporal: fake, gone: row.gone}
			o.Client, o.Host = f, "here"
			f.details = &workflowservice.DescribeWorkflowExecutionResponse{
				WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: isOpen},
				PendingActivities:     []*workflowpb.PendingActivityInfo{{ActivityId: "pass-1", State: row.state, LastWorkerIdentity: row.identity}},
			}
			if row.task {
				f.details.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{}
			}
			require.NoError(t, o.EndLost(t.Context()))
			require.Equal(t, row.ends, len(f.failed) == 1, f.failed)
			require.Equal(t, row.resets, len(f.resets) == 1, f.resets)
			if row.ends {
				require.Equal(t, "r1 pass-1", f.failed[0])
				require.ErrorContains(t, f.cause, contract.ErrWorkerLost)
			}
		})
	}
}
