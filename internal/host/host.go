// Package host answers for one machine: where is the Temporal server, who works, and is it healthy.
//
// It connects to the server that TEMPORAL_* or a profile names, or runs an embedded one; it polls the queues of this
// host; it starts and stops the background server, worker and keeper of a state directory; and it checks what runs
// need. Background processes outlive the terminal that started them, and all starters share them. The package promises
// that two concurrent starters start one of each; that a record whose process has ended is replaced; that only the
// recorded process gets a signal; that a server keeps its address and its database; that a worker that stops leaves
// its calls to the next one; and that counters come from the events that a worker writes to run directories.
//
//	<state>/format.json           the version of the directory, see package format
//	<state>/host-id               the name of this machine in queue names, random and stable
//	<state>/attached              a lock shared by attached starters
//	<state>/server/server.json    the server that runs or ran last; the next one reuses its ports
//	<state>/server/server.log     its output over all starts
//	<state>/server/certs/         keys and certificates of server and clients, see package certs
//	<state>/server/ui/            the login of the Web UI: links that can be opened
//	<state>/server/temporal-1.32.db   its database, one for each minor version, never migrated
//	<state>/worker/worker.json    the worker that a starter started
//	<state>/worker/ready-PID.json a polling worker, written by that worker
//	<state>/keeper/keeper.json    the keeper and its restarts, written by the keeper
//	<state>/*/lock                held while a process inspects, starts or stops
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// Names in the state directory.
const (
	serverDir   = "server"
	workerDir   = "worker"
	recordFile  = "server.json"
	serverLog   = "server.log"
	workerFile  = "worker.json"
	workerLog   = "worker.log"
	readyPrefix = "ready-" // and the pid
	lockFile    = "lock"
	leaseFile   = "attached"
	keeperDir   = "keeper"
	keeperFile  = "keeper.json"
	keeperLog   = "keeper.log"
	hostFile    = "host-id"
	certsDir    = "certs"
	loginDir    = "ui"
)

const (
	defaultStartTimeout = time.Minute
	pollInterval        = 25 * time.Millisecond
	checkTimeout        = 2 * time.Second
	certsEvery          = time.Minute // renewals are due weeks before the end
)

// Status lists the running processes. A nil field means that the process does not run.
type Status struct {
	Server *Server `json:"server,omitempty"`
	Worker *Worker `json:"worker,omitempty"`
	Keeper *Keeper `json:"keeper,omitempty"`
}

// Read returns the running processes from the records and the process table, without network requests.
func Read(stateDir string) (Status, error) {
	var st Status
	s, err := readServer(stateDir)
	if err != nil {
		return st, err
	}
	if s.Process.Alive() {
		st.Server = &s
	}
	w, err := readWorker(stateDir)
	if err != nil {
		return st, err
	}
	if w.Process.Alive() {
		st.Worker = &w
	}
	k, err := readKeeper(stateDir)
	if err != nil {
		return st, err
	}
	if k.Process.Alive() {
		st.Keeper = &k
	}
	return st, nil
}

// Stop stops the keeper, then the worker, then the server, each like [StopServer], and returns what was running.
func Stop(ctx context.Context, stateDir string, grace time.Duration) (Status, error) {
	was, err := Read(stateDir)
	if err != nil {
		return was, err
	}
	if _, err := StopKeeper(ctx, stateDir, keeperGrace); err != nil {
		return was, err
	}
	if _, err := StopWorker(ctx, stateDir, grace); err != nil {
		return was, err
	}
	_, err = StopServer(ctx, stateDir, grace)
	return was, err
}

// hold creates the folder and acquires its lock. It reports once that it waits.
func hold(ctx context.Context, dir, what string, progress func(string)) (*disk.Lock, error) {
	if err := (disk.Disk{}).Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockFile)
	owner := disk.Self(what, time.Now())
	lock, err := (disk.Disk{}).TryLock(path, owner)
	if held := (*disk.ErrHeld)(nil); errors.As(err, &held) {
		progress(fmt.Sprintf("waiting for %s", held.Owner))
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

func orSilent(progress func(string)) func(string) {
	if progress == nil {
		return func(string) {}
	}
	return progress
}
