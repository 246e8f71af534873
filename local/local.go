// Package local keeps the background processes of this machine: one Temporal server and one worker for each state directory.
//
// They outlive the terminal that started them and are shared by every later starter. It promises that two starters at once
// start one of each; that a record whose process has ended, by whatever means, is replaced; that no signal reaches a process
// but the recorded one; and that a server keeps its address and its database from one start to the next. It does not decide
// when they should stop: a worker does, with [Alone]. A keeper, a third process, restarts what ended without having been stopped: a record that names a
// process is what should run, and whoever stops one takes it out of its record, under the same lock.
//
//	<state>/host-id               this machine's name in queue names, random and stable
//	<state>/attached              a lock, shared by the starters that are at work
//	<state>/server/server.json    the server that runs, or ran last: its ports are used again
//	<state>/server/server.log     what it said, over all starts
//	<state>/server/temporal-1.32.db   its database, one a minor version: nothing migrates it
//	<state>/worker/worker.json    the worker that was started here
//	<state>/worker/ready-PID.json a worker that polls, written by itself
//	<state>/keeper/keeper.json    the keeper that restarts both, written by itself, and what it restarted
//	<state>/*/lock                held while somebody looks, starts or stops
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/durable"
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
)

const (
	defaultStartTimeout = time.Minute
	pollInterval        = 25 * time.Millisecond
	checkTimeout        = 2 * time.Second
)

// Status is what runs. A nil part does not.
type Status struct {
	Server *Server `json:"server,omitempty"`
	Worker *Worker `json:"worker,omitempty"`
	Keeper *Keeper `json:"keeper,omitempty"`
}

// Read gives what runs, by the records and the process table; it asks nobody over the network.
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

// Stop ends the keeper, then the worker, then the server, each as [StopServer] does, and says what was running.
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

// hold makes the folder and takes its lock. Who waits for it is told once.
func hold(ctx context.Context, dir, what string, progress func(string)) (*durable.Lock, error) {
	if err := (durable.Disk{}).Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockFile)
	owner := durable.Self(what, time.Now())
	lock, err := durable.TryLock(path, owner)
	if held := (*durable.ErrHeld)(nil); errors.As(err, &held) {
		progress(fmt.Sprintf("waiting for %s", held.Owner))
		return durable.WaitLock(ctx, path, owner)
	}
	return lock, err
}

// load reads a JSON file into v; a missing one leaves v as it is.
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
	return durable.Disk{}.WriteFile(path, append(data, '\n'), 0o600)
}

func orSilent(progress func(string)) func(string) {
	if progress == nil {
		return func(string) {}
	}
	return progress
}
