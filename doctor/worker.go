package doctor

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/serve"
	"github.com/passbook-run/passbook/work"
)

const (
	polledWithin = 70 * time.Second // how long ago a worker that lives may have asked last: a poll waits for a minute
	justStarted  = 30 * time.Second
	settles      = 5 * time.Second
)

// worker says whether somebody works on the queues.
func (e *examiner) worker(ctx context.Context, o operate.Operator) {
	if o.Embedded {
		e.background()
	}
	q := work.QueuesOf(e.Settings.TaskQueue, e.host)
	needed := []struct {
		name string
		kind enumspb.TaskQueueType
	}{
		{q.Shared, enumspb.TASK_QUEUE_TYPE_WORKFLOW}, {q.Calls, enumspb.TASK_QUEUE_TYPE_ACTIVITY},
		{q.Dir, enumspb.TASK_QUEUE_TYPE_ACTIVITY}, {q.HostCalls, enumspb.TASK_QUEUE_TYPE_ACTIVITY},
	}
	var idle []string
	workers := map[string]bool{}
	for _, n := range needed {
		found, err := e.awaitPollers(ctx, o, n.name, n.kind)
		if err != nil {
			e.say(Unchecked, "worker", "queues", "", "%v", err)
			return
		}
		for _, identity := range found {
			workers[identity] = true
		}
		if len(found) == 0 {
			idle = append(idle, n.name)
		}
	}
	e.queues(ctx, o, idle, len(workers))
}

// awaitPollers gives a worker that has just started the time to ask for the first time.
func (e *examiner) awaitPollers(ctx context.Context, o operate.Operator, queue string, kind enumspb.TaskQueueType) ([]string, error) {
	var found []string
	starting := e.status.Worker != nil && time.Since(e.status.Worker.Started) < justStarted
	err := until(ctx, settles, func() (bool, error) {
		var err error
		found, err = pollers(ctx, o, queue, kind)
		return !starting || len(found) > 0, err
	})
	return found, err
}

func (e *examiner) queues(ctx context.Context, o operate.Operator, idle []string, workers int) {
	switch {
	case len(idle) == 0:
		e.ok("worker", "queues", "all four queues of this machine are polled, by %d in all", workers)
	case o.Embedded && !serve.AnyOpen(ctx, o.Client, o.Namespace):
		e.ok("worker", "queues", "no run is open, so no worker is needed; one starts with the next run")
	case o.Embedded:
		e.say(Problem, "worker", "queues", e.starts(o), "runs are open, and nobody works on %s", strings.Join(idle, ", "))
	default:
		e.say(Problem, "worker", "queues", e.starts(o), "nobody works on %s; a worker is wanted on this machine", strings.Join(idle, ", "))
	}
}

// background tells of the recorded worker.
func (e *examiner) background() {
	w := e.status.Worker
	if w == nil {
		e.say(Unchecked, "worker", "background", "", "no background worker runs; it starts with a run and stops when there is no work")
		return
	}
	which := "this very build"
	if !strings.HasSuffix(w.Key, " "+e.Build) {
		which = "another build, used until it makes no call"
	}
	e.ok("worker", "background", "pid %d since %s, %s", w.Process.PID, when(w.Started), which)
}

// pollers are the identities of those who work on a queue.
func pollers(ctx context.Context, o operate.Operator, queue string, kind enumspb.TaskQueueType) ([]string, error) {
	d, err := o.Client.DescribeTaskQueue(ctx, queue, kind)
	if err != nil {
		return nil, fmt.Errorf("ask about queue %s: %w", queue, err)
	}
	var out []string
	for _, p := range d.GetPollers() {
		if time.Since(p.GetLastAccessTime().AsTime()) < polledWithin && !dead(p.GetIdentity()) {
			out = append(out, p.GetIdentity())
		}
	}
	return out, nil
}

// dead says that an identity, PID@HOST@, is that of a process of this machine that has ended: the server remembers it for a while.
func dead(identity string) bool {
	number, host, _ := strings.Cut(identity, "@")
	here, err := os.Hostname()
	pid, bad := strconv.Atoi(number)
	if err != nil || bad != nil || strings.TrimSuffix(host, "@") != here {
		return false
	}
	_, err = process.Of(pid)
	return err != nil
}

// starts is what brings a worker.
func (e *examiner) starts(o operate.Operator) string {
	if o.Embedded {
		return e.typed("server start")
	}
	return fmt.Sprintf("TEMPORAL_ADDRESS=%s PASSBOOK_STATE_DIR=%s %s", o.Address, e.Settings.StateDir, e.typed("worker"))
}
