package operations

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/run"
)

// UnroutedError means that a run would wait: its workers belong to a Worker Deployment that has no current version.
type UnroutedError struct {
	run.DeploymentVersion // one that polls
}

func (e *UnroutedError) Error() string {
	return fmt.Sprintf("start a workflow: the worker deployment %s has no current version, so nothing would be executed; "+
		"set one: %s", e.Deployment, e.SetCurrent())
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
		if !alive(p) {
			continue
		}
		v := versionOfPoller(p)
		if v == nil {
			return nil
		}
		waits = &UnroutedError{*v}
	}
	if waits != nil {
		return waits
	}
	return nil
}
