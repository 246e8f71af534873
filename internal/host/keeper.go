package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/process"
)

// Keeper is a recorded keeper: the process that restarts server and worker when they end without having been stopped.
type Keeper struct {
	Process process.Identity `json:"process"`
	Key     string           `json:"key"` // build and settings of its program
	Started time.Time        `json:"started"`
	Server  Restarts         `json:"server"`
	Worker  Restarts         `json:"worker"`
}

// Restarts are the restarts of one process by a keeper.
type Restarts struct {
	Total int       `json:"total"`         // since the keeper began
	InRow int       `json:"in_row"`        // since the process last ran for [KeepOptions.Stable]
	Last  time.Time `json:"last,omitzero"` // time of the last attempt
	Error string    `json:"error"`         // why the last one failed; empty: the process started

	tried time.Time // end of the last attempt
}

// String describes the restarts in a clause; empty: there were none.
func (r Restarts) String() string {
	at := r.Last.Local().Format(time.DateTime)
	switch {
	case r.InRow > 0 && r.Error != "":
		return fmt.Sprintf("restart %d failed at %s: %s", r.InRow, at, r.Error)
	case r.InRow > 1:
		return fmt.Sprintf("started and ended again %d times in a row, last at %s", r.InRow, at)
	case r.Total > 0:
		return fmt.Sprintf("restarted %d time%s, last at %s", r.Total, map[bool]string{false: "s"}[r.Total == 1], at)
	}
	return ""
}

// Failing reports whether the process does not stay up.
func (r Restarts) Failing() bool { return r.InRow > 2 }

// KeepOptions configure what a keeper restarts.
type KeepOptions struct {
	StateDir string
	Server   func(context.Context) error // starts the server with [ServerOptions.Again]
	Worker   func(context.Context) error // starts the worker with [WorkerOptions.Again]
	Report   func(line string)

	Every   time.Duration // how often it inspects the processes; default: 500 ms
	Backoff time.Duration // before the second restart in a row; doubles to a minute; default: a second
	Stable  time.Duration // a process that runs this long has started successfully; default: a minute
}

const longestBackoff = time.Minute

// keeper is a running keeper. It never stops trying: what a process lacks, such as space on a disk, may come back.
type keeper struct {
	KeepOptions
	record Keeper
	failed string // the last error of an inspection
}

// Keep restarts the server and the worker of a state directory, in the process that [EnsureKeeper] starts. It returns
// when ctx ends, when the server was stopped, when another keeper is recorded, or when the state directory is gone.
func Keep(ctx context.Context, o KeepOptions) error {
	if o.Every == 0 {
		o.Every, o.Backoff, o.Stable = 500*time.Millisecond, time.Second, time.Minute
	}
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("keep the background processes: %w", err)
	}
	k := &keeper{KeepOptions: o}
	if err := change(ctx, o.StateDir, "starting the keeper", nil, func(r *records) error { // its starter has recorded it
		if r.Keeper != nil && r.Keeper.Process == self {
			k.record = *r.Keeper
		}
		return nil
	}); err != nil || k.record.Process.PID == 0 {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go KeepCerts(ctx, o.StateDir, func(err error) { o.Report(err.Error()) })
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for k.inspect(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
	return nil
}

// inspect restarts processes that have ended. It returns false if there is nothing to keep: the server was stopped (an
// idle worker stops it too), the state directory was removed, or another keeper is recorded.
func (k *keeper) inspect(ctx context.Context) (needed bool) {
	st, err := recorded(k.StateDir)
	if err == nil {
		if st.started().Process.PID == 0 || st.Keeper == nil || st.Keeper.Process != k.record.Process {
			return false
		}
		err = k.tend(ctx, "server", &k.record.Server, st.Server.Process, k.Server)
		if st.Worker != nil {
			err = errors.Join(err, k.tend(ctx, "worker", &k.record.Worker, st.Worker.Process, k.Worker))
		}
	}
	if err != nil && ctx.Err() == nil && err.Error() != k.failed {
		k.failed = err.Error()
		k.Report(k.failed)
	}
	return true
}

// tend restarts a process that has ended, once the backoff has passed.
func (k *keeper) tend(ctx context.Context, name string, r *Restarts, id process.Identity,
	again func(context.Context) error) error {
	now := time.Now()
	if id.Alive() {
		if r.InRow == 0 || now.Sub(r.tried) < k.Stable {
			return nil
		}
		r.InRow, r.Error = 0, ""
		return k.save(ctx)
	}
	if r.InRow > 0 && now.Before(r.tried.Add(min(k.Backoff<<min(r.InRow-1, 16), longestBackoff))) {
		return nil
	}
	r.Total, r.InRow, r.Last, r.Error = r.Total+1, r.InRow+1, now.UTC().Truncate(time.Millisecond), ""
	k.Report(fmt.Sprintf("restarting the %s (pid %d has ended), %d in a row", name, id.PID, r.InRow))
	if err := again(ctx); err != nil && ctx.Err() == nil {
		r.Error = err.Error()
		k.Report(r.Error)
	}
	r.tried = time.Now()
	return k.save(ctx)
}

// save records the restarts, unless another keeper is recorded.
func (k *keeper) save(ctx context.Context) error {
	return change(ctx, k.StateDir, "recording a restart", nil, func(r *records) error {
		if r.Keeper == nil || r.Keeper.Process != k.record.Process {
			return nil
		}
		r.Keeper = &k.record
		return r.save()
	})
}

// KeeperOptions configure how a keeper is found or started. Its program calls [Keep].
type KeeperOptions struct {
	StateDir string
	Exec     string
	Args     []string
	Env      []string // nil: that of this process
	Key      string   // a keeper with another key is replaced; empty: any will do
	Again    bool     // start only a keeper that ended without having been stopped
}

// EnsureKeeper starts the keeper, unless one runs or no server does.
func EnsureKeeper(ctx context.Context, o KeeperOptions) error {
	st, err := recorded(o.StateDir)
	if err != nil || !o.starts(st) {
		return err
	}
	return change(ctx, o.StateDir, "starting the keeper", nil, func(r *records) error {
		if !o.starts(r.Status) {
			return nil
		}
		if err := r.stopKeeper(ctx); err != nil {
			return err
		}
		d, err := launch(program{exec: o.Exec, args: o.Args, env: o.Env, dir: o.StateDir,
			log: filepath.Join(o.StateDir, keeperDir, keeperLog)})
		if err != nil {
			return fmt.Errorf("start the keeper: %w", err)
		}
		r.Keeper = &Keeper{Process: d.id, Key: o.Key, Started: time.Now().UTC().Truncate(time.Millisecond)}
		return r.save()
	})
}

// starts reports whether a keeper is to be started.
func (o KeeperOptions) starts(st Status) bool {
	k := st.Keeper
	switch {
	case st.started().Process.PID == 0, o.Again && k == nil:
		return false
	case k == nil || !k.Process.Alive():
		return true
	}
	return !o.Again && o.Key != "" && k.Key != o.Key
}
