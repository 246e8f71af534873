// Package activities does what the workflow asks for: directories, prompts, passes, pictures. It is glue without decisions: outcomes are
// results, and what is to follow from them is the workflow's business.
package activities

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/browser"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/volume"
	"github.com/passbook-run/passbook/work"
)

// Config is what activities depend on.
type Config struct {
	Host       string                                // id of this host
	Worker     process.Identity                      // this process
	Scratch    string                                // folder for scratch directories
	Scripted   []string                              // argv of the built-in agent
	Supervisor []string                              // argv of the supervisor of a call; nil: supervisor.Argv
	Browser    browser.Options                       // how to start a browser
	Redact     func(string) string                   // every persisted text goes through it; nil keeps it
	Learn      func(environ []string)                // makes Redact know the secrets of an environment; nil: it knows enough
	StateDir   string                                // where environments are handed over to the calls of runs; empty: none are
	History    History                               // to write a lost directory again
	Bounds     config.Concurrency                    // of each kind of work; what is 0 follows from the host
	Open       func(root string) rundir.Dir          // nil: rundir.At
	Needs      func(store string, programs []string) // is called with what a run needs, when this worker meets it; nil: nothing is called
	Now        func() time.Time

	Getenv    func(string) string                                         // nil: os.Getenv
	OpenStore func(ctx context.Context, url string) (*store.Store, error) // nil: store.Open
	Reached   func(p Point, call string)                                  // nil in every program: a test stops the worker there
}

// Point is a place between two writes where a call can be cut off.
type Point string

// The points of a call, in their order.
const (
	Asked    Point = "asked"    // a delivery begins: nobody has looked for an answer yet
	LaidOut  Point = "laid out" // claimed, the scratch directory is made; no process yet
	Spawned  Point = "spawned"  // the supervisor may start the agent
	Exited   Point = "exited"   // the supervisor is gone; nothing of what the agent said is in the store
	Answered Point = "answered" // the result is in the store; the workflow does not know

	Told Point = "told" // of a notice: the receiver has it; the workflow does not know
)

// History gives what an execution has projected so far.
type History interface {
	Source(ctx context.Context, workflowID, runID string) (rundir.Source, error)
}

// Activities are the activities of one worker process.
type Activities struct {
	cfg     Config
	kinds   kinds
	flights agent.Flights
	over    chan struct{} // closed when this worker leaves its calls to the next one
	leave   sync.Once
	mu      sync.Mutex
	stores  map[string]*store.Store
	plans   map[string]*pipeline.Plan
	settled map[string]*settlement
	warned  map[string]bool // runs without an environment, as far as that is logged
}

