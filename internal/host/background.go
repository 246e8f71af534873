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
	Env          []string          // nil: that of this process
	Key          string            // identifies server, namespace, settings and build of a worker
	Keep         func(Worker) bool // whether a worker with another key stays; nil: it is replaced
	Again        bool              // start only a recorded worker that has ended without having been stopped
	StartTimeout time.Duration     // default: a minute
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

// AnnounceReady records that a worker polls, no matter who started it. Starters then use it if its key is the one
// they need.
func AnnounceReady(stateDir, key string, now time.Time) error {
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	path := readyPath(stateDir, self)
	if err := (disk.Disk{}).Mkdir(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("announce the worker: %w", err)
	}
	all, err := announced(stateDir)
	for file, w := range all {
		if w.Process.Alive() {
			continue
		}
		if e := os.Remove(file); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	w := Worker{Process: self, Key: key, Started: now.UTC().Truncate(time.Millisecond), Path: os.Getenv("PATH")}
	if err = errors.Join(err, save(path, w)); err != nil {
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

// announced returns the records of polling workers, by file.
func announced(stateDir string) (map[string]Worker, error) {
	dir := filepath.Join(stateDir, workerDir)
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

// EnsureWorker returns the running worker, or starts one.
func EnsureWorker(ctx context.Context, o WorkerOptions, progress func(string)) (w Worker, err error) {
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if err := (disk.Disk{}).Mkdir(o.StateDir, 0o700); err != nil {
		return w, err
	}
	err = change(ctx, o.StateDir, "starting the worker", progress, func(r *records) error {
		w, err = o.ensure(ctx, r)
		return err
	})
	return w, err
}

func (o *WorkerOptions) ensure(ctx context.Context, r *records) (Worker, error) {
	var running Worker
	if r.Worker != nil {
		running = *r.Worker
	}
	alive := running.Process.Alive()
	switch {
	case o.Again && (running.Process.PID == 0 || alive):
		return running, nil
	case o.Again:
		return o.start(ctx, r)
	case alive && running.Key == o.Key:
		err := o.await(ctx, running, nil)
		if errors.Is(err, errEnded) {
			return o.start(ctx, r)
		}
		if err != nil {
			err = fmt.Errorf("the worker runs (pid %d) but does not poll: %w; see %s, or stop it and start again",
				running.Process.PID, err, running.Log)
		}
		return running, err
	case alive && o.Keep != nil && o.Keep(running):
		return running, nil
	case alive:
		const grace = 20 * time.Second
		if err := r.stopWorker(ctx, grace); err != nil {
			return running, err
		}
		return o.start(ctx, r)
	}
	others, err := announced(o.StateDir)
	if err != nil {
		return Worker{}, err
	}
	for _, w := range others { // in the foreground
		if w.Key == o.Key && w.Process.Alive() {
			return w, nil
		}
	}
	return o.start(ctx, r)
}

func (o *WorkerOptions) start(ctx context.Context, r *records) (Worker, error) {
	w := Worker{Key: o.Key, Log: filepath.Join(o.StateDir, workerDir, workerLog),
		Started: time.Now().UTC().Truncate(time.Millisecond)}
	d, err := launch(program{exec: o.Exec, args: o.Args, env: o.Env, dir: o.StateDir, log: w.Log})
	if err != nil {
		return w, fmt.Errorf("start the worker: %w", err)
	}
	w.Process, r.Worker = d.id, &w
	if err := r.save(); err != nil {
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
