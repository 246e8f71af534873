package workflows

import (
	"errors"
	"path"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// home is who is at the directory: work on it, or the check of a move. They exclude each other, so that nothing is written to where it was.
type home struct {
	work   int
	moving bool
}

// atHome does work on the directory's host, wherever that is by then.
func (e *engine) atHome(ctx workflow.Context, do func() error) error {
	if err := workflow.Await(ctx, func() bool { return !e.home.moving }); err != nil {
		return err
	}
	e.home.work++
	defer func() { e.home.work-- }()
	return do()
}

// hostWait is how long a message waits for the host of a directory before it is refused.
const hostWait = 5 * time.Second

// within waits for a condition, but not for long. It adds nothing to history where the condition holds.
func within(ctx workflow.Context, most time.Duration, summary string, condition func() bool) (bool, error) {
	if condition() {
		return true, nil
	}
	return workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: most, TimerOptions: workflow.TimerOptions{Summary: summary}}, condition)
}

// mayMove holds what speaks against a message that names a directory or a queue, before anybody looks at them.
func (c *control) mayMove(verb string, m Message) error {
	switch {
	case m.Dir == "" && m.Queue == "":
		return nil
	case verb != VerbRehome && (verb != VerbResume || m.Queue != ""):
		return refuse("a message %s does not move the run. Send rehome {\"dir\":\"/new\"} first (starter resume --output-dir /new)", verb)
	case m.Dir != "" && !path.IsAbs(m.Dir):
		return refuse("%s is not an absolute path", m.Dir)
	}
	if c.moves(m) && c.e.j.state.Status.Class() != run.OperatorPause {
		return refuse("the run is %s: its directory can be moved while it rests. Pause it first", c.e.j.state.Status)
	}
	return nil
}

// moves says that a message names another place than the one that the run has.
func (c *control) moves(m Message) bool {
	return m.Dir != "" && path.Clean(m.Dir) != path.Clean(c.e.in.Target.Dir) || m.Queue != "" && m.Queue != c.e.in.DirQueue
}

// move makes the directory that a message names the run's, once that host has found the run there. If it is refused, the run stays where it is.
func (c *control) move(ctx workflow.Context, verb string, m Message) error {
	e := c.e
	free := func() bool { return !e.home.moving && e.home.work == 0 }
	ok, err := within(ctx, hostWait, "until the directory is free to be moved", free)
	if err != nil {
		return err
	}
	if !ok {
		return refuse("work on %s is not finished. %s", e.in.Target.Dir, startWorker(e.in.DirQueue))
	}
	e.home.moving = true
	defer func() { e.home.moving = false }()
	if err := c.look(ctx, m); err != nil {
		return err
	}
	if err := c.check(verb, m); err != nil { // what held when it was accepted may not hold any more
		return err
	}
	ev := run.RunRehomed{From: e.in.Target.Dir, To: path.Clean(m.Dir), By: m.By, Note: m.Note}
	if m.Queue != "" && m.Queue != e.in.DirQueue {
		ev.FromQueue, ev.ToQueue = e.in.DirQueue, m.Queue
		e.in.DirQueue = m.Queue
	}
	e.in.Target.Dir = ev.To
	return c.note(ctx, run.KindRunRehomed, ev)
}

// look has the host that a message names look at the directory.
func (c *control) look(ctx workflow.Context, m Message) error {
	e := c.e
	in := work.RehomeInput{
		Target: e.in.Target, From: e.in.Target.Dir, Epoch: e.j.state.Epoch, Execution: workflow.GetInfo(ctx).FirstRunID, Tail: e.j.tail, Head: e.j.head,
	}
	in.Dir = path.Clean(m.Dir)
	queue := e.in.DirQueue
	if m.Queue != "" && m.Queue != queue {
		queue, in.From = m.Queue, ""
	}
	ctx = e.directory(ctx, "look at "+in.Dir)
	opts := workflow.GetActivityOptions(ctx)
	opts.TaskQueue, opts.ScheduleToStartTimeout, opts.ScheduleToCloseTimeout, opts.RetryPolicy.MaximumAttempts = queue, hostWait, time.Minute, 3
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), work.Rehome, in).Get(ctx, nil)
	var late *temporal.TimeoutError
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.As(err, &late) && late.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return refuse("%s was not looked at. %s", in.Dir, startWorker(queue))
	}
	return refuse("the run stays in %s: %s", e.in.Target.Dir, message(err))
}

// startWorker says what to do where no worker takes the work on a directory.
func startWorker(queue string) string {
	return "No worker takes task queue " + queue + ": start one on that host (starter server start, or the worker program), then send the message again"
}
