package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
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
	Total  int       `json:"total"`         // since the keeper began
	InRow  int       `json:"in_row"`        // since the process last ran for [KeepOptions.Stable]
	Last   time.Time `json:"last,omitzero"` // time of the last attempt
	Error  string    `json:"error"`         // why the last one failed; empty: the process started
	GaveUp bool      `json:"gave_up"`       // the limit is reached: an operator must start it

	tried time.Time        // end of the last attempt
	dead  process.Identity // process that was given up
}

// KeepOptions configure what a keeper restarts and when it stops trying.
type KeepOptions struct {
	StateDir string
	Key      string
	Server   func(context.Context) error // starts the server with [ServerOptions.Again]
	Worker   func(context.Context) error // starts the worker with [WorkerOptions.Again]
	Report   func(line string)           // nil: nothing is printed

	Every   time.Duration // how often it inspects the processes; default: 500 ms
	Backoff time.Duration // before the second restart in a row; doubles to a minute; default: a second
	Stable  time.Duration // a process that runs this long has started successfully; default: a minute
	Limit   int           // of restarts in a row; default: 10
}

const longestBackoff = time.Minute

// keeper is a running keeper.
type keeper struct {
	KeepOptions
	file   string
	record Keeper
	failed string // the last error of an inspection
}

// Keep restarts the server and the worker of a state directory. It returns when ctx ends, when the server was
// stopped, or when another keeper has taken over, and at once if another keeper runs.
func Keep(ctx context.Context, o KeepOptions) (err error) {
	o.settle()
	if err := OwnState(o.StateDir); err != nil {
		return err
	}
	if s, err := readServer(o.StateDir); err != nil || s.Process.PID == 0 {
		return err
	}
	dir := filepath.Join(o.StateDir, keeperDir)
	if err := (disk.Disk{}).Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("keep the background processes: %w", err)
	}
	lock, err := lockKeeper(ctx, o.StateDir, filepath.Join(dir, lockFile))
	if err != nil {
		return fmt.Errorf("keep the background processes: %w", err)
	}
	if lock == nil {
		return nil
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("keep the background processes: %w", err)
	}
	k := &keeper{KeepOptions: o, file: filepath.Join(dir, keeperFile)}
	k.record = Keeper{Process: self, Key: o.Key,
		Started: time.Now().UTC().Truncate(time.Millisecond)}
	if err := k.save(); err != nil {
		return err
	}
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	go KeepCerts(renewing, o.StateDir, func(err error) { k.Report(err.Error()) })
	k.loop(ctx)
	return forgetKeeper(o.StateDir, self)
}

// lockKeeper takes the lock of the keeper; nil: another keeper has it. A keeper that was killed may hold it for a moment
// after its end is visible.
func lockKeeper(ctx context.Context, stateDir, file string) (lock *disk.Lock, err error) {
	const most, every = 10 * time.Second, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		lock, err := (disk.Disk{}).TryLock(file, disk.Self("keeping the background processes", time.Now()))
		if held := (*disk.ErrHeld)(nil); !errors.As(err, &held) {
			return lock, err
		}
		if k, err := readKeeper(stateDir); err != nil || k.Process.Alive() {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(every):
		}
	}
}

func (o *KeepOptions) settle() {
	if o.Report == nil {
		o.Report = orSilent(nil)
	}
	if o.Every == 0 {
		o.Every = 500 * time.Millisecond
	}
	if o.Backoff == 0 {
		o.Backoff = time.Second
	}
	if o.Stable == 0 {
		o.Stable = time.Minute
	}
	if o.Limit == 0 {
		o.Limit = 10
	}
}

// OwnState refuses a state directory of another user, who could not use the files that this process writes.
func OwnState(stateDir string) error {
	info, err := os.Stat(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep the background processes: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); ok && int(st.Uid) != me {
		return fmt.Errorf("keep the background processes: the state directory %s belongs to user %d, and this "+
			"process runs as user %d; run it as the owner", stateDir, st.Uid, me)
	}
	return nil
}

