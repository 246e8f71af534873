package host

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// pollEvery is how often the server is asked for the gauges of queues and runs; after an error, pollAgain.
const (
	pollEvery = 15 * time.Second
	pollAgain = 2 * time.Second
)

// projected returns what is done with a batch that is on disk: the events that this worker has added are counted.
func (o WorkerConfig) projected() func(activities.Projection) {
	return func(p activities.Projection) {
		if o.Metrics == nil {
			return
		}
		var events []run.Event
		for _, line := range p.Lines[len(p.Lines)-p.Added:] {
			events = append(events, rundir.ParseAny(line))
		}
		o.Metrics.Projected(p.Pipeline, events, time.Now())
	}
}

// observe serves metrics and health of this worker until the returned function is called.
func (o WorkerConfig) observe(ctx context.Context, acts *activities.Activities, h *sharedQueues) (stop func()) {
	if o.Metrics == nil || o.Settings.Metrics.Listen == "" {
		return func() {}
	}
	folders := map[string]string{"run_root": o.Settings.RunRoot, "state_dir": o.Settings.StateDir}
	o.Metrics.Use(Sources{
		Calls: func() (all []CallGauge) {
			for _, c := range acts.RunningCalls() {
				all = append(all, CallGauge(c))
			}
			return all
		},
		Limits:  func() []AccountLimit { return limitsOf(acts) },
		Slots:   o.Settings.Calls,
		Folders: folders,
	})
	ready := &Readiness{Checks: []Condition{
		{Name: "server", Do: func(ctx context.Context) error {
			_, err := o.Client.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
		{Name: "state_dir", Do: func(context.Context) error { return Writable(o.Settings.StateDir) }},
		{Name: "run_root", Do: func(context.Context) error { return Writable(o.Settings.RunRoot) }},
	}}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		o.Metrics.Serve(ctx, o.Settings.Metrics.Listen, ready, func(err error) { slog.Warn(err.Error()) })
	})
	all.Go(func() { o.poll(ctx, h) })
	return func() { cancel(); all.Wait() }
}

func limitsOf(acts *activities.Activities) (all []AccountLimit) {
	for _, s := range acts.Limits() {
		if at, err := time.Parse(run.TimeFormat, s.Reset); err == nil {
			all = append(all, AccountLimit{Account: s.Account, Kind: string(s.Kind), Reset: at})
		}
	}
	return all
}

// poll asks the server until ctx ends.
func (o WorkerConfig) poll(ctx context.Context, h *sharedQueues) {
	for {
		p, err := o.ask(ctx, h.queues())
		if ctx.Err() != nil {
			return
		}
		p.Up = err == nil
		o.Metrics.Polled(p)
		next := pollEvery
		if err != nil {
			next = pollAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// ask returns what the server knows of the queues of this worker, and of open runs.
func (o WorkerConfig) ask(ctx context.Context, queues []string) (Polled, error) {
	ctx, cancel := context.WithTimeout(ctx, pollEvery/3)
	defer cancel()
	own := contract.HostQueues(o.Settings.TaskQueue, o.Host)
	out := Polled{Runs: map[string]int64{}}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(queues, own.Dir, own.HostCalls)))) {
		d, err := o.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: o.Operator.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
		})
		if err != nil {
			return Polled{}, err
		}
		out.Queues = append(out.Queues, QueueGauge{Name: name, Tasks: d.GetStats().GetApproximateBacklogCount(),
			Age: d.GetStats().GetApproximateBacklogAge().AsDuration()})
	}
	if !o.Operator.Attributes {
		return out, nil
	}
	for _, s := range run.Statuses() {
		if c := s.Class(); c != run.Live && c != run.OperatorPause {
			continue
		}
		n, err := o.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: o.Operator.Namespace, Query: running + " AND PassbookStatus = '" + string(s) + "'",
		})
		if err != nil {
			return Polled{}, err
		}
		out.Runs[string(s)] = n.GetCount()
	}
	return out, nil
}
