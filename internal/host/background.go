package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
)

// WorkerOptions configure how a worker is found or started.
type WorkerOptions struct {
	StateDir     string
	Exec         string
	Args         []string
	Env          []string      // nil: that of this process
	Dir          string        // working directory; default: the state directory
	Key          string        // identifies server, namespace, settings and build of a worker
	Again        bool          // start only a recorded worker that has ended without having been stopped
	StartTimeout time.Duration // default: a minute
}

// Worker is a recorded worker.
type Worker struct {
	Process process.Identity `json:"process"`
	Key     string           `json:"key"`
	Log     string           `json:"log,omitempty"` // empty: it was not started in the background
	Started time.Time        `json:"started"`
	// its PATH, for calls of runs without an environment; empty: not known
	Path string `json:"path,omitempty"`
}

// ErrOtherWorker reports a running worker with another key. [StopWorker] stops it.
type ErrOtherWorker struct {
	Running Worker
	Want    string
}

func (e *ErrOtherWorker) Error() string {
	return fmt.Sprintf("a worker runs for %q (pid %d), %q is needed; stop it first", e.Running.Key,
		e.Running.Process.PID,
		e.Want)
}

// AnnounceReady records that a worker polls, no matter who started it. Starters then use it if its key is the one
// they need.
func AnnounceReady(stateDir, key string, now time.Time) error {
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	dir := filepath.Join(stateDir, workerDir)
	if err := (disk.Disk{}).Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	if err := forgetEnded(dir); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	w := Worker{Process: self, Key: key, Started: now.UTC().Truncate(time.Millisecond), Path: os.Getenv("PATH")}
	if err := save(readyPath(stateDir, self), w); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	return nil
}

// Polls reports whether a worker has recorded that it polls.
func Polls(stateDir string, id process.Identity) bool {
	var ready Worker
	return load(readyPath(stateDir, id), &ready) == nil && id.PID != 0 && ready.Process == id
}

func readyPath(stateDir string, id process.Identity) string {
	return filepath.Join(stateDir, workerDir, fmt.Sprintf("%s%d.json", readyPrefix, id.PID))
}

// announced returns the records of polling workers in a folder, by file.
func announced(dir string) (map[string]Worker, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]Worker{}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), readyPrefix) || disk.IsTemp(e.Name()) {
			continue
		}
		var w Worker
		path := filepath.Join(dir, e.Name())
		if err := load(path, &w); err != nil {
			return nil, err
		}
		out[path] = w
	}
	return out, nil
}

// forgetEnded removes the records of workers that have ended.
func forgetEnded(dir string) error {
	all, err := announced(dir)
	for path, w := range all {
		if w.Process.Alive() {
			continue
		}
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// EnsureWorker returns the running worker, or starts one. The error is an [*ErrOtherWorker] if one runs with another
// key.
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
	if o.Again {
		started, err := startedWorker(o.StateDir)
		if err != nil || started.Process.PID == 0 || started.Process.Alive() {
			return started, err
		}
		return o.start(ctx)
	}
	w, err := o.find()
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
		return w, fmt.Errorf("the worker runs (pid %d) but does not poll: %w; see %s, or stop it and start again",
			w.Process.PID, err, w.Log)
	}
	return w, nil
}

// find returns the recorded worker, or if that has ended, a foreground worker with the same key.
func (o *WorkerOptions) find() (Worker, error) {
	w, err := startedWorker(o.StateDir)
	if err != nil || w.Process.Alive() {
		return w, err
	}
	others, err := announced(filepath.Join(o.StateDir, workerDir))
	for _, other := range others {
		if other.Key == o.Key && other.Process.Alive() {
			return other, err
		}
	}
	return Worker{}, err
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

// await returns when the worker has recorded that it polls.
func (o *WorkerOptions) await(ctx context.Context, w Worker, d *daemon) error {
	return d.await(ctx, o.StartTimeout, func(context.Context) error {
		if !w.Process.Alive() {
			return errEnded
		}
		if !Polls(o.StateDir, w.Process) {
			return errors.New("it has not reported that it polls")
		}
		return nil
	})
}

// StopWorker stops the worker as [StopServer] stops the server. The grace must include the setting drain.
func StopWorker(ctx context.Context, stateDir string, grace time.Duration) (stopped bool, err error) {
	lock, err := hold(ctx, filepath.Join(stateDir, workerDir), "stopping the worker", orSilent(nil))
	if err != nil {
		return false, fmt.Errorf("stop the worker: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	w, err := readWorker(stateDir)
	if err != nil {
		return false, err
	}
	if stopped = w.Process.Alive(); stopped {
		if err := end(ctx, w.Process, grace); err != nil {
			return false, fmt.Errorf("stop the worker: %w", err)
		}
	}
	return stopped, forgetWorker(stateDir)
}

// forgetWorker removes the process from the record: a keeper does not restart a worker that was stopped.
func forgetWorker(stateDir string) error {
	w, err := startedWorker(stateDir)
	if err != nil || w.Process.PID == 0 || w.Process.Alive() {
		return err
	}
	w.Process = process.Identity{}
	return save(filepath.Join(stateDir, workerDir, workerFile), w)
}

func startedWorker(stateDir string) (Worker, error) {
	var w Worker
	return w, load(filepath.Join(stateDir, workerDir, workerFile), &w)
}

// readWorker returns the recorded worker, or if that has ended, the foreground worker that reported last.
func readWorker(stateDir string) (Worker, error) {
	w, err := startedWorker(stateDir)
	if err != nil {
		return w, err
	}
	others, err := announced(filepath.Join(stateDir, workerDir))
	if w.Process.Alive() {
		w.Path = others[readyPath(stateDir, w.Process)].Path
		return w, err
	}
	w = Worker{}
	for _, other := range others {
		if other.Process.Alive() && other.Started.After(w.Started) {
			w = other
		}
	}
	return w, err
}
