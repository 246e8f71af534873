package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/process"
)

// WorkerOptions say how a worker is found or started.
type WorkerOptions struct {
	StateDir     string
	Exec         string
	Args         []string
	Env          []string      // nil: this process's
	Dir          string        // working directory; default: the state directory
	Key          string        // what a running worker must have been started for, such as server, namespace and build
	StartTimeout time.Duration // default: a minute
}

// Worker is a recorded worker.
type Worker struct {
	Process process.Identity `json:"process"`
	Key     string           `json:"key"`
	Log     string           `json:"log,omitempty"` // empty: it was not started in the background
	Started time.Time        `json:"started"`
	Path    string           `json:"path,omitempty"` // its PATH: that of calls without an environment of their run; empty: not known
}

// ErrOtherWorker says that a worker runs for something else. Stop it with [StopWorker] if nobody needs it.
type ErrOtherWorker struct {
	Running Worker
	Want    string
}

func (e *ErrOtherWorker) Error() string {
	return fmt.Sprintf("a worker runs for %q (pid %d), %q is needed; stop it first", e.Running.Key, e.Running.Process.PID, e.Want)
}

// AnnounceReady is called by a worker, started here or by hand, when it polls: from then on starters take it for theirs if
// its key is the one they want.
func AnnounceReady(stateDir, key string, now time.Time) error {
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	dir := filepath.Join(stateDir, workerDir)
	if err := (durable.Disk{}).Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	w := Worker{Process: self, Key: key, Started: now.UTC().Truncate(time.Millisecond), Path: os.Getenv("PATH")}
	if err := save(filepath.Join(dir, readyFile), w); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	return nil
}

// EnsureWorker gives a worker that polls: the running one, or a new one. The error is [ErrOtherWorker] when one runs for
// another key.
func EnsureWorker(ctx context.Context, o WorkerOptions, progress func(string)) (Worker, error) {
	if err := o.settle(); err != nil {
		return Worker{}, err
	}
	lock, err := hold(ctx, filepath.Join(o.StateDir, workerDir), "starting the worker", orSilent(progress))
	if err != nil {
		return Worker{}, fmt.Errorf("find the worker: %w", err)
	}
	w, err := o.ensure(ctx)
	return w, errors.Join(err, lock.Unlock())
}

func (o *WorkerOptions) settle() error {
	if o.StateDir == "" || o.Exec == "" {
		return errors.New("find the worker: no state directory or no program is set")
	}
	var err error
	if o.StateDir, err = filepath.Abs(o.StateDir); err != nil {
		return fmt.Errorf("find the worker: %w", err)
	}
	if o.Dir == "" {
		o.Dir = o.StateDir
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	return nil
}

func (o *WorkerOptions) ensure(ctx context.Context) (Worker, error) {
	w, err := readWorker(o.StateDir)
	if err != nil {
		return w, err
	}
	if !w.Process.Alive() {
		return o.start(ctx)
	}
	if w.Key != o.Key {
		return w, &ErrOtherWorker{Running: w, Want: o.Key}
	}
	err = o.await(ctx, w, nil)
	if errors.Is(err, errEnded) {
		return o.start(ctx)
	}
	if err != nil {
		return w, fmt.Errorf("the worker runs (pid %d) but does not poll: %w; see %s, or stop it and start again", w.Process.PID, err, w.Log)
	}
	return w, nil
}

func (o *WorkerOptions) start(ctx context.Context) (Worker, error) {
	dir := filepath.Join(o.StateDir, workerDir)
	w := Worker{Key: o.Key, Log: filepath.Join(dir, workerLog), Started: time.Now().UTC().Truncate(time.Millisecond)}
	d, err := launch(launchSpec{exec: o.Exec, args: o.Args, env: o.Env, dir: o.Dir, log: w.Log})
	if err != nil {
		return w, fmt.Errorf("start the worker: %w", err)
	}
	w.Process = d.id
	if err := save(filepath.Join(dir, workerFile), w); err != nil {
		return w, errors.Join(fmt.Errorf("record the worker: %w", err), d.id.KillGroup())
	}
	if err := o.await(ctx, w, d); err != nil {
		return w, fmt.Errorf("start the worker %s: %w", o.Exec, d.explain(ctx, err))
	}
	return w, nil
}

// await returns when this very worker has announced itself.
func (o *WorkerOptions) await(ctx context.Context, w Worker, d *daemon) error {
	return d.await(ctx, o.StartTimeout, func(context.Context) error {
		var ready Worker
		if err := load(filepath.Join(o.StateDir, workerDir, readyFile), &ready); err != nil {
			return err
		}
		if !w.Process.Alive() {
			return errEnded
		}
		if ready.Process != w.Process {
			return errors.New("it has not said that it polls")
		}
		return nil
	})
}

// StopWorker ends the worker as [StopServer] ends the server. Give it the time that its passes need to drain.
func StopWorker(ctx context.Context, stateDir string, grace time.Duration) (stopped bool, err error) {
	lock, err := hold(ctx, filepath.Join(stateDir, workerDir), "stopping the worker", orSilent(nil))
	if err != nil {
		return false, fmt.Errorf("stop the worker: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	w, err := readWorker(stateDir)
	if err != nil || !w.Process.Alive() {
		return false, err
	}
	if err := end(ctx, w.Process, grace); err != nil {
		return false, fmt.Errorf("stop the worker: %w", err)
	}
	return true, nil
}

// readWorker gives the worker that was started here, or if that has ended, the one that announced itself.
func readWorker(stateDir string) (Worker, error) {
	var started, announced Worker
	dir := filepath.Join(stateDir, workerDir)
	if err := load(filepath.Join(dir, workerFile), &started); err != nil {
		return started, err
	}
	err := load(filepath.Join(dir, readyFile), &announced)
	if !started.Process.Alive() {
		return announced, err
	}
	if announced.Process == started.Process {
		started.Path = announced.Path
	}
	return started, nil
}
