package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Name of the workflow type.
const Name = "Pipeline"

// Register makes the workflows known to a worker. hide gives text without the secrets in it: nobody has looked at what other programs send to a
// run. nil keeps it.
func Register(r worker.WorkflowRegistry, hide func(string) string) {
	if hide == nil {
		hide = func(text string) string { return text }
	}
	run := func(ctx workflow.Context, in Input) (Result, error) { return runPlan(ctx, in, hide) }
	r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Name})
	r.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: NotifyName})
	r.RegisterWorkflowWithOptions(Scheduled, workflow.RegisterOptions{Name: ScheduledName})
}
