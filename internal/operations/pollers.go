package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// polledWithin is the maximum age of the last poll of a live worker: a poll takes up to a minute.
const polledWithin = 70 * time.Second

// Pollers are the workers of one task queue.
type Pollers struct {
	Identities []string  // of live workers
	Last       time.Time // of the last poll, even by an ended worker; zero: none in the last five minutes
}

// Pollers returns the workers that poll a task queue.
func (o Operator) Pollers(ctx context.Context, queue string, kind enumspb.TaskQueueType) (Pollers, error) {
	d, err := o.Client.DescribeTaskQueue(ctx, queue, kind)
	if err != nil {
		return Pollers{}, fmt.Errorf("ask about queue %s: %w", queue, err)
	}
	var p Pollers
	for _, q := range d.GetPollers() {
		at := q.GetLastAccessTime().AsTime()
		if at.After(p.Last) {
			p.Last = at
		}
		if time.Since(at) < polledWithin && !ended(q.GetIdentity()) {
			p.Identities = append(p.Identities, q.GetIdentity())
		}
	}
	return p, nil
}

// ended reports whether an identity, PID@HOST@, is that of an ended process of this machine. The server remembers it
// for a while.
func ended(identity string) bool {
	number, host, _ := strings.Cut(identity, "@")
	here, err := os.Hostname()
	pid, bad := strconv.Atoi(number)
	if err != nil || bad != nil || strings.TrimSuffix(host, "@") != here {
		return false
	}
	_, err = process.Of(pid)
	return errors.Is(err, process.ErrGone)
}

// taskQueue is a queue of one kind.
type taskQueue struct {
	name string
	kind enumspb.TaskQueueType
}

// polled caches the pollers of queues, so that a list asks once for each.
type polled struct {
	Operator
	asked map[taskQueue]Pollers
}

func (o Operator) polled() *polled { return &polled{o, map[taskQueue]Pollers{}} }

// NoWorker lists the queues of an open run that no worker polls. Nil: all are polled, or it is not known.
func (o Operator) NoWorker(ctx context.Context, claim run.Claim, effective run.EffectiveStatus) *run.NoWorker {
	return o.polled().noWorker(ctx, effective, queuesOf(claim))
}

// queuesOf lists the queues that every run needs: that of its workflow and that of its directory. The hosts of calls
// are checked elsewhere.
func queuesOf(claim run.Claim) []taskQueue {
	if claim.TaskQueue == "" || claim.Host == "" {
		return nil
	}
	q := contract.HostQueues(claim.TaskQueue, claim.Host)
	dir := taskQueue{q.Dir, enumspb.TASK_QUEUE_TYPE_ACTIVITY}
	if HostBound(claim.Store) {
		return []taskQueue{{q.Dir, enumspb.TASK_QUEUE_TYPE_WORKFLOW}, dir}
	}
	return []taskQueue{{contract.StoreQueue(claim.TaskQueue, claim.Store), enumspb.TASK_QUEUE_TYPE_WORKFLOW}, dir}
}

func (p *polled) noWorker(ctx context.Context, effective run.EffectiveStatus, needed []taskQueue) *run.NoWorker {
	if effective.Liveness != run.LiveOpen || p.WorkerStarts {
		return nil
	}
	var none *run.NoWorker
	for _, queue := range needed {
		found, known := p.asked[queue]
		if !known {
			var err error
			if found, err = p.Pollers(ctx, queue.name, queue.kind); err != nil {
				return nil
			}
			p.asked[queue] = found
		}
		if len(found.Identities) == 0 {
			none = also(none, queue.name, found.Last)
		}
	}
	return none
}

// also adds a queue. The time is the earliest of all queues; an unknown time is earlier than any.
func also(none *run.NoWorker, queue string, last time.Time) *run.NoWorker {
	since := ""
	if !last.IsZero() {
		since = run.Time(last)
	}
	if none == nil {
		return &run.NoWorker{Queues: []string{queue}, Since: since}
	}
	if !slices.Contains(none.Queues, queue) {
		none.Queues = append(none.Queues, queue)
	}
	none.Since = min(none.Since, since)
	return none
}
