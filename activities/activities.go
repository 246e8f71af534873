// Package activities implements the activities of the workflow: directories, prompts, passes, screenshots. It
// decides nothing: outcomes are results, and the workflow acts on them.
package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/forge"
	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Config contains the dependencies of the activities.
type Config struct {
	Host         string                                // id of this host
	Scratch      string                                // folder for scratch directories
	Scripted     []string                              // argv of the built-in agent
	Supervisor   []string                              // argv of the call supervisor; nil: the program that this one carries, or this one
	Browser      string                                // path or name of the browser; empty: it is searched for
	Redact       func(string) string                   // redacts every persisted text; nil keeps it
	LearnSecrets func(environ []string)                // teaches Redact the secrets of an environment; may be nil
	StateDir     string                                // folder with the environments of runs; empty: none
	Client       client.Client                         // reads histories to rebuild a lost directory
	Converter    converter.DataConverter               // of the client; nil: payloads are not encrypted
	Sandbox      config.Sandbox                        // what restricts agents and commands
	Own          func() ([]string, error)              // addresses of Passbook, which no call may reach; may be nil
	Programs     []string                              // of agents, that the settings allow; empty: all
	PerDay       config.PerDay                         // what all calls of the host may use on one day
	AtOnce       config.AtOnce                         // how many calls of the host run at the same time
	Prices       config.Lines                          // of models, which precede the list prices
	Concurrency  config.Concurrency                    // slots of each kind of work; 0: default for the host
	Needs        func(store string, programs []string) // called with the store and programs of a run; may be nil
	Now          func() time.Time
	Stores       func(url string) bool // which stores the settings allow; nil in tests only: all
	KnownStores  func() []string       // those of the settings and of the runs of this host; nil: none
	Roots        []string              // folders of the run directories that they allow; empty: all
	Links        Links                 // makes links to the console for notices; nil: none

	Projected func(Projection) // called after lines were added to a run directory; nil: it is not

	// keeps the machine awake until release, and as long as a call inherits the file; nil: it may sleep
	KeepAwake func() (file *os.File, release func())

	Getenv  func(string) string        // nil: os.Getenv
	OnPoint func(p Point, call string) // called at each Point; set by tests that stop the worker there
	OnStep  func(Step) error           // called before each Step; set by tests that fail it
	OnRead  func(path string) error    // called before the store reads a file; set by tests that fail it
	Forge   string                     // address of the forge that gets the operator's token; empty: none
	Machine string                     // on which processes run; empty: this one; set by tests that simulate it
}

// Step is one change of a run directory or of a store in a folder.
type Step struct {
	Op   string // "write", "sync", "rename"
	Path string
	Data []byte // of a write
}

// Point is a place between two writes where a call can be interrupted.
type Point string

// The points of a call, in order.
const (
	PointRequested Point = "asked"    // a delivery begins; no answer was looked up yet
	PointPrepared  Point = "laid out" // claimed and the scratch directory is prepared; no process yet
	PointSpawned   Point = "spawned"  // the supervisor may start the agent
	PointExited    Point = "exited"   // the supervisor has exited; its output is not stored yet
	PointStored    Point = "answered" // the answer is stored; the workflow does not know

	PointNotified Point = "told" // the receiver has the notice; the workflow does not know
)

// Links makes links to the console. Each is empty if the host has no console.
type Links interface {
	Page(run string) string
	Answer(run, question, receiver string, ends time.Time) (string, error)
}

// Activities are the activities of one worker process.
type Activities struct {
	prices       price.List
	gate         *gate.Gate // of this host; nil: without a state directory
	cfg          Config
	worker       process.Identity // this process
	machine      process.Machine  // nil: this machine
	browser      browser.Options
	history      history.Reader
	open         func(root string) rundir.Dir
	openStore    func(ctx context.Context, url string) (*store.Store, error)
	slots        slotPools
	inFlight     agent.InFlightCalls
	handover     chan struct{} // closed when this worker leaves its calls to the next one
	handoverOnce sync.Once
	mu           sync.Mutex
	stores       map[string]*store.Store
	plans        map[string]*pipeline.Plan
	running      map[string]*runningCall
	early        map[string]*earlySupervisor // by the directory of their delivery
	folders      *workspace.Folders
	warned       map[string]bool // runs without an environment that a warning was logged for
	offers       func() sandbox.Host
	answers      forge.Cache // of forges
}