func (k *keeper) loop(ctx context.Context) {
	tick := time.NewTicker(k.Every)
	defer tick.Stop()
	for {
		needed, err := k.inspect(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != k.failed {
			k.failed = err.Error()
			k.Report(k.failed)
		}
		if !needed {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// inspect restarts processes that have ended. needed is false if there is nothing to keep: the server was stopped (an
// idle worker stops it too), the state directory was removed, or another keeper is recorded.
func (k *keeper) inspect(ctx context.Context) (needed bool, err error) {
	now, err := readKeeper(k.StateDir)
	if err != nil {
		return true, err
	}
	s, err := readServer(k.StateDir)
	if err != nil {
		return true, err
	}
	if now.Process != k.record.Process || s.Process.PID == 0 {
		return false, nil
	}
	serverErr := k.tend(ctx, "server", &k.record.Server, s.Process, k.Server)
	w, err := startedWorker(k.StateDir)
	if err == nil && w.Process.PID != 0 {
		err = k.tend(ctx, "worker", &k.record.Worker, w.Process, k.Worker)
	}
	return true, errors.Join(serverErr, err)
}

// tend restarts a process that has ended, once the backoff has passed and unless the limit is reached.
func (k *keeper) tend(ctx context.Context, name string, r *Restarts, id process.Identity,
	again func(context.Context) error) error {
	now := time.Now()
	started := r.GaveUp && id != r.dead // by an operator, since the keeper gave up
	if alive := id.Alive(); started || alive && r.InRow > 0 && now.Sub(r.tried) >= k.Stable {
		*r = Restarts{Total: r.Total, Last: r.Last}
		return k.save()
	} else if alive || r.GaveUp || now.Before(r.tried.Add(r.backoff(k.Backoff))) {
		return nil
	}
	if r.InRow >= k.Limit {
		r.GaveUp, r.dead = true, id
		k.Report(fmt.Sprintf("gave up on the %s after %d restarts in a row: %s", name, r.InRow, r.why()))
		return k.save()
	}
	r.Total, r.InRow, r.Last, r.Error = r.Total+1, r.InRow+1, now.UTC().Truncate(time.Millisecond), ""
	k.Report(fmt.Sprintf("restarting the %s (pid %d has ended), %d in a row", name, id.PID, r.InRow))
	if err := again(ctx); err != nil && ctx.Err() == nil {
		r.Error = err.Error()
		k.Report(r.Error)
	}
	r.tried = time.Now()
	return k.save()
}

// backoff returns the time between two consecutive restarts.
func (r Restarts) backoff(first time.Duration) time.Duration {
	if r.InRow == 0 {
		return 0
	}
	return min(first<<min(r.InRow-1, 16), longestBackoff)
}

// why returns the reason of the last restart, if it is known: the keeper is not always the parent.
func (r Restarts) why() string {
	if r.Error != "" {
		return r.Error
	}
	return "it started and ended again"
}

// String describes the restarts in a clause; empty: there were none.
func (r Restarts) String() string {
	switch {
	case r.GaveUp:
		return fmt.Sprintf("gave up after %d restarts in a row, last at %s: %s", r.InRow,
			r.Last.Local().Format(time.DateTime), r.why())
	case r.InRow > 0 && r.Error != "":
		return fmt.Sprintf("restart %d failed at %s: %s", r.InRow, r.Last.Local().Format(time.DateTime), r.Error)
	case r.Total > 0:
		return fmt.Sprintf("restarted %d time%s, last at %s", r.Total, map[bool]string{false: "s"}[r.Total == 1],
			r.Last.Local().Format(time.DateTime))
	}
	return ""
}

func (k *keeper) save() error {
	if err := save(k.file, k.record); err != nil {
		return fmt.Errorf("record the keeper: %w", err)
	}
	return nil
}

func readKeeper(stateDir string) (Keeper, error) {
	var k Keeper
	return k, load(filepath.Join(stateDir, keeperDir, keeperFile), &k)
}

// forgetKeeper removes a process from the record, if it is still recorded. A worker does not restart a keeper that
// was stopped.
func forgetKeeper(stateDir string, id process.Identity) error {
	k, err := readKeeper(stateDir)
	if err != nil || k.Process != id {
		return err
	}
	k.Process = process.Identity{}
	return save(filepath.Join(stateDir, keeperDir, keeperFile), k)
}

// KeeperOptions configure how a keeper is found or started. Its program calls [Keep].
type KeeperOptions struct {
	StateDir     string
	Exec         string
	Args         []string
	Env          []string      // nil: that of this process
	Key          string        // a keeper with another key is replaced; empty: any will do
	Again        bool          // start only a keeper that ended without having been stopped
	StartTimeout time.Duration // default: a minute
}

// EnsureKeeper returns the running keeper, or starts one. The zero Keeper without an error means that there is
// nothing to keep. A keeper with another key may take the lock first, if another starter has just launched it: it is
// replaced too.
func EnsureKeeper(ctx context.Context, o KeeperOptions) (Keeper, error) {
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	k, err := readKeeper(o.StateDir)
	switch {
	case err != nil:
		return k, err
	case o.Again && k.Process.PID == 0:
		return Keeper{}, nil
	case k.Process.Alive() && (o.Again || o.accepts(k)):
		return k, nil
	}
	const most = 3 // two builds may replace each other's keepers
	for range most {
		if _, err := StopKeeper(ctx, o.StateDir, keeperGrace); err != nil {
			return k, err
		}
		if k, err = o.start(ctx); err != nil || k.Process.PID == 0 || o.accepts(k) {
			break
		}
	}
	return k, err
}

// accepts reports whether a keeper has the key that is asked for.
func (o *KeeperOptions) accepts(k Keeper) bool { return o.Key == "" || k.Key == o.Key }

const keeperGrace = 10 * time.Second

func (o *KeeperOptions) start(ctx context.Context) (Keeper, error) {
	dir := filepath.Join(o.StateDir, keeperDir)
	if err := (disk.Disk{}).Mkdir(dir, 0o700); err != nil {
		return Keeper{}, fmt.Errorf("start the keeper: %w", err)
	}
	d, err := launch(launchSpec{exec: o.Exec, args: o.Args, env: o.Env, dir: o.StateDir,
		log: filepath.Join(dir, keeperLog)})
	if err != nil {
		return Keeper{}, fmt.Errorf("start the keeper: %w", err)
	}
	err = o.await(ctx, d, o.StartTimeout)
	k, readErr := readKeeper(o.StateDir)
	switch {
	case readErr != nil:
		return k, readErr
	case err == nil || k.Process.Alive(): // another starter may have started it
		return k, nil
	case errors.Is(err, errEnded) && d.err == nil: // the server was stopped meanwhile
		return Keeper{}, nil
	}
	return k, fmt.Errorf("start the keeper %s: %w", o.Exec, d.explain(ctx, err))
}

// await returns when a running keeper is recorded.
func (o *KeeperOptions) await(ctx context.Context, d *daemon, timeout time.Duration) error {
	return d.await(ctx, timeout, func(context.Context) error {
		k, err := readKeeper(o.StateDir)
		if err == nil && !k.Process.Alive() {
			err = errors.New("it has not written its record")
		}
		return err
	})
}

// StopKeeper stops the keeper, even one that the worker has just restarted. Server and worker keep running.
func StopKeeper(ctx context.Context, stateDir string, grace time.Duration) (stopped bool, err error) {
	for {
		k, err := readKeeper(stateDir)
		if err != nil || k.Process.PID == 0 {
			return stopped, err
		}
		if k.Process.Alive() {
			stopped = true
			if err := end(ctx, k.Process, grace); err != nil {
				return true, fmt.Errorf("stop the keeper: %w", err)
			}
		}
		if err := forgetKeeper(stateDir, k.Process); err != nil {
			return stopped, fmt.Errorf("stop the keeper: %w", err)
		}
	}
}
