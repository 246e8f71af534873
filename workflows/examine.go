package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
)

// Examine asks the worker of the queue on which it was started for the version and the login of agents.
func Examine(ctx workflow.Context, in contract.ExamineInput) (contract.ExamineResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	var out contract.ExamineResult
	err := workflow.ExecuteActivity(ctx, contract.ExamineAgents, in).Get(ctx, &out)
	return out, err
}
