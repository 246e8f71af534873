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
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// The server is asked for the gauges of queues and runs at a request, at most this often, and has this time to answer.
const (
	askEvery  = 15 * time.Second
	askWithin = 3 * time.Second
)

// projected counts the events that this worker has added, once a batch is on disk.
func (o WorkerConfig) projected(p activities.Projection) {
	if o.Metrics == nil {
		return
	}
	var events []run.Event
	for _, line := range p.Lines[len(p.Lines)-p.Added:] {
		events = append(events, rundir.ParseAny(line))
	}
	o.Metrics.Projected(p.Pipeline, events, time.Now())
}

// observe serves metrics and health of this worker until ctx ends.
func (o WorkerConfig) observe(ctx context.Context, acts *activities.Activities, h *sharedQueues) {
	if o.Metrics == nil || o.Settings.Metrics.Listen == "" {
		return
	}
	g := &gauges{WorkerConfig: o, acts: acts, queues: h.queues}
	o.Metrics.gauges = g.collect
	o.Metrics.Serve(ctx, o.Settings.Metrics.Listen, &Readiness{Checks: []Condition{
		{Name: "server", Do: func(ctx context.Context) error {
			_, err := o.Client.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
		{Name: "state_dir", Do: func(context.Context) error { return Writable(o.Settings.StateDir) }},
		{Name: "run_root", Do: func(context.Context) error { return Writable(o.Settings.RunRoot) }},
	}}, func(err error) { slog.Warn(err.Error()) })
}

// gauges are the values of a worker at a request.
type gauges struct {
	WorkerConfig
	acts   *activities.Activities
	queues func() []string

	mu    sync.Mutex
	asked time.Time
	facts []fact // what the server answered last
}

// fact is a value that the server knows.
type fact struct {
	row
	value  float64
	labels []string
}

func (g *gauges) collect(set func(r row, value float64, labels ...string)) {
	set(slots, float64(g.Settings.Calls))
	counts := map[[2]string]float64{}
	for _, c := range g.acts.RunningCalls() {
		counts[[2]string{c.Account, c.Program}]++
	}
	for c, n := range counts {
		set(callsRunning, n, c[:]...)
	}
	for _, s := range g.acts.Limits() {
		if at, err := time.Parse(run.TimeFormat, s.Reset); err == nil {
			set(limited, float64(at.UnixMilli())/1000, s.Account, string(s.Kind))
		}
	}
	for name, path := range map[string]string{"run_root": g.Settings.RunRoot, "state_dir": g.Settings.StateDir} {
		if v, err := volume.Of(path); err == nil {
			set(diskFree, float64(v.Free), name)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.asked) > askEvery {
		up := 1.0
		facts, err := g.ask()
		if err != nil {
			facts, up = nil, 0
		} else {
			g.asked = time.Now()
		}
		g.facts = append(facts, fact{row: serverUp, value: up})
	}
	for _, f := range g.facts {
		set(f.row, f.value, f.labels...)
	}
}

// ask returns what the server knows of the queues of this worker, and of open runs.
func (g *gauges) ask() (out []fact, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	own := contract.HostQueues(g.Settings.TaskQueue, g.Host)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(g.queues(), own.Dir, own.HostCalls)))) {
		d, err := g.Client.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: g.Namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: name},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
		})
		if err != nil {
			return nil, err
		}
		labels := []string{name}
		out = append(out, fact{backlog, float64(d.GetStats().GetApproximateBacklogCount()), labels},
			fact{age, d.GetStats().GetApproximateBacklogAge().AsDuration().Seconds(), labels})
	}
	if !g.Attributes {
		return out, nil
	}
	for _, s := range run.Statuses() {
		if c := s.Class(); c != run.Live && c != run.OperatorPause {
			continue
		}
		n, err := g.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: g.Namespace, Query: running + " AND PassbookStatus = '" + string(s) + "'",
		})
		if err != nil {
			return nil, err
		}
		out = append(out, fact{openRuns, float64(n.GetCount()), []string{string(s)}})
	}
	return out, nil
}
