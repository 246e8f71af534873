package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Name of the workflow type.
const Name = "Pipeline"

// Register makes the workflows known to a worker.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(Pipeline, workflow.RegisterOptions{Name: Name})
	r.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: NotifyName})
}
