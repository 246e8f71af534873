// Package workflows contains the Pipeline workflow: the journal, the stages and the messages. It is deterministic
// and does no IO: that is done by the activities whose types are in package contract.
package workflows

import (
	"fmt"
	"path"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/workflows/contract"
)

// checkInput validates an input that was written by hand. The error names everything that is missing.
func checkInput(in contract.Input, workflowID string, continued bool) error {
	var wrong []string
	if in.Snapshot != nil && in.Reopen == nil && !continued {
		wrong = append(wrong, "carry is only for an execution that continues another one")
	}
	for _, f := range []struct {
		name    string
		missing bool
	}{
		{"target.run_id", in.Target.RunID == ""},
		{"target.dir", in.Target.Dir == ""},
		{"target.store", in.Target.Store == ""},
		{"claim.run_id", in.Claim.RunID == ""},
		{"start.run_id", in.Start.RunID == ""},
		{"start.plan", in.Start.Plan == ""},
		{"start.stages", len(in.Start.Stages) == 0},
		{"dir_queue", in.DirQueue == ""},
		{"calls", in.Calls == ""},
	} {
		if f.missing {
			wrong = append(wrong, f.name+" is missing")
		}
	}
	for _, f := range []struct{ name, id string }{
		{"target", in.Target.RunID}, {"claim", in.Claim.RunID}, {"start", in.Start.RunID},
	} {
		// a second workflow would take the directory and the decisions of the run
		if f.id != "" && f.id != workflowID {
			wrong = append(wrong, fmt.Sprintf("%s.run_id %q is not the workflow id", f.name, f.id))
		}
	}
	if dir := in.Target.Dir; dir != "" && !path.IsAbs(dir) {
		wrong = append(wrong, fmt.Sprintf("target.dir %q is not absolute", dir))
	}
	if len(wrong) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("start workflow %s: invalid input: %s; start runs "+
		"with "+
		"the starter binary: starter run --config FILE",
		workflowID, strings.Join(wrong, ", ")), contract.ErrBadInput, nil)
}

// runPlan runs a plan to its end.
func runPlan(ctx workflow.Context, in contract.Input, hide func(string) string) (contract.Result, error) {
	info := workflow.GetInfo(ctx)
	if err := checkInput(in, info.WorkflowExecution.ID, info.ContinuedExecutionRunID != ""); err != nil {
		return contract.Result{}, err
	}
	lp, err := newLoop(ctx, in, hide)
	if err != nil {
		return contract.Result{}, err
	}
	all, stop := workflow.WithCancel(ctx) // not called at the normal end of an execution
	lp.journal.stopsWith(stop)
	r, err := lp.run(all)
	if lp.journal.isNewer() || isType(err, contract.ErrNewer) {
		return lp.nextEpoch(ctx)
	}
	return r, err
}

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

// nextExecution ends an execution of a workflow with its next one. Where workers have versions, an execution stays with
// the build that began it, and the next one begins with the current build. Else the option has no effect.
func nextExecution(ctx workflow.Context, name any, in any) error {
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, name, in)
}
