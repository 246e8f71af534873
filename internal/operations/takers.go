package operations

import (
	"context"
	"slices"
	"strings"

	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/run"
)

// takers are the versions whose workers get the tasks of a run from a queue. Nil in them is a worker without a version.
type takers struct {
	versions []*run.DeploymentVersion // the first is named to the operator
	pinned   bool
	any      bool // the tasks of the queue have no version
}

// pinnedVersion asks for the version to which a run is pinned; nil: its workflow goes to the current version.
type pinnedVersion func(context.Context) (*run.DeploymentVersion, error)

// takersOf returns the takers of a run: the version to which it is pinned, otherwise the current and the ramping one.
func takersOf(ctx context.Context, d *workflowservice.DescribeTaskQueueResponse, pinned pinnedVersion) (takers, error) {
	if !versionedQueue(d) {
		return takers{any: true}, nil
	}
	v, err := pinned(ctx)
	if err != nil {
		return takers{}, err
	}
	if v != nil {
		return takers{versions: []*run.DeploymentVersion{v}, pinned: true}, nil
	}
	info := d.GetVersioningInfo()
	t := takers{versions: []*run.DeploymentVersion{versionOf(info.GetCurrentDeploymentVersion())}}
	if info.GetRampingVersionPercentage() > 0 {
		t.versions = append(t.versions, versionOf(info.GetRampingDeploymentVersion()))
	}
	return t, nil
}

// versionedQueue reports whether a queue belongs to a deployment.
func versionedQueue(d *workflowservice.DescribeTaskQueueResponse) bool {
	return d.GetVersioningInfo().GetCurrentDeploymentVersion() != nil ||
		d.GetVersioningInfo().GetRampingDeploymentVersion() != nil ||
		slices.ContainsFunc(d.GetPollers(), func(p *taskqueuepb.PollerInfo) bool { return versionOfPoller(p) != nil })
}

func (t takers) include(v *run.DeploymentVersion) bool {
	return t.any || slices.ContainsFunc(t.versions, func(w *run.DeploymentVersion) bool { return equal(v, w) })
}

func equal(a, b *run.DeploymentVersion) bool { return a == b || a != nil && b != nil && *a == *b }

// explain names the version that is missing, and one whose workers poll in vain.
func (t takers) explain(none *run.NoWorker, d *workflowservice.DescribeTaskQueueResponse) {
	if t.any {
		return
	}
	none.Version, none.Pinned = t.versions[0], t.pinned
	for _, p := range d.GetPollers() {
		if v := versionOfPoller(p); v != nil && alive(p) {
			none.Polls = v
		}
	}
}

// versionOfPoller returns the version of a worker; nil: it has none.
func versionOfPoller(p *taskqueuepb.PollerInfo) *run.DeploymentVersion {
	o := p.GetDeploymentOptions()
	if o.GetWorkerVersioningMode() != enumspb.WORKER_VERSIONING_MODE_VERSIONED {
		return nil
	}
	return &run.DeploymentVersion{Deployment: o.GetDeploymentName(), BuildID: o.GetBuildId()}
}

func versionOf(v *deploymentpb.WorkerDeploymentVersion) *run.DeploymentVersion {
	if v == nil {
		return nil
	}
	return &run.DeploymentVersion{Deployment: v.GetDeploymentName(), BuildID: v.GetBuildId()}
}

// Search attributes that the server maintains.
const (
	versioningBehavior = "TemporalWorkflowVersioningBehavior"
	deploymentVersion  = "TemporalWorkerDeploymentVersion" // DEPLOYMENT:BUILD
)

// pinnedBy returns the version to which a workflow is pinned; nil: to none.
func pinnedBy(x *workflowpb.WorkflowExecutionInfo) *run.DeploymentVersion {
	fields := x.GetSearchAttributes().GetIndexedFields()
	if how, _ := field[string](fields, versioningBehavior); how != enumspb.VERSIONING_BEHAVIOR_PINNED.String() {
		return nil
	}
	version, _ := field[string](fields, deploymentVersion)
	deployment, build, found := strings.Cut(version, ":")
	if !found {
		return nil
	}
	return &run.DeploymentVersion{Deployment: deployment, BuildID: build}
}

// pinnedRun asks for the version of a run when it is needed.
func (o Operator) pinnedRun(runID string) pinnedVersion {
	return func(ctx context.Context) (*run.DeploymentVersion, error) {
		d, err := o.Client.DescribeWorkflowExecution(ctx, runID, "")
		if err != nil {
			return nil, err
		}
		return pinnedBy(d.GetWorkflowExecutionInfo()), nil
	}
}

// listedVersion is a version that a list has named.
func listedVersion(v *run.DeploymentVersion) pinnedVersion {
	return func(context.Context) (*run.DeploymentVersion, error) { return v, nil }
}
