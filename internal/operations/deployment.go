package operations

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

// UnroutedError means that a run would wait: its workers belong to a Worker Deployment that has no current version.
type UnroutedError struct {
	Deployment, BuildID string // a version that polls
}

func (e *UnroutedError) Error() string {
	return fmt.Sprintf("start a workflow: the worker deployment %s has no current version, so nothing would be executed; "+
		"set one: temporal worker deployment set-current-version --deployment-name %s --build-id %s", e.Deployment,
		e.Deployment, e.BuildID)
}

// routed checks that the workers of a queue get new workflows. It returns nil if that is not known.
func (o Operator) routed(ctx context.Context, queue string) error {
	if o.Embedded {
		return nil
	}
	d, err := o.Client.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil || d.GetVersioningInfo().GetCurrentDeploymentVersion() != nil {
		return nil //nolint:nilerr // the start reports what is wrong
	}
	var waits *UnroutedError
	for _, p := range d.GetPollers() {
		v := p.GetDeploymentOptions()
		if time.Since(p.GetLastAccessTime().AsTime()) > polledWithin || ended(p.GetIdentity()) {
			continue
		}
		if v.GetWorkerVersioningMode() != enumspb.WORKER_VERSIONING_MODE_VERSIONED {
			return nil
		}
		waits = &UnroutedError{v.GetDeploymentName(), v.GetBuildId()}
	}
	if waits != nil {
		return waits
	}
	return nil
}
