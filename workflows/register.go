package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Name is the name of the workflow type.
const Name = "Pipeline"

// Register registers the workflows with a worker. hide redacts secrets in messages that other programs send; nil
// keeps the text.
func Register(r worker.WorkflowRegistry, hide func(string) string) {
	if hide == nil {
		hide = func(text string) string { return text }
	}
	run := func(ctx workflow.Context, in Input) (Result, error) { return runPlan(ctx, in, hide) }
	r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Name})
	r.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: NotifyName})
}
