package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/workflows/contract"
)

// Register registers the workflows with a worker. hide redacts secrets in messages that other programs send; nil
// keeps the text.
func Register(r worker.WorkflowRegistry, hide func(string) string) {
	if hide == nil {
		hide = func(text string) string { return text }
	}
	run := func(ctx workflow.Context, in contract.Input) (contract.Result, error) { return runPlan(ctx, in, hide) }
	r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: contract.PipelineWorkflow})
	r.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: contract.NotifyWorkflow})
}
