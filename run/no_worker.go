package run

import "fmt"

// NoWorker reports that an open workflow waits for a worker.
type NoWorker struct {
	Queues []string `json:"queues"` // queues without a worker
	// time of the last poll; empty: earlier than the server remembers, which is five minutes
	Since string `json:"since"`
	// the version whose workers are needed for the workflow; nil: workers without a version
	Version *DeploymentVersion `json:"version,omitempty"`
	// the workflow is pinned to Version; otherwise it goes to the current version
	Pinned bool `json:"pinned,omitempty"`
	// a version whose workers poll, and do not get the workflow; nil: none
	Polls *DeploymentVersion `json:"polls,omitempty"`
}

// DeploymentVersion is a version of a Worker Deployment.
type DeploymentVersion struct {
	Deployment string `json:"deployment"`
	BuildID    string `json:"build_id"`
}

// Needed describes the worker that is missing: a worker, or a worker of a build.
func (n NoWorker) Needed() string {
	if n.Version == nil {
		return "worker"
	}
	return fmt.Sprintf("worker of build %s (deployment %s)", n.Version.BuildID, n.Version.Deployment)
}

// Fix is what an operator has to do. start is the command that starts a worker of this build.
func (n NoWorker) Fix(runID, start string) string {
	switch {
	case n.Version == nil && n.Polls == nil:
		return "Start one: " + start
	case n.Version == nil:
		return "Make a version current: " + n.Polls.SetCurrent()
	case n.Pinned:
		return fmt.Sprintf("Start a worker of build %s, or move the run to the current version: temporal workflow "+
			"update-options --workflow-id %s --versioning-override-behavior auto_upgrade", n.Version.BuildID, runID)
	case n.Polls != nil:
		return fmt.Sprintf("Start a worker of build %s, or make the build that polls the current one: %s",
			n.Version.BuildID, n.Polls.SetCurrent())
	}
	return fmt.Sprintf("Start a worker of build %s", n.Version.BuildID)
}

// SetCurrent is the command that makes a version the current one of its deployment.
func (v DeploymentVersion) SetCurrent() string {
	return fmt.Sprintf("temporal worker deployment set-current-version --deployment-name %s --build-id %s --yes",
		v.Deployment, v.BuildID)
}