// New returns the activities of a worker, which is this process.
func New(cfg Config) (*Activities, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.LearnSecrets == nil {
		cfg.LearnSecrets = func([]string) {}
	}
	if cfg.Needs == nil {
		cfg.Needs = func(string, []string) {}
	}
	if cfg.Stores == nil {
		cfg.Stores = func(string) bool { return true }
	}
	if cfg.KnownStores == nil {
		cfg.KnownStores = func() []string { return nil }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.KeepAwake == nil {
		cfg.KeepAwake = func() (*os.File, func()) { return nil, func() {} }
	}
	if cfg.Projected == nil {
		cfg.Projected = func(Projection) {}
	}
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.OnPoint == nil {
		cfg.OnPoint = func(Point, string) {}
	}
	if cfg.Concurrency == (config.Concurrency{}) {
		cfg.Concurrency = config.ThisHost(cfg.Scratch).Concurrency()
	}
	disk, folds := diskOf(cfg), new(rundir.Folds)
	a := &Activities{
		cfg: cfg, machine: process.Simulated(cfg.Machine), worker: self, prices: price.With(cfg.Prices),
		browser: browser.Options{Exec: cfg.Browser},
		history: history.Reader{Client: cfg.Client, Converter: cfg.Converter},
		open: func(root string) rundir.Dir {
			d := rundir.At(root)
			d.Disk, d.Folds = disk, folds
			return d
		},
		openStore: func(ctx context.Context, url string) (*store.Store, error) { return store.OpenOn(ctx, disk, url) },
		handover:  make(chan struct{}), slots: newSlotPools(cfg.Concurrency),
		stores: map[string]*store.Store{}, offers: new(sandbox.Examiner).Host,
		plans: map[string]*pipeline.Plan{}, running: map[string]*runningCall{}, warned: map[string]bool{},
		early: map[string]*earlySupervisor{}, folders: workspace.In(cmp.Or(cfg.StateDir, filepath.Dir(cfg.Scratch))),
	}
	if a.machine != nil {
		a.worker, a.offers = a.machine.Worker(), func() sandbox.Host { return sandbox.Host{} }
	}
	a.gate = a.newGate(disk)
	return a, nil
}

// stateDir is where this host keeps workspaces and the mirrors of their repositories.
func (a *Activities) stateDir() string { return cmp.Or(a.cfg.StateDir, filepath.Dir(a.cfg.Scratch)) }

// diskOf returns the disk of run directories and stores.
func diskOf(cfg Config) disk.Disk {
	d := disk.Disk{Reads: cfg.OnRead}
	if cfg.OnStep != nil {
		d.Hook = func(s disk.Step) error {
			return cfg.OnStep(Step{Op: string(s.Op), Path: s.Path, Data: s.Data})
		}
	}
	return d
}

// RegisterDirectory registers the activities on directories. Each kind has its own slots: a queue full of
// checkouts must not delay journals.
func (a *Activities) RegisterDirectory(r worker.ActivityRegistry) {
	register(r, contract.Open, redactingInterceptor(a, withSlot(a, a.slots.projections, a.Open)))
	register(r, contract.Project, redactingInterceptor(a, withSlot(a, a.slots.projections, a.Project)))
	register(r, contract.Rebuild, redactingInterceptor(a, withSlot(a, a.slots.segments, a.Rebuild)))
	register(r, contract.ArchiveSegment, redactingInterceptor(a, withSlot(a, a.slots.segments, requireCurrent(a, a.ArchiveSegment))))
	register(r, contract.Inspect, redactingInterceptor(a, a.inspect))
	register(r, contract.SyncWorkspace,
		redactingInterceptor(a, withSlot(a, a.slots.checkouts, requireCurrent(a, a.SyncWorkspace))))
	register(r, contract.MergeLane,
		redactingInterceptor(a, withSlot(a, a.slots.checkouts, requireCurrent(a, a.MergeLane))))
	register(r, contract.Deliver, redactingInterceptor(a,
		withSlot(a, a.slots.checkouts, requireCurrent(a, a.Deliver))))
	register(r, contract.ReadChild, redactingInterceptor(a, withSlot(a, a.slots.projections, a.ReadChild)))
	register(r, contract.JoinTrees,
		redactingInterceptor(a, withSlot(a, a.slots.checkouts, requireCurrent(a, a.JoinTrees))))
	register(r, contract.DeliverProject,
		redactingInterceptor(a, withSlot(a, a.slots.checkouts, requireCurrent(a, a.DeliverProject))))
	register(r, contract.Ask, redactingInterceptor(a, a.Ask))
	register(r, contract.NextEpoch, redactingInterceptor(a, withSlot(a, a.slots.segments, a.NextEpoch)))
	register(r, contract.Notify, redactingInterceptor(a, withSlot(a, a.slots.notices, a.Notify)))
	register(r, contract.LookAtForge, redactingInterceptor(a, withSlot(a, a.slots.notices, requireCurrent(a, a.LookAtForge))))
	register(r, contract.MergeBase, redactingInterceptor(a, withSlot(a, a.slots.checkouts, requireCurrent(a, a.MergeBase))))
	register(r, contract.LeaveForge, redactingInterceptor(a, withSlot(a, a.slots.checkouts, requireCurrent(a, a.LeaveForge))))
	register(r, contract.ExamineAgents, redactingInterceptor(a, a.ExamineAgents))
}

// RegisterLocal registers the local activities.
func (a *Activities) RegisterLocal(r worker.ActivityRegistry) {
	register(r, contract.ReadRound, redactingInterceptor(a, a.ReadRound))
	register(r, contract.Evaluate, redactingInterceptor(a, a.Evaluate))
	register(r, contract.ExpandLanes, redactingInterceptor(a, a.ExpandLanes))
	register(r, contract.Compose, redactingInterceptor(a, a.Compose))
	register(r, contract.FindCheckpoint, redactingInterceptor(a, a.FindCheckpoint))
	register(r, contract.Amend, redactingInterceptor(a, a.Amend))
}

// RegisterCalls registers passes and screenshots.
func (a *Activities) RegisterCalls(r worker.ActivityRegistry) {
	register(r, contract.RunPass, redactingInterceptor(a, a.RunPass))
	register(r, contract.Turn, redactingInterceptor(a, a.Turn))
	register(r, contract.TakeScreenshots, redactingInterceptor(a, withSlot(a, a.slots.screenshots, a.TakeScreenshots)))
}

// withinRoots returns an error if an input has a run directory outside of the folders in the settings.
func (a *Activities) withinRoots(in any) error {
	used, ok := in.(interface{ Dirs() []string })
	if !ok || len(a.cfg.Roots) == 0 {
		return nil
	}
	for _, dir := range used.Dirs() {
		if !slices.ContainsFunc(a.cfg.Roots, func(root string) bool {
			rel, err := filepath.Rel(root, dir)
			return err == nil && filepath.IsLocal(rel)
		}) {
			return badInput("open run directory %s: it is outside of policy.roots (%s)", dir, strings.Join(a.cfg.Roots, ", "))
		}
	}
	return nil
}

// redactingInterceptor checks the directories of an input, runs its activity with the environment of its run, marks the
// errors that the workflow handles (failed setup, full disk, unreachable store, lost or damaged blob), and redacts
// secrets in its result and error.
func redactingInterceptor[In, Out any](a *Activities,
	f func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		var out Out
		if err := a.withinRoots(in); err != nil {
			return out, a.redactError(err)
		}
		ctx, err := a.withRunEnvironment(ctx, in)
		if err == nil {
			out, err = f(ctx, in)
		}
		err = volume.Explain(err)
		var setup *setupError
		switch {
		case errors.As(err, &setup):
			err = temporal.NewNonRetryableApplicationError(setup.Error(), contract.ErrSetup, err)
		case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
			err = temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrDiskFull, err)
		case errors.Is(err, store.ErrUnreachable), errors.Is(err, errUnlistedStore):
			err = a.storeUnreachable(err)
		case errors.Is(err, store.ErrMissing), errors.Is(err, store.ErrDamaged):
			err = badInput("%v; run \"starter resume %s\" to restore what the run directory still has", err,
				shell.Quote(runIDOf(ctx, in)))
		case errors.Is(err, disk.ErrDamaged):
			err = temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrDamaged, err)
		}
		a.redactResult(&out)
		return out, a.redactError(err)
	}
}

