package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/work"
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

// behindReset asks the directory, before the first thing that an execution does behind a reset, whether its run is done: then nothing is done any more.
func (e *engine) behindReset(ctx workflow.Context) error {
	if e.j.final {
		return errFinal
	}
	if !wasReset(ctx) || e.looked || !e.opened && e.j.tail.Seq == 0 { // nothing is there before the directory is opened for the first time
		return nil
	}
	if err := e.looking.Lock(ctx); err != nil {
		return err
	}
	defer e.looking.Unlock()
	if e.j.final || e.looked || !taskSinceReset(ctx) {
		return e.j.ended()
	}
	return e.look(ctx)
}

// look asks the directory whether its run is done.
func (e *engine) look(ctx workflow.Context) error {
	in := work.ProjectInput{Target: e.in.Target, Epoch: e.j.state.Epoch, First: e.j.tail.Seq + 1, Prev: e.j.tail.Chain, Look: true}
	var res work.ProjectResult
	err := e.atHome(ctx, func() error {
		in.Moved(e.in.Target)
		return workflow.ExecuteActivity(e.directory(ctx, "look whether the run is done"), work.Project, in).Get(ctx, &res)
	})
	if err != nil {
		return fmt.Errorf("look whether run %s is done: %w", e.in.Target.RunID, err)
	}
	e.looked = true
	if res.Outcome == "final" {
		return e.j.finish(ctx, res)
	}
	return e.j.ended()
}

// ended is errFinal once the directory was found final.
func (j *journal) ended() error {
	if j.final {
		return errFinal
	}
	return nil
}

// taskSinceReset says that this workflow task came after the reset. The tasks before it are in the history that the reset has left: they have no version.
func taskSinceReset(ctx workflow.Context) bool {
	return sinceReset(ctx, fmt.Sprintf("task at %d", workflow.GetInfo(ctx).GetCurrentHistoryLength()))
}

// watchReset does the same for an execution that only waits behind the reset: for an answer, or to be resumed.
func (e *engine) watchReset(ctx workflow.Context) {
	if !wasReset(ctx) {
		return
	}
	workflow.GoNamed(ctx, "behind the reset", func(ctx workflow.Context) {
		err := workflow.Await(ctx, func() bool { return e.looked || e.j.final || e.opened && taskSinceReset(ctx) })
		if err == nil {
			err = e.behindReset(ctx)
		}
		if err != nil && ctx.Err() == nil {
			workflow.GetLogger(ctx).Error("whether the run is done is not known", "error", err) // the next thing that it does asks again
		}
	})
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
