package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/awake"
	"github.com/passbook-run/passbook/internal/links"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// WorkerConfig configures a worker. Its operator names server, host, settings and user; without a redactor, only
// well-known forms of keys are redacted.
type WorkerConfig struct {
	operations.Operator
	Background bool                     // it stops when no run is open and no starter is attached
	Scripted   []string                 // argv of the scripted agent
	Ready      func() error             // called when the worker polls; an error stops it
	Adjust     func(*activities.Config) // a test's hooks; nil in every program
	Abort      <-chan struct{}          // closed to end the calls that a stopping worker waits for; nil: never
	Progress   func(line string)        // reports what a stopping worker waits for; nil: it is not reported
	Metrics    *Metrics                 // of this process; nil: none

	identity string // of this worker
}

// Run polls until ctx ends or Idle returns. Then it leaves running calls to the next worker. With the setting drain it
// waits for them first.
func RunWorker(ctx context.Context, o WorkerConfig) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	o.WorkerStarts = true
	o.identity = operations.WorkerIdentity(self, o.Host)
	if o.Redact == nil {
		if o.Redact, err = secrets.New(config.Settings{Store: o.Settings.Store}, nil); err != nil {
			return err
		}
	}
	if err := limitCache(o.bounds().Runs); err != nil {
		return err
	}
	if o.versioned() {
		if _, err := o.version(); err != nil {
			return err
		}
	}
	shared := newShared(o, self)
	conf := o.activities()
	if conf.Links, err = links.Load(o.Settings); err != nil {
		return err
	}
	secrets.LearnKeys(o.Redact, o.Settings) // they may be new
	conf.Needs, conf.Projected = shared.needs, o.projected
	acts, err := activities.New(conf)
	if err != nil {
		return err
	}
	defer acts.Stop()
	if err := recoverState(ctx, o, acts); err != nil {
		return err
	}
	calls := newPool(o.Settings.Calls)
	group := workers(o, acts, calls)
	for i, w := range group {
		if err := w.Start(); err != nil {
			stop(group[:i])
			return fmt.Errorf("start polling: %w", err)
		}
	}
	shared.open = o.opener(acts, calls)
	checking, end := context.WithCancel(ctx)
	var checks sync.WaitGroup
	checks.Go(func() { shared.keep(checking) })
	checks.Go(func() { o.continueRuns(checking) })
	checks.Go(func() { o.observe(checking, acts, shared) })
	defer func() {
		end()
		checks.Wait()
		o.finish(append(group, shared.workers()...), acts)
	}()
	return o.wait(ctx)
}

// recoverState ends what earlier workers left behind, and reads the environments of runs.
func recoverState(ctx context.Context, o WorkerConfig, acts *activities.Activities) error {
	if err := acts.ReapDead(ctx); err != nil {
		return fmt.Errorf("end what earlier workers left behind: %w", err)
	}
	// One file that cannot be removed must not stop the worker of all runs.
	if err := operations.SweepEnvironments(o.Settings); err != nil {
		slog.Warn("environments of closed runs stay until the next worker starts", "error", err)
	}
	if err := acts.LearnAllSecrets(); err != nil {
		return fmt.Errorf("read the environments of runs: %w", err)
	}
	return nil
}

// continueRuns ends what dead workers held, and lets runs that wait continue from their directories, if these are newer than
// the workflows.
func (o WorkerConfig) continueRuns(ctx context.Context) {
	if err := o.EndLost(ctx); err != nil && ctx.Err() == nil {
		slog.Warn("some runs continue only when Temporal misses the heartbeats of a dead worker", "error", err)
	}
	if err := o.RefreshAll(ctx); err != nil && ctx.Err() == nil {
		slog.Warn("some runs were not compared with their directories", "error", err)
	}
}