func register(r worker.ActivityRegistry, name string, f any) {
	r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
}

// HandOver leaves the running calls to the next worker of this host. No new call begins.
func (a *Activities) HandOver() { a.handoverOnce.Do(func() { close(a.handover) }) }

// Running returns the calls that this worker made or joined.
func (a *Activities) Running() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.running))
}

// CancelCalls asks every running call to end. It returns after a second at the latest: supervisors kill the rest.
func (a *Activities) CancelCalls(cause string) {
	gone := make(chan struct{})
	go func() { defer close(gone); a.killAll(cause) }()
	select {
	case <-gone:
	case <-time.After(time.Second):
	}
}

// Stop ends every call that this worker has not handed over, and waits for it.
func (a *Activities) Stop() {
	select {
	case <-a.handover:
	default:
		a.killAll("the worker stops")
	}
}

func (a *Activities) killAll(cause string) {
	if err := a.inFlight.KillAll(cause); err != nil {
		slog.Warn("ask supervisors to stop their agents", "error", err)
	}
}

var errUnlistedStore = errors.New("it is neither the store of this worker's settings nor in policy.stores, and this " +
	"host has recorded no run that uses it")

// store opens a store once.
func (a *Activities) store(ctx context.Context, url string) (*store.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, ok := a.stores[url]; ok {
		return s, nil
	}
	if !a.cfg.Stores(url) {
		return nil, fmt.Errorf("open the store %s: %w", config.Masked(url), errUnlistedStore)
	}
	s, err := a.openStore(context.WithoutCancel(ctx), url)
	if errors.Is(err, store.ErrScheme) {
		return nil, badInput("%v", err)
	}
	if err != nil {
		return nil, err
	}
	a.stores[url] = s
	return s, nil
}

// plan reads a stored plan once; plans never change.
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

// ReapDead ends processes that lost supervisors left on this host.
func (a *Activities) ReapDead(ctx context.Context) error { return calls.ReapDead(ctx, a.cfg.Scratch) }
