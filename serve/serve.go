// Package serve is a worker as a library: what it registers, which queues it polls, and when a background one stops.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	Scripted  []string                // argv of the built-in agent
	Converter converter.DataConverter // the client's; nil: nothing is encrypted
	Redact    *redact.Redactor        // what is hidden in what is written about the work; nil: keys in their well-known forms
	Ready     func() error
	Idle      func(ctx context.Context) error // returns when a background worker is to stop; nil: only ctx ends it
	Adjust    func(*activities.Config)        // nil in every program: a test puts its hooks under the activities
}

// Run polls until ctx ends or Idle returns. Running passes get a little time to end; then their agents are ended with the worker.
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
	acts := activities.New(o.activities(self))
	defer acts.Stop()
	if err := acts.ReapDead(ctx); err != nil {
		return fmt.Errorf("end what earlier workers have left behind: %w", err)
	}
	if err := operate.SweepEnvironments(o.Settings.StateDir); err != nil { // one file that cannot be removed must not hold up all runs of the host
		slog.Warn("environments of closed runs stay until the next worker starts", "error", err)
	}
	if err := acts.LearnAll(); err != nil {
		return fmt.Errorf("read the environments of runs: %w", err)
	}
	group := workers(o, acts)
	for i, w := range group {
		if err := w.Start(); err != nil {
			stop(group[:i])
			return fmt.Errorf("start polling: %w", err)
		}
	}
	defer stop(group)
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

func workers(o Options, acts *activities.Activities) []worker.Worker {
	q := work.QueuesOf(o.Settings.TaskQueue, o.Host)
	short := worker.Options{MaxHeartbeatThrottleInterval: signs(o.Settings.Heartbeat), DisableRegistrationAliasing: true, StickyScheduleToStartTimeout: 2 * time.Second}
	short.MaxConcurrentLocalActivityExecutionSize = o.Settings.Concurrency.On(config.ThisHost(o.Settings.StateDir)).Prompts
	calls := short
	calls.MaxConcurrentActivityExecutionSize = o.Settings.Calls
	calls.DisableWorkflowWorker = true
	calls.WorkerStopTimeout = 10 * time.Second
	shared := worker.New(o.Client, q.Shared, short)
	dir := worker.New(o.Client, q.Dir, short)
	for _, w := range []worker.Worker{shared, dir} {
		workflows.Register(w, o.Redact.Text)
		acts.RegisterLocal(w)
	}
	acts.RegisterDirectory(dir)
	any, host := worker.New(o.Client, q.Calls, calls), worker.New(o.Client, q.HostCalls, calls)
	acts.RegisterCalls(any)
	acts.RegisterCalls(host)
	return []worker.Worker{dir, host, shared, any}
}

// signs is how often a worker shows that it lives. The SDK's own choice leaves a fifth of the time to a busy machine; then it counts as lost.
func signs(heartbeat time.Duration) time.Duration { return min(heartbeat/4, 2*time.Second) }

func stop(group []worker.Worker) {
	for _, w := range group {
		w.Stop()
	}
}