// wait returns when the worker is to stop.
func (o WorkerConfig) wait(ctx context.Context) (err error) {
	if o.Ready != nil {
		if err := o.Ready(); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go o.watchState(ctx, stop)
	if o.Background {
		err = o.idle(ctx)
	} else {
		<-ctx.Done()
	}
	if gone := (*StateGoneError)(nil); errors.As(context.Cause(ctx), &gone) {
		return gone
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// StateGoneError ends a worker whose state directory was removed, or replaced by that of another host.
type StateGoneError struct{ Dir string }

func (e *StateGoneError) Error() string {
	return "the state directory " + e.Dir + " was removed or replaced; its worker ends"
}

// watchState stops the worker when the id of its host is gone.
func (o WorkerConfig) watchState(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id, err := readHostID(o.Settings.StateDir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && id != o.Host {
			stop(&StateGoneError{o.Settings.StateDir})
			return
		}
	}
}

func (o WorkerConfig) activities() activities.Config {
	c := activities.Config{
		Host: o.Host, Scratch: o.Settings.Scratch(), Scripted: o.Scripted,
		Prices:   o.Settings.Prices,
		PerDay:   o.Settings.PerDay,
		AtOnce:   o.Settings.AtOnce,
		Sandbox:  o.Settings.Sandbox,
		Own:      func() ([]string, error) { return OwnServers(o.Settings, o.Address) },
		Programs: o.Settings.Policy.Agents,
		Redact:   o.Redact.Text, LearnSecrets: func(environ []string) { o.Redact.Learn(environ) },
		StateDir: o.Settings.StateDir, KnownStores: operations.Stores{Settings: o.Settings}.Known,
		Stores: operations.Stores{Settings: o.Settings}.Allow, Roots: o.Settings.Policy.Roots,
		Browser: o.Settings.Browser, Forge: o.Settings.Forge.URL,
		Client: o.Client, Converter: o.Converter,
	}
	if o.Settings.KeepAwake {
		c.KeepAwake = awake.New(func(err error) {
			slog.Warn("the machine may sleep while calls run; keep_awake: false disables this warning", "error", err)
		}, awake.Linger).Hold
	}
	if o.Adjust != nil {
		o.Adjust(&c)
	}
	return c
}

// workers returns the workers of the host's own queues.
func workers(o WorkerConfig, acts *activities.Activities, calls *pool) []worker.Worker {
	q := contract.HostQueues(o.Settings.TaskQueue, o.Host)
	flows := worker.New(o.Client, q.Dir, o.workflowOptions())
	workflows.Register(flows, o.Redact.Text)
	acts.RegisterLocal(flows)
	group, dir := []worker.Worker{flows}, flows
	if o.versioned() {
		opts := o.base()
		opts.DisableWorkflowWorker = true
		dir = worker.New(o.Client, q.Dir, opts)
		group = append(group, dir)
	}
	acts.RegisterDirectory(dir)
	g := &slotGate{pool: calls}
	own := polled{worker.New(o.Client, q.HostCalls, o.gated(g)), g}
	acts.RegisterCalls(own)
	return append(group, own)
}

// opener returns the function that starts to poll a queue of runs on shared stores.
func (o WorkerConfig) opener(acts *activities.Activities, calls *pool) func(queue) (polled, error) {
	pictures := newPool(o.bounds().Screenshots)
	return func(q queue) (polled, error) {
		var p polled
		switch q.kind {
		case workflowTasks:
			p.Worker = worker.New(o.Client, q.name, o.workflowOptions())
			workflows.Register(p, o.Redact.Text)
			acts.RegisterLocal(p)
		default:
			p.gate = &slotGate{pool: calls}
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

func (o WorkerConfig) bounds() config.Concurrency {
	return config.ThisHost(o.Settings.StateDir).Concurrency()
}

func (o WorkerConfig) base() worker.Options {
	return worker.Options{
		Identity: o.identity, MaxHeartbeatThrottleInterval: heartbeatEvery(o.Settings.Heartbeat), DisableRegistrationAliasing: true,
		StickyScheduleToStartTimeout: 2 * time.Second,
	}
}

// short returns the options of workers with short tasks.
func (o WorkerConfig) short() worker.Options {
	opts := o.base()
	opts.MaxConcurrentLocalActivityExecutionSize = o.bounds().Prompts
	return opts
}

// gated returns the options of workers that make calls.
func (o WorkerConfig) gated(g *slotGate) worker.Options {
	fixed, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{})
	if err != nil {
		panic(err) // its sizes are the defaults
	}
	opts := o.base()
	opts.DisableWorkflowWorker = true
	opts.WorkerStopTimeout = max(o.Settings.Drain, stopFlows+handOver)
	opts.Tuner = tuner{fixed, g}
	return opts
}

// tuner limits activities with a gate.
type tuner struct {
	worker.WorkerTuner
	gate *slotGate
}

func (t tuner) GetActivityTaskSlotSupplier() worker.SlotSupplier { return t.gate }

// heartbeatEvery is the interval of heartbeats. The SDK's default leaves a busy machine a fifth of the time before its
// worker counts as lost.
func heartbeatEvery(timeout time.Duration) time.Duration { return min(timeout/4, 2*time.Second) }

// CacheVar overrides the number of workflow executions that a worker keeps in memory between their tasks. Tests set
// it to 0: then each task executes the workflow again from its whole history.
const CacheVar = "PASSBOOK_TEST_WORKFLOW_CACHE"

// limitCache limits the executions in memory, before the first worker of the process starts.
func limitCache(runs int) error {
	if text := os.Getenv(CacheVar); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q; set it to a number of executions, or unset it", CacheVar, text)
		}
		runs = n
	}
	worker.SetStickyWorkflowCacheSize(runs)
	return nil
}
