package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// After a reset Temporal sends the messages once more that the reset left behind. An answer among them was given on the other side of the reset: it
// is recorded and ignored, and the question stays open. What is sent later counts.
//
// Only an execution that came of a reset looks at this. Which part of it ran before the reset is told by versions: what history holds already has
// none. (SDK: OriginalRunID is that of the execution that was reset.)

func wasReset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.OriginalRunID != "" && info.WorkflowExecution.RunID != info.OriginalRunID
}

// sinceReset says that an execution that came of a reset is behind it, at something that happens once.
func sinceReset(ctx workflow.Context, what string) bool {
	return workflow.GetVersion(ctx, what, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// asks takes note of a question that is asked behind the reset: by the same id it may have been asked, and answered, before.
func (e *engine) asks(ctx workflow.Context, id string) {
	if wasReset(ctx) && sinceReset(ctx, "asked "+id) {
		e.listenTo(ctx, id)
	}
}

// listenTo lets answers to a question count once all that the reset has brought back is through.
func (e *engine) listenTo(ctx workflow.Context, id string) {
	workflow.GoNamed(ctx, "behind the reset", func(ctx workflow.Context) {
		if workflow.Sleep(ctx, time.Millisecond) == nil {
			e.heard = id
		}
	})
}

// notReapplied refuses an answer that the reset has brought back.
func (e *engine) notReapplied(ctx workflow.Context) error {
	q, open := e.j.state.Asks()
	if !open || !wasReset(ctx) || q.ID == e.heard || !sinceReset(ctx, "answered "+q.ID) {
		return nil
	}
	e.listenTo(ctx, q.ID)
	return refuse("the workflow was reset to before this answer: %s is open again", q.ID)
}
