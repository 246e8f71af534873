package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
)

// Name is the name of the workflow type.
const Name = "Pipeline"

// Register registers the workflows with a worker. hide redacts secrets in messages that other programs send; nil
// keeps the text. verify returns who sent them; nil: all are unsigned.
func Register(r worker.WorkflowRegistry, hide func(string) string, verify VerifyFunc) {
	if hide == nil {
		hide = func(text string) string { return text }
	}
	if verify == nil {
		verify = func([]byte, *contract.Signature) (auth, refused string) { return contract.AuthNone, "" }
	}
	run := func(ctx workflow.Context, in Input) (Result, error) { return runPlan(ctx, in, hide, verify) }
	r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Name})
	r.RegisterWorkflowWithOptions(Account, workflow.RegisterOptions{Name: contract.AccountWorkflow})
	r.RegisterWorkflowWithOptions(Notify, workflow.RegisterOptions{Name: NotifyName})
	r.RegisterWorkflowWithOptions(Examine, workflow.RegisterOptions{Name: contract.ExamineWorkflow})
}
