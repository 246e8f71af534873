package operations

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// polledWithin is the maximum age of the last poll of a live worker: a poll takes up to a minute.
const polledWithin = 70 * time.Second

// Pollers are the workers of one task queue.
type Pollers struct {
	Identities []string  // of live workers
	Last       time.Time // of the last poll, even by an ended worker; zero: none in the last five minutes
}

// Pollers returns the workers that poll a task queue, whatever their version.
func (o Operator) Pollers(ctx context.Context, queue string, kind enumspb.TaskQueueType) (Pollers, error) {
	d, err := o.describeQueue(ctx, queue, kind)
	if err != nil {
		return Pollers{}, err
	}
	return pollersOf(d, func(*run.DeploymentVersion) bool { return true }), nil
}

func (o Operator) describeQueue(ctx context.Context, queue string,
	kind enumspb.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	d, err := o.Client.DescribeTaskQueue(ctx, queue, kind)
	if err != nil {
		return nil, fmt.Errorf("ask about queue %s: %w", queue, err)
	}
	return d, nil
}

// pollersOf returns the workers of a queue whose version is wanted. The version of a worker outside of a deployment is
// nil.
func pollersOf(d *workflowservice.DescribeTaskQueueResponse, wanted func(*run.DeploymentVersion) bool) Pollers {
	var p Pollers
	for _, q := range d.GetPollers() {
		if !wanted(versionOfPoller(q)) {
			continue
		}
		at := q.GetLastAccessTime().AsTime()
		if at.After(p.Last) {
			p.Last = at
		}
		if alive(q) {
			p.Identities = append(p.Identities, q.GetIdentity())
		}
	}
	return p
}

// alive reports whether a worker still polls, as far as the server and this machine know.
func alive(p *taskqueuepb.PollerInfo) bool {
	return time.Since(p.GetLastAccessTime().AsTime()) < polledWithin && !ended(p.GetIdentity())
}

// ended reports whether an identity is that of an ended process of this machine. The server remembers it for a while.
func ended(identity string) bool {
	here, err := os.Hostname()
	id, _, ok := workerOf(identity)
	return err == nil && ok && id.Host == here && !id.Alive()
}

// taskQueue is a queue of one kind.
type taskQueue struct {
	name string
	kind enumspb.TaskQueueType
}

// polled caches the pollers of queues, so that a list asks once for each.
type polled struct {
	Operator
	asked map[taskQueue]*workflowservice.DescribeTaskQueueResponse
}

func (o Operator) polled() *polled {
	return &polled{o, map[taskQueue]*workflowservice.DescribeTaskQueueResponse{}}
}

// NoWorker lists the queues of an open run without a worker that gets its tasks. Nil: each has one, or it is not known.
func (o Operator) NoWorker(ctx context.Context, claim run.Claim, effective run.EffectiveStatus) *run.NoWorker {
	return o.polled().noWorker(ctx, effective, queuesOf(claim), o.pinnedRun(claim.RunID))
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

// noWorker asks each queue. pinned is asked for the version of the run only if a queue has workers with versions.
func (p *polled) noWorker(ctx context.Context, effective run.EffectiveStatus, needed []taskQueue,
	pinned pinnedVersion) *run.NoWorker {
	if effective.Liveness != run.LiveOpen || p.WorkerStarts {
		return nil
	}
	var none *run.NoWorker
	for _, queue := range needed {
		d, known := p.asked[queue]
		if !known {
			var err error
			if d, err = p.describeQueue(ctx, queue.name, queue.kind); err != nil {
				return nil
			}
			p.asked[queue] = d
		}
		takes, err := takersOf(ctx, d, pinned)
		if err != nil {
			return nil
		}
		if found := pollersOf(d, takes.include); len(found.Identities) == 0 {
			none = also(none, queue.name, found.Last)
			takes.explain(none, d)
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
