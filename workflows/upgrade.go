package workflows

import "go.temporal.io/sdk/workflow"

// nextExecution ends an execution of a workflow with its next one. Where workers have versions, an execution stays with
// the build that began it, and the next one begins with the current build. Else the option has no effect.
func nextExecution(ctx workflow.Context, name any, in any) error {
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, name, in)
}
