package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// endRound ends the set after its last step.
func (rd *round) endRound(ctx workflow.Context, at run.Place) {
	if rd.lastInRound(at) && rd.Kind == pipeline.StageEach {
		rd.endSet(ctx)
		return
	}
}

// endSet creates the checkpoint at the end of a set, and pauses if the definition wants a review.
func (rd *round) endSet(ctx workflow.Context) {
	if rd.Checkpoint != "" {
		rd.checkpoint(ctx, rd.Checkpoint)
	}
	rd.review(ctx)
}

// review pauses for a review if the definition wants one.
func (rd *round) review(ctx workflow.Context) {
	if !rd.PauseAfter {
		return
	}
	rd.pause(ctx, run.UserReview, rd.reviewReason(), "")
}

// reviewReason returns what to review.
func (rd *round) reviewReason() string {
	return "review requested after " + rd.Stage + " " + rd.Set
}
