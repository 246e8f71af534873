package host

import (
	"errors"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/build"
)

// errNoVersion is the error of a build that looks like any other of the deployment.
var errNoVersion = errors.New("start polling: the setting deployment.name is set, and this build has no version: " +
	"install a release, or name the version of this build with PASSBOOK_DEPLOYMENT_BUILD_ID")

// versioned reports whether this worker belongs to a version of a Worker Deployment.
func (o WorkerConfig) versioned() bool {
	return o.Settings.Deployment.Name != "" && !o.Embedded
}

// version returns the version of this build in the deployment.
func (o WorkerConfig) version() (worker.WorkerDeploymentVersion, error) {
	v := worker.WorkerDeploymentVersion{DeploymentName: o.Settings.Deployment.Name,
		BuildID: o.Settings.Deployment.BuildID}
	if v.BuildID == "" {
		v.BuildID = build.Version()
	}
	if v.BuildID == build.Devel {
		return v, errNoVersion
	}
	return v, nil
}

// workflowOptions returns the options of workers with workflow tasks. In a deployment they poll for nothing else: a
// workflow stays with the build that began it, and activities go to any build of the host that they need, because a
// task on a queue of a version would wait for a worker of that version on that host.
func (o WorkerConfig) workflowOptions() worker.Options {
	opts := o.short()
	if !o.versioned() {
		return opts
	}
	v, err := o.version()
	if err != nil {
		panic(err) // Run has checked it
	}
	opts.LocalActivityWorkerOnly = true
	opts.DeploymentOptions = worker.DeploymentOptions{UseVersioning: true, Version: v,
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned}
	return opts
}