// New makes the activities of a worker.
func New(cfg Config) *Activities {
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Learn == nil {
		cfg.Learn = func([]string) {}
	}
	if cfg.Needs == nil {
		cfg.Needs = func(string, []string) {}
	}
	if cfg.Open == nil {
		cfg.Open = rundir.At
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.OpenStore == nil {
		cfg.OpenStore = store.Open
	}
	if cfg.Reached == nil {
		cfg.Reached = func(Point, string) {}
	}
	cfg.Bounds = cfg.Bounds.On(config.ThisHost(cfg.Scratch))
	return &Activities{cfg: cfg, over: make(chan struct{}), kinds: kindsOf(cfg.Bounds), stores: map[string]*store.Store{}, plans: map[string]*pipeline.Plan{}, settled: map[string]*settlement{}, warned: map[string]bool{}}
}

// RegisterDirectory makes the work on directories known to a worker. Each kind of it is bounded here and not by the worker's options: a queue full of
// checkouts must not hold up the journals.
func (a *Activities) RegisterDirectory(r worker.ActivityRegistry) {
	register(r, work.Open, telling(a, bounded(a, a.kinds.projections, a.Open)))
	register(r, work.Project, telling(a, bounded(a, a.kinds.projections, a.Project)))
	register(r, work.Rebuild, telling(a, bounded(a, a.kinds.segments, a.Rebuild)))
	register(r, work.Seal, telling(a, bounded(a, a.kinds.segments, a.Seal)))
	register(r, work.Inspect, telling(a, a.inspect))
	register(r, work.Carry, telling(a, bounded(a, a.kinds.checkouts, unended(a, a.Carry))))
	register(r, work.Deliver, telling(a, bounded(a, a.kinds.checkouts, unended(a, a.Deliver))))
	register(r, work.Rehome, telling(a, a.Rehome))
	register(r, work.Notify, telling(a, bounded(a, a.kinds.notices, a.Notify)))
}

// RegisterLocal makes the local activities known to the worker that has the workflow.
func (a *Activities) RegisterLocal(r worker.ActivityRegistry) {
	register(r, work.ReadRound, telling(a, a.ReadRound))
	register(r, work.Compose, telling(a, a.Compose))
	register(r, work.FindCheckpoint, telling(a, a.FindCheckpoint))
}

// RegisterCalls makes passes and screenshots known to a worker.
func (a *Activities) RegisterCalls(r worker.ActivityRegistry) {
	register(r, work.RunPass, telling(a, a.RunPass))
	register(r, work.TakeScreenshots, telling(a, bounded(a, a.kinds.screenshots, a.TakeScreenshots)))
}

// telling marks the errors that the workflow decides on: a blob that the store has lost, or holds damaged, which trying again cannot help, and a
// full disk. What a file system refuses names it. The activity works with the environment of its run, and no secret leaves in a result or in the
// words of an error.
func telling[In, Out any](a *Activities, f func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		var out Out
		ctx, err := a.handed(ctx, in)
		if err == nil {
			out, err = f(ctx, in)
		}
		err = volume.Explain(err)
		switch {
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			err = temporal.NewNonRetryableApplicationError(err.Error(), work.ErrDiskFull, err)
		case errors.Is(err, store.ErrUnreachable):
			err = a.away(err)
		case errors.Is(err, store.ErrMissing), errors.Is(err, store.ErrDamaged):
			err = badInput("%v. What the run directory still has of it comes back with `starter resume`", err)
		case errors.Is(err, rundir.ErrDamaged):
			err = temporal.NewNonRetryableApplicationError(err.Error(), work.ErrDamaged, err)
		}
		a.hide(&out)
		return out, a.hideError(err)
	}
}

func register(r worker.ActivityRegistry, name string, f any) {
	r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
}

// HandOver leaves the running calls to the next worker of this host: their deliveries end with that word, and no call begins any more.
func (a *Activities) HandOver() { a.leave.Do(func() { close(a.over) }) }

// Running are the calls that this worker makes or has joined.
func (a *Activities) Running() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.settled))
}

// EndCalls ends every running call and returns at the latest when the next kill of what does not want to end is up to their supervisors.
func (a *Activities) EndCalls(cause string) {
	gone := make(chan struct{})
	go func() { defer close(gone); a.killAll(cause) }()
	select {
	case <-gone:
	case <-time.After(time.Second):
	}
}

// Stop ends every call that this worker has not handed over, and waits until it is gone.
func (a *Activities) Stop() {
	select {
	case <-a.over:
	default:
		a.killAll("the worker stops")
	}
}

func (a *Activities) killAll(cause string) {
	if err := a.flights.KillAll(cause); err != nil {
		slog.Warn("the end of agents cannot be asked for as it should be", "error", err)
	}
}

// store opens a store once.
func (a *Activities) store(ctx context.Context, url string) (*store.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.stores[url]; ok {
		return s, nil
	}
	s, err := a.cfg.OpenStore(context.WithoutCancel(ctx), url)
	if errors.Is(err, store.ErrNoKind) {
		return nil, badInput("%v", err)
	}
	if err != nil {
		return nil, err
	}
	a.stores[url] = s
	return s, nil
}

// plan reads a stored plan once; it never changes.
func (a *Activities) plan(ctx context.Context, s *store.Store, digest string) (*pipeline.Plan, error) {
	a.mu.Lock()
	p, ok := a.plans[digest]
	a.mu.Unlock()
	if ok {
		return p, nil
	}
	p = &pipeline.Plan{}
	if err := s.GetJSON(ctx, store.Digest(digest), p); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.plans[digest] = p
	return p, nil
}
