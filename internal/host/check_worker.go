package host

import (
	"context"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/workflows/contract"
)

const (
	justStarted = 30 * time.Second
	settles     = 5 * time.Second
)

// worker checks whether workers poll the queues.
func (e *examiner) worker(ctx context.Context, o operations.Operator) {
	if o.Embedded {
		e.background()
	}
	q := contract.HostQueues(e.Settings.TaskQueue, e.host)
	var idle []string
	workers := map[string]bool{}
	for _, name := range []string{q.Dir, q.HostCalls} {
		found, err := e.awaitPollers(ctx, o, name, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err != nil {
			e.add(Unchecked, "worker", "queues", "", "%v", err)
			return
		}
		for _, identity := range found {
			workers[identity] = true
		}
		if len(found) == 0 {
			idle = append(idle, name)
		}
	}
	e.queues(ctx, o, idle, len(workers))
	e.capabilities()
	e.shared(ctx, o)
}

// awaitPollers waits for the first poll of a worker that has just started.
func (e *examiner) awaitPollers(ctx context.Context, o operations.Operator, queue string,
	kind enumspb.TaskQueueType) ([]string, error) {
	var found []string
	starting := e.status.Worker != nil && time.Since(e.status.Worker.Started) < justStarted
	err := until(ctx, settles, func() (bool, error) {
		p, err := o.Pollers(ctx, queue, kind)
		found = p.Identities
		return !starting || len(found) > 0, err
	})
	return found, err
}

func (e *examiner) queues(ctx context.Context, o operations.Operator, idle []string, workers int) {
	switch {
	case len(idle) == 0:
		e.ok("worker", "queues", "both queues of this machine are polled, by %d in all", workers)
	case o.Embedded && !AnyOpen(ctx, o.Client, o.Namespace):
		e.ok("worker", "queues", "no run is open, so no worker is needed; one starts with the next run")
	case o.Embedded:
		e.add(Problem, "worker", "queues", e.starts(o), "runs are open, and no worker polls %s",
			strings.Join(idle, ", "))
	default:
		e.add(Problem, "worker", "queues", e.starts(o), "no worker polls %s; start a worker on this machine",
			strings.Join(idle, ", "))
	}
}

// background checks the recorded worker.
func (e *examiner) background() {
	w := e.status.Worker
	if w == nil {
		e.add(Unchecked, "worker", "background", "",
			"no background worker runs; it starts with a run and stops when there is no work")
		return
	}
	which := "this build"
	if !strings.HasSuffix(w.Key, " "+e.Build) {
		which = "another build, replaced when it makes no call"
	}
	e.ok("worker", "background", "pid %d since %s, %s", w.Process.PID, when(w.Started), which)
}

// keeper checks the keeper, and reports what it could not restart.
func (e *examiner) keeper() {
	k := e.status.Keeper
	switch {
	case !e.Settings.Keeper || k == nil && e.status.Server == nil:
		return
	case k == nil:
		e.add(Warning, "worker", "keeper", e.typed("server start"),
			"no keeper runs: nothing restarts the server and the worker if they crash")
		return
	}
	for _, part := range []struct {
		name string
		Restarts
	}{{"server", k.Server}, {"worker", k.Worker}} {
		if part.Failing() {
			e.add(Problem, "worker", "keeper", "fix the cause; it tries again every minute",
				"the %s %s", part.name, part.Restarts)
			return
		}
	}
	e.ok("worker", "keeper", "pid %d since %s, restarts the server and the worker", k.Process.PID, when(k.Started))
}

// starts returns the command that starts a worker.
func (e *examiner) starts(o operations.Operator) string {
	if o.Embedded {
		return e.typed("server start")
	}
	return shell.Sprintf("TEMPORAL_ADDRESS=%s PASSBOOK_STATE_DIR=%s ", o.Address, e.Settings.StateDir) +
		e.typed("worker")
}

// until repeats f until it returns true or an error, or the time has passed, which is not an error.
func until(ctx context.Context, most time.Duration, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
