package operations

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/run"
)

// fakeDeployment is a server with one queue and one open run.
type fakeDeployment struct {
	client.Client
	queue *workflowservice.DescribeTaskQueueResponse
	run   *workflowpb.WorkflowExecutionInfo
	asked int // about the run
}

func (f *fakeDeployment) DescribeTaskQueue(context.Context, string,
	enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return f.queue, nil
}

func (f *fakeDeployment) DescribeWorkflowExecution(context.Context, string,
	string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	f.asked++
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: f.run}, nil
}

// of is a worker of a version; "" is one without a version.
func of(build string) *taskqueuepb.PollerInfo {
	p := poller("17@elsewhere@", time.Now())
	p.DeploymentOptions = &deploymentpb.WorkerDeploymentOptions{DeploymentName: "passbook", BuildId: build}
	if build != "" {
		p.DeploymentOptions.WorkerVersioningMode = enumspb.WORKER_VERSIONING_MODE_VERSIONED
	}
	return p
}

func TestNoWorkerOfTheVersion(t *testing.T) {
	v := func(build string) *run.DeploymentVersion {
		return &run.DeploymentVersion{Deployment: "passbook", BuildID: build}
	}
	pinned := map[string]any{versioningBehavior: "Pinned", deploymentVersion: "passbook:v1"}
	auto := map[string]any{versioningBehavior: "AutoUpgrade", deploymentVersion: "passbook:v1"}
	routes := func(current, ramping string) *taskqueuepb.TaskQueueVersioningInfo {
		r := &taskqueuepb.TaskQueueVersioningInfo{}
		if current != "" {
			r.CurrentDeploymentVersion = &deploymentpb.WorkerDeploymentVersion{DeploymentName: "passbook", BuildId: current}
		}
		if ramping != "" {
			r.RampingVersionPercentage = 10
			r.RampingDeploymentVersion = &deploymentpb.WorkerDeploymentVersion{DeploymentName: "passbook", BuildId: ramping}
		}
		return r
	}
	for name, row := range map[string]struct {
		attributes map[string]any
		routes     *taskqueuepb.TaskQueueVersioningInfo
		polls      string
		want       *run.NoWorker // its queues and times are not compared
		fix        string
	}{
		"pinned, and its build polls": {pinned, routes("v2", ""), "v1", nil, ""},
		"pinned to a build that does not poll": {pinned, routes("v2", ""), "v2",
			&run.NoWorker{Version: v("v1"), Pinned: true, Polls: v("v2")}, "Start a worker of build v1, or move the run " +
				"to the current version: temporal workflow update-options --workflow-id r " +
				"--versioning-override-behavior auto_upgrade"},
		"pinned, and only a worker without a version polls": {pinned, routes("v2", ""), "",
			&run.NoWorker{Version: v("v1"), Pinned: true}, "Start a worker of build v1, or move the run"},
		"auto-upgrade": {auto, routes("v2", ""), "v2", nil, ""},
		"auto-upgrade, and the current build does not poll": {auto, routes("v2", ""), "v1",
			&run.NoWorker{Version: v("v2"), Polls: v("v1")}, "Start a worker of build v2, or make the build that polls the " +
				"current one: temporal worker deployment set-current-version --deployment-name passbook --build-id v1"},
		"not begun, and the ramping build polls": {nil, routes("v2", "v3"), "v3", nil, ""},
		"without a version":                      {nil, nil, "", nil, ""},
		"no version is current": {nil, nil, "v1", &run.NoWorker{Polls: v("v1")}, "Make a version current: temporal " +
			"worker deployment set-current-version --deployment-name passbook --build-id v1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeDeployment{run: execution(t, "r", 1, isOpen, nil)}
			for key, value := range row.attributes {
				f.run.SearchAttributes.IndexedFields[key] = payloadOf(t, value)
			}
			f.queue = &workflowservice.DescribeTaskQueueResponse{VersioningInfo: row.routes,
				Pollers: []*taskqueuepb.PollerInfo{of(row.polls)}}
			got := Operator{Client: f}.polled().noWorker(t.Context(), run.EffectiveStatus{Liveness: run.LiveOpen},
				[]taskQueue{{"q", enumspb.TASK_QUEUE_TYPE_WORKFLOW}}, Operator{Client: f}.pinnedRun("r"))
			if row.want == nil {
				require.Nil(t, got)
			} else {
				require.Equal(t, []string{"q"}, got.Queues)
				require.Contains(t, got.Fix("r", "starter worker"), row.fix)
				got.Queues, got.Since = nil, ""
				require.Equal(t, row.want, got)
			}
			require.Equal(t, row.routes != nil || row.polls != "", f.asked > 0, "only a deployment costs a request")
		})
	}
}
