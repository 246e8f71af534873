package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/format"
	"github.com/passbook-run/passbook/internal/process"
)

// Status lists the background processes of a state directory. [Read] returns those that run. In the file, a recorded
// process should run: one that was stopped is removed, and of a stopped server only the process.
type Status struct {
	Server *Server `json:"server,omitempty"`
	Worker *Worker `json:"worker,omitempty"`
	Keeper *Keeper `json:"keeper,omitempty"`
}

// started returns the recorded server; zero: none should run.
func (st Status) started() (s Server) {
	if st.Server != nil && st.Server.Process.PID != 0 {
		s = *st.Server
	}
	return s
}

// Read returns the running processes from their records and the process table, without network requests. Without a
// background worker it returns the foreground worker that reported last.
func Read(stateDir string) (Status, error) {
	st, err := recorded(stateDir)
	if err != nil {
		return Status{}, err
	}
	if st.Server != nil && !st.Server.Process.Alive() {
		st.Server = nil
	}
	if st.Keeper != nil && !st.Keeper.Process.Alive() {
		st.Keeper = nil
	}
	polling, err := announced(stateDir)
	if st.Worker != nil && st.Worker.Process.Alive() {
		st.Worker.Path = polling[readyPath(stateDir, st.Worker.Process)].Path
		return st, err
	}
	st.Worker = nil
	for _, w := range polling {
		if w.Process.Alive() && (st.Worker == nil || w.Started.After(st.Worker.Started)) {
			st.Worker = &w
		}
	}
	return st, err
}

// Stop stops the keeper, then the worker, then the server with SIGTERM, and after the grace with SIGKILL. It returns
// what was running. The grace must include the setting drain.
func Stop(ctx context.Context, stateDir string, grace time.Duration) (was Status, err error) {
	st, err := recorded(stateDir)
	if err != nil || st == (Status{}) {
		return was, err
	}
	if was, err = Read(stateDir); err != nil {
		return was, err
	}
	return was, change(ctx, stateDir, "stopping the background processes", nil, func(r *records) error {
		return errors.Join(r.stopKeeper(ctx), r.stopWorker(ctx, grace), r.stopServer(ctx, grace))
	})
}

// StopServer stops the server alone, as [Stop] does. Its record keeps its ports. A keeper without a server ends.
func StopServer(ctx context.Context, stateDir string, grace time.Duration) error {
	return change(ctx, stateDir, "stopping the Temporal server", nil,
		func(r *records) error { return r.stopServer(ctx, grace) })
}

func (r *records) stopServer(ctx context.Context, grace time.Duration) error {
	if r.started().Process.PID == 0 {
		return nil
	}
	if err := end(ctx, r.Server.Process, grace); err != nil {
		return fmt.Errorf("stop the Temporal server: %w", err)
	}
	r.Server.Process = process.Identity{}
	return r.save()
}

func (r *records) stopWorker(ctx context.Context, grace time.Duration) error {
	if r.Worker == nil {
		return nil
	}
	if err := end(ctx, r.Worker.Process, grace); err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	r.Worker = nil
	return r.save()
}

func (r *records) stopKeeper(ctx context.Context) error {
	const grace = 10 * time.Second
	if r.Keeper == nil {
		return nil
	}
	if err := end(ctx, r.Keeper.Process, grace); err != nil {
		return fmt.Errorf("stop the keeper: %w", err)
	}
	r.Keeper = nil
	return r.save()
}

// records are the recorded processes while their lock is held.
type records struct {
	dir string
	Status
}

// change calls f with the lock of the records: one process at a time starts or stops others. It reports once that it
// waits. It does not create a state directory.
func change(ctx context.Context, stateDir, why string, progress func(string), f func(*records) error) (err error) {
	if err := ownState(stateDir); err != nil {
		return err
	}
	lock, err := hold(ctx, stateDir, why, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", why, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	r := &records{dir: stateDir}
	if r.Status, err = recorded(stateDir); err != nil {
		return err
	}
	return f(r)
}

func (r *records) save() error { return save(filepath.Join(r.dir, recordFile), r.Status) }

func recorded(stateDir string) (st Status, err error) {
	return st, load(filepath.Join(stateDir, recordFile), &st)
}

// ownState refuses a state directory of another user, who could not use the files that this process writes.
func ownState(stateDir string) error {
	info, err := os.Stat(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("manage background processes: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); ok && int(st.Uid) != me {
		return fmt.Errorf("manage background processes: the state directory %s belongs to user %d, and this "+
			"process runs as user %d; run it as the owner, or set PASSBOOK_STATE_DIR", stateDir, st.Uid, me)
	}
	return nil
}

// OpenState is called by every program before it writes to a state directory: it creates the directory, and upgrades
// one of an earlier release unless background processes run. A directory of a newer release is refused, and nothing is
// changed.
func OpenState(ctx context.Context, stateDir string) error {
	return format.State().Open(ctx, stateDir, func() error {
		st, err := Read(stateDir)
		if err != nil || st == (Status{}) {
			return err
		}
		return errors.New("processes of an earlier release use it; stop them: starter server stop")
	})
}

// hold acquires the lock of a folder. It reports once that it waits.
func hold(ctx context.Context, dir, what string, progress func(string)) (*disk.Lock, error) {
	path := filepath.Join(dir, lockFile)
	owner := disk.Self(what, time.Now())
	lock, err := (disk.Disk{}).TryLock(path, owner)
	if held := (*disk.ErrHeld)(nil); errors.As(err, &held) {
		if progress != nil {
			progress(fmt.Sprintf("waiting for %s", held.Owner))
		}
		return (disk.Disk{}).WaitLock(ctx, path, owner)
	}
	return lock, err
}

// load reads a JSON file into v. A missing file leaves v unchanged.
func load(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read record %s: %w; move the file away and start again", path, err)
	}
	return nil
}

// save replaces a JSON file.
func save(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write record %s: %w", path, err)
	}
	return disk.Disk{}.WriteFile(path, append(data, '\n'), 0o600)
}
