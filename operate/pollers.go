package operate

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

	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// polledWithin is how long ago a worker that lives may have polled last: a poll waits for a minute.
const polledWithin = 70 * time.Second

// Pollers are the workers of one task queue.
type Pollers struct {
	Identities []string  // of those that live
	Last       time.Time // when one polled last, also one that has ended; zero: none that the server remembers, which is five minutes
}

// Pollers asks who polls a task queue.
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

// ended says that an identity, PID@HOST@, is that of a process of this machine that has ended: the server remembers it for a while.
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

// polled remembers what it has asked about queues, so that a list asks once for each.
type polled struct {
	Operator
	asked map[taskQueue]Pollers
}

func (o Operator) polled() *polled { return &polled{o, map[taskQueue]Pollers{}} }

// NoWorker names the queues of an open run that no worker polls. nil: all are polled, or it is not known.
func (o Operator) NoWorker(ctx context.Context, claim run.Claim, stands run.Standing) *run.NoWorker {
	return o.polled().noWorker(ctx, stands, queuesOf(claim))
}

// queuesOf are the queues without which no run continues: that of its workflow and that of its directory. What the host of a call lacks is another matter.
func queuesOf(claim run.Claim) []taskQueue {
	if claim.TaskQueue == "" || claim.Host == "" {
		return nil
	}
	q := work.QueuesOf(claim.TaskQueue, claim.Host)
	dir := taskQueue{q.Dir, enumspb.TASK_QUEUE_TYPE_ACTIVITY}
	if HostBound(claim.Store) {
		return []taskQueue{{q.Dir, enumspb.TASK_QUEUE_TYPE_WORKFLOW}, dir}
	}
	return []taskQueue{{work.StoreQueue(claim.TaskQueue, claim.Store), enumspb.TASK_QUEUE_TYPE_WORKFLOW}, dir}
}

func (p *polled) noWorker(ctx context.Context, stands run.Standing, needed []taskQueue) *run.NoWorker {
	if stands.Liveness != run.LiveOpen || p.WorkerStarts {
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

// also adds a queue. The time is the earliest of all queues; one that is not known is earlier than any.
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
