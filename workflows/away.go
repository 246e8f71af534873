package workflows

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// bound says that all calls of the run are made on one host, because its store is a folder there.
func (e *engine) bound() bool { return strings.HasPrefix(e.in.Target.Store, "file:") }

// queueOf is where calls of a program wait for a worker that has it.
func (e *engine) queueOf(program string) string {
	if e.bound() || program == "" {
		return e.in.Calls
	}
	return work.ProgramQueue(e.in.Calls, program)
}

// shotsQueue is where screenshots wait for a worker with a browser. A definition that installs one can have them taken by any worker.
func (e *engine) shotsQueue(s work.Step) string {
	if e.bound() || len(s.Shots.Install) > 0 {
		return e.in.Calls
	}
	return work.BrowserQueue(e.in.Calls)
}

// local has the store read by the worker that has the workflow, and waits while it cannot be read: another worker may reach it, or this one later.
func (e *engine) local(ctx workflow.Context, activity string, in, out any) error {
	for n := 0; ; n++ {
		err := workflow.ExecuteLocalActivity(local(ctx), activity, in).Get(ctx, out)
		if err == nil || ctx.Err() != nil || permanent(err) {
			return err
		}
		if err := e.await(ctx, n, message(err), never); err != nil {
			return err
		}
	}
}

// permanent says that no later attempt at reading the store can succeed, or that somebody has to act before.
func permanent(err error) bool {
	for _, kind := range []string{work.ErrBadInput, work.ErrDiskFull, work.ErrDamaged, tooLarge} {
		if isType(err, kind) {
			return true
		}
	}
	var panicked *temporal.PanicError
	return errors.As(err, &panicked)
}

// A host that lacks something is asked again after awayFirst, then after twice as long each time, up to awayMost.
const (
	awayFirst = time.Second
	awayMost  = time.Minute
)

// await waits before the attempt after n others, and shows why. It is no pause: nobody has to do anything in Passbook. A message that asks for another
// try, such as a resume, ends the wait, and so does over.
func (e *engine) await(ctx workflow.Context, n int, cause string, over func() bool) error {
	asked := e.control.tries
	wait := time.Duration(float64(min(awayFirst<<min(n, 10), awayMost)) * e.in.Options.TimeScale)
	e.held = HeldAnswer{Waits: true, Message: cause, RetryAt: run.Time(workflow.Now(ctx).Add(wait))}
	e.show(ctx)
	defer func() {
		e.held = HeldAnswer{}
		e.show(ctx)
	}()
	opts := workflow.AwaitOptions{Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: "before the next attempt: " + run.OneLine(cause)}}
	_, err := workflow.AwaitWithOptions(ctx, opts, func() bool { return e.control.tries != asked || over() })
	return err
}

func never() bool { return false }

// awayHost is the host that reported that it does not reach the store; empty: another error.
func awayHost(err error) string {
	var app *temporal.ApplicationError
	var from work.Heartbeat
	if errors.As(err, &app) && app.Type() == work.ErrNoStore && app.HasDetails() && app.Details(&from) == nil {
		return from.Host
	}
	return ""
}

// elsewhere decides where a delivery goes that its host could not make for want of the store or of the program: once more to the host that may hold
// an answer which it could not store, and then to any host. ok: it is such a delivery.
func (p *pass) elsewhere(queue string, err error) (next string, wait time.Duration, ok bool) {
	if !isType(err, work.ErrNoStore) && !isType(err, work.ErrNoProgram) {
		return "", 0, false
	}
	any := p.e.queueOf(p.role.Program)
	if host := awayHost(err); host != "" && queue == any {
		return work.QueuesOf(p.e.in.Claim.TaskQueue, host).HostCalls, 30 * time.Second, true
	}
	return any, 0, true
}
