package workflows

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// hostBound reports whether all calls run on one host, because its store is a folder there.
func (e *engine) hostBound() bool { return strings.HasPrefix(e.in.Target.Store, "file:") }

// callQueue returns the task queue for calls of a program.
func (e *engine) callQueue(program string) string {
	if e.hostBound() || program == "" {
		return e.in.Calls
	}
	return contract.ProgramQueue(e.in.Calls, program)
}

// screenshotQueue returns the task queue for screenshots. If the definition installs a browser, any worker can
// take them.
func (e *engine) screenshotQueue(s contract.Step) string {
	if e.hostBound() || len(s.Shots.Install) > 0 {
		return e.in.Calls
	}
	return contract.BrowserQueue(e.in.Calls)
}

// readStore runs a local activity that reads the store, and retries while the store is unreachable.
func (e *engine) readStore(ctx workflow.Context, activity string, in, out any) error {
	for n := 0; ; n++ {
		err := workflow.ExecuteLocalActivity(localOptions(ctx), activity, in).Get(ctx, out)
		if err == nil || ctx.Err() != nil || permanent(err) {
			return err
		}
		if err := e.awaitRetry(ctx, n, errorMessage(err), never); err != nil {
			return err
		}
	}
}

// permanent reports whether no later attempt at reading the store can succeed without an operator.
func permanent(err error) bool {
	for _, kind := range []string{contract.ErrBadInput, contract.ErrDiskFull, contract.ErrDamaged, tooLarge} {
		if isType(err, kind) {
			return true
		}
	}
	var panicked *temporal.PanicError
	return errors.As(err, &panicked)
}

// Backoff for a host that lacks the store or a program.
const (
	unavailableRetryMin = time.Second
	unavailableRetryMax = time.Minute
)

// awaitRetry waits before the attempt that follows n others, and shows the cause. The run is not paused. A message
// that asks for a retry, such as a resume, ends the wait, and so does over.
func (e *engine) awaitRetry(ctx workflow.Context, n int, cause string, over func() bool) error {
	asked := e.control.retryRequests
	next := time.Duration(float64(min(unavailableRetryMin<<min(n, 10), unavailableRetryMax)) * e.in.Options.TimeScale)
	_, err := e.wait(ctx, wait{name: waitHost, until: workflow.Now(ctx).Add(next), cause: cause,
		summary: "before the next attempt: " + run.OneLine(cause),
		wakes:   func() bool { return e.control.retryRequests != asked || over() }})
	e.held = contract.HeldAnswer{}
	e.showDetails(ctx)
	return err
}

func never() bool { return false }

// hostWithoutStore returns the host that reported that it cannot reach the store, or "" for other errors.
func hostWithoutStore(err error) string {
	var app *temporal.ApplicationError
	var from contract.Heartbeat
	if errors.As(err, &app) && app.Type() == contract.ErrNoStore && app.HasDetails() && app.Details(&from) == nil {
		return from.Host
	}
	return ""
}

// reroute decides where a delivery goes that its host could not make for lack of the store or the program: once
// more to the host that may hold a result, then to any host. ok reports whether err is of that kind.
func (p *pass) reroute(queue string, err error) (next string, wait time.Duration, ok bool) {
	if !isType(err, contract.ErrNoStore) && !isType(err, contract.ErrNoProgram) {
		return "", 0, false
	}
	any := p.e.callQueue(p.agent().Program)
	if host := hostWithoutStore(err); host != "" && queue == any {
		return contract.HostQueues(p.e.in.Claim.TaskQueue, host).HostCalls, 30 * time.Second, true
	}
	return any, 0, true
}
