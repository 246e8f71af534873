package activities

import (
	"context"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Turn writes the events before a call to the directory, then makes the call. It calls nothing unless they are on disk:
// with another outcome, or an error, it ends at once, and the workflow writes them with Project.
func (a *Activities) Turn(ctx context.Context, in contract.TurnInput) (contract.TurnResult, error) {
	defer a.startEarly(ctx, in.Call)()
	written, err := a.projectBefore(ctx, in.Project)
	if ctx.Err() != nil {
		return contract.TurnResult{}, context.Cause(ctx)
	}
	if err != nil {
		activity.GetLogger(ctx).Warn("write the events before a call", "call", in.Call.Call, "error", a.redactError(err))
		return contract.TurnResult{}, nil
	}
	if written.Outcome != run.ProjectionWritten {
		return contract.TurnResult{Project: contract.ProjectResult{Outcome: written.Outcome}}, nil
	}
	res, err := a.RunPass(ctx, in.Call)
	return contract.TurnResult{Project: written, Pass: &res}, err
}

// projectBefore writes events with a slot of the projections, which it does not hold during the call.
func (a *Activities) projectBefore(ctx context.Context, in contract.ProjectInput) (contract.ProjectResult, error) {
	defer a.keepAlive(ctx)()
	free, err := a.slots.projections.acquire(ctx)
	if err != nil {
		return contract.ProjectResult{}, err
	}
	defer free()
	return a.project(ctx, in)
}
