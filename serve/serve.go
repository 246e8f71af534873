// Package serve is a worker as a library: what it registers, which queues it polls, and when a background one stops.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/browser"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/redact"
	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

// Options are what a worker needs.
type Options struct {
	Settings  config.Settings
	Client    client.Client
	Host      string                  // id of this host
	Operator  operate.Operator        // who starts the runs of schedules; without a client, nobody does
	Scripted  []string                // argv of the built-in agent
	Converter converter.DataConverter // the client's; nil: nothing is encrypted
	Redact    *redact.Redactor        // what is hidden in what is written about the work; nil: keys in their well-known forms
	Ready     func() error
	Idle      func(ctx context.Context) error // returns when a background worker is to stop; nil: only ctx ends it
	Adjust    func(*activities.Config)        // nil in every program: a test puts its hooks under the activities
	Now       <-chan struct{}                 // closed when a worker that waits for its calls is to end them; nil: never
	Say       func(line string)               // what a worker that stops waits for; nil: it is not reported
}

// Run polls until ctx ends or Idle returns. Then running calls are left to the next worker; with the setting drain it waits for them first.
func Run(ctx context.Context, o Options) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	if o.Redact == nil {
		if o.Redact, err = activities.NewRedactor(config.Settings{Store: o.Settings.Store}, nil); err != nil {
			return err
		}
	}
	host := newHost(o, self)
	conf := o.activities(self)
	conf.Needs = host.needs
	acts := activities.New(conf)
	defer acts.Stop()
	if err := acts.ReapDead(ctx); err != nil {
		return fmt.Errorf("end what earlier workers have left behind: %w", err)
	}
	if err := operate.SweepEnvironments(o.Settings); err != nil { // one file that cannot be removed must not hold up all runs of the host
		slog.Warn("environments of closed runs stay until the next worker starts", "error", err)
	}
	if err := acts.LearnAll(); err != nil {
		return fmt.Errorf("read the environments of runs: %w", err)
	}
	calls := newPool(o.Settings.Calls)
	group := workers(o, acts, calls)
	for i, w := range group {
		if err := w.Start(); err != nil {
			stop(group[:i])
			return fmt.Errorf("start polling: %w", err)
		}
	}
	host.open = o.opener(acts, calls)
	checking, end := context.WithCancel(ctx)
	var checks sync.WaitGroup
	checks.Go(func() { host.keep(checking) })
	defer func() {
		end()
		checks.Wait()
		o.finish(append(group, host.workers()...), acts)
	}()
	if o.Ready != nil {
		if err := o.Ready(); err != nil {
			return err
		}
	}
	if o.Idle == nil {
		<-ctx.Done()
		return nil
	}
	if err := o.Idle(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (o Options) activities(self process.Identity) activities.Config {
	c := activities.Config{
		Host: o.Host, Worker: self, Scratch: o.Settings.Scratch(), Scripted: o.Scripted,
		Bounds: o.Settings.Concurrency, Redact: o.Redact.Text, Learn: func(environ []string) { o.Redact.Learn(environ) }, StateDir: o.Settings.StateDir,
		Browser: browser.Options{Exec: o.Settings.Browser, TempDir: ""}, History: activities.TemporalHistory{Client: o.Client, Converter: o.Converter},
	}
	if o.Adjust != nil {
		o.Adjust(&c)
	}
	return c
}

// workers are those of the host's own queues.
func workers(o Options, acts *activities.Activities, calls *pool) []worker.Worker {
	q := work.QueuesOf(o.Settings.TaskQueue, o.Host)
	dir := worker.New(o.Client, q.Dir, o.short())
	workflows.Register(dir, o.Redact.Text)
	acts.RegisterLocal(dir)
	acts.RegisterDirectory(dir)
	if o.Operator.Client != nil {
		scheduled{o.Operator}.register(dir)
	}
	host := worker.New(o.Client, q.HostCalls, o.gated(&gate{pool: calls}))
	acts.RegisterCalls(host)
	return []worker.Worker{dir, host}
}

// opener begins to poll queues of runs on shared stores.
func (o Options) opener(acts *activities.Activities, calls *pool) func(queue) (polled, error) {
	pictures := newPool(o.bounds().Screenshots)
	return func(q queue) (polled, error) {
		var p polled
		switch q.kind {
		case workflowTasks:
			p.Worker = worker.New(o.Client, q.name, o.short())
			workflows.Register(p, o.Redact.Text)
			acts.RegisterLocal(p)
		default:
			p.gate = &gate{pool: calls}
			if q.kind == screenshots {
				p.gate.pool = pictures
			}
			opts := o.gated(p.gate)
			opts.MaxConcurrentActivityTaskPollers = 1
			p.Worker = worker.New(o.Client, q.name, opts)
			acts.RegisterCalls(p)
		}
		return p, p.Start()
	}
}

func (o Options) bounds() config.Concurrency {
	return o.Settings.Concurrency.On(config.ThisHost(o.Settings.StateDir))
}

func (o Options) base() worker.Options {
	return worker.Options{MaxHeartbeatThrottleInterval: signs(o.Settings.Heartbeat), DisableRegistrationAliasing: true, StickyScheduleToStartTimeout: 2 * time.Second}
}

// short are the options of workers whose work is short.
func (o Options) short() worker.Options {
	opts := o.base()
	opts.MaxConcurrentLocalActivityExecutionSize = o.bounds().Prompts
	return opts
}

// gated are the options of workers that make calls.
func (o Options) gated(g *gate) worker.Options {
	fixed, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{})
	if err != nil {
		panic(err) // its sizes are the defaults
	}
	opts := o.base()
	opts.DisableWorkflowWorker = true
	opts.WorkerStopTimeout = max(o.Settings.Drain, handOver)
	opts.Tuner = tuner{fixed, g}
	return opts
}

// tuner has its activities pass a gate.
type tuner struct {
	worker.WorkerTuner
	gate *gate
}

func (t tuner) GetActivityTaskSlotSupplier() worker.SlotSupplier { return t.gate }

// signs is how often a worker shows that it lives. The SDK's own choice leaves a fifth of the time to a busy machine; then it counts as lost.
func signs(heartbeat time.Duration) time.Duration { return min(heartbeat/4, 2*time.Second) }
