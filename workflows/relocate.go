package workflows

import (
	"errors"
	"path"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// directoryUse excludes activities in the directory and the check of its new location from each other, so that
// nothing is written to the old location.
type directoryUse struct {
	activities int
	moving     bool
}

// withDirectory runs an activity on the directory's current host.
func (e *engine) withDirectory(ctx workflow.Context, do func() error) error {
	if err := workflow.Await(ctx, func() bool { return !e.directory.moving }); err != nil {
		return err
	}
	e.directory.activities++
	defer func() { e.directory.activities-- }()
	return do()
}

// hostTimeout is the time a message waits for the directory's host before it is refused.
const hostTimeout = 5 * time.Second

// awaitFor waits for a condition with a timeout. If the condition already holds, it adds nothing to history.
func awaitFor(ctx workflow.Context, most time.Duration, summary string, condition func() bool) (bool, error) {
	if condition() {
		return true, nil
	}
	return workflow.AwaitWithOptions(ctx,
		workflow.AwaitOptions{Timeout: most, TimerOptions: workflow.TimerOptions{Summary: summary}}, condition)
}

// validateMove checks the directory and queue in a message before any host does.
func (c *control) validateMove(verb string, m Message) error {
	switch {
	case m.Dir == "" && m.Queue == "":
		return nil
	case verb != VerbRehome && (verb != VerbResume || m.Queue != ""):
		return refuse(`a %s message cannot move the run: send rehome {"dir":"/new"} first, or `+
			`run "starter resume %s --output-dir /new"`, verb, shell.Quote(c.runID()))
	case m.Dir != "" && !path.IsAbs(m.Dir):
		return refuse("%s is not an absolute path", m.Dir)
	}
	if c.changesLocation(m) && c.e.j.state.Status.Class() != run.OperatorPause {
		return unmet("the run is %s: pause it before you move its directory", c.e.j.state.Status)
	}
	return nil
}

// changesLocation reports whether a message names another directory or queue than the current one.
func (c *control) changesLocation(m Message) bool {
	return m.Dir != "" && path.Clean(m.Dir) != path.Clean(c.e.in.Target.Dir) || m.Queue != "" &&
		m.Queue != c.e.in.DirQueue
}

// relocate switches the run to the directory in a message, once its host has found the run there. If refused,
// nothing changes.
func (c *control) relocate(ctx workflow.Context, verb string, m Message) error {
	e := c.e
	free := func() bool { return !e.directory.moving && e.directory.activities == 0 }
	ok, err := awaitFor(ctx, hostTimeout, "until activities in the directory finish", free)
	if err != nil {
		return err
	}
	if !ok {
		return unmet("activities in %s are still running. %s", e.in.Target.Dir, startWorkerHint(e.in.DirQueue))
	}
	e.directory.moving = true
	defer func() { e.directory.moving = false }()
	if err := c.verifyNewLocation(ctx, m); err != nil {
		return err
	}
	if err := c.validate(verb, m); err != nil { // what was valid on acceptance may not be now
		return err
	}
	ev := run.RunRehomed{From: e.in.Target.Dir, To: path.Clean(m.Dir), By: m.By, Note: m.Note}
	if m.Queue != "" && m.Queue != e.in.DirQueue {
		ev.FromQueue, ev.ToQueue = e.in.DirQueue, m.Queue
		e.in.DirQueue = m.Queue
	}
	e.in.Target.Dir = ev.To
	return c.record(ctx, run.KindRunRehomed, ev)
}

// verifyNewLocation asks the host in a message to check the directory.
func (c *control) verifyNewLocation(ctx workflow.Context, m Message) error {
	e := c.e
	in := contract.RehomeInput{
		Target: e.in.Target, From: e.in.Target.Dir, Epoch: e.j.state.Epoch, Execution: workflow.GetInfo(ctx).FirstRunID,
		Tail: e.j.disk.tail, Head: e.j.head,
	}
	in.To = path.Clean(m.Dir)
	queue := e.in.DirQueue
	if m.Queue != "" && m.Queue != queue {
		queue, in.From = m.Queue, ""
	}
	ctx = e.directoryOptions(ctx, "check "+in.To)
	opts := workflow.GetActivityOptions(ctx)
	opts.TaskQueue, opts.ScheduleToStartTimeout, opts.ScheduleToCloseTimeout, opts.RetryPolicy.MaximumAttempts = queue,
		hostTimeout, time.Minute, 3
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), contract.Rehome, in).Get(ctx, nil)
	var late *temporal.TimeoutError
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.As(err, &late) && late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return unmet("%s was not checked. %s", in.To, startWorkerHint(queue))
	}
	return refuse("the run stays in %s: %s", e.in.Target.Dir, errorMessage(err))
}

// startWorkerHint describes what to do if no worker polls the queue of a directory.
func startWorkerHint(queue string) string {
	return "No worker polls task queue " + queue +
		": start one on that host (run \"starter server start\" or the worker program), then send the message again"
}
