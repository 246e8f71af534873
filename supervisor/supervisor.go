// Package supervisor runs one agent under a small process of its own, which outlives the worker that asked for it.
//
// The process waits on a pipe until its delivery is claimed; the end of the pipe before that ends it. Then it starts the agent, enforces its bounds,
// and ends whatever the agent leaves. It promises that the agent does not outlive it (Linux), and that [ExitFile] is there only when the agent and all
// that it had started are gone and its output is on disk. It does not read what the agent says. This package is both sides: the process ([Main]) and
// what a worker has of it ([Process]). It imports little, because one process runs for each call.
//
// In the directory of the delivery:
//
//	call.json        what to run, written by the worker before it sends the byte
//	environ.json     the agent's environment
//	supervisor.json  who supervises it, written before the agent starts
//	stop.json        why the call is ended, written before SIGTERM
//	exit.json        how the agent ended
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/process"
)

// Files in the directory of a delivery.
const (
	CallFile    = "call.json"
	EnvironFile = "environ.json"
	RecordFile  = "supervisor.json"
	StopFile    = "stop.json"
	ExitFile    = "exit.json"
)

// Version is that of the files.
const Version = 1

// Verb makes a program that has the worker in it the supervisor of a call. [Program] is smaller.
const Verb = "supervise-call"

// Program is the supervisor as a program, found beside the worker's.
const Program = "passbook-call"

// DaemonEnv marks background processes of Passbook: they outlive the call in which an agent started them.
const DaemonEnv = "PASSBOOK_DAEMON"

// Call is what to run, and its bounds. Paths are absolute; the files are there.
type Call struct {
	Version int           `json:"version"`
	Path    string        `json:"path"`
	Argv    []string      `json:"argv"`
	Dir     string        `json:"dir"`
	Stdin   string        `json:"stdin"`
	Stdout  string        `json:"stdout"`
	Stderr  string        `json:"stderr"`
	Timeout time.Duration `json:"timeout,omitempty"` // on the monotonic clock; 0: none
	Idle    time.Duration `json:"idle,omitempty"`    // without output; 0: any
	Output  int64         `json:"output,omitempty"`  // bytes of stdout and of stderr that are kept; more of stdout ends the agent; 0: any number
	Grace   time.Duration `json:"grace"`             // between SIGTERM and SIGKILL
}

// Record names the supervisor of a delivery.
type Record struct {
	Version  int              `json:"version"`
	Process  process.Identity `json:"process"`
	Delivery string           `json:"delivery"` // its directory
	Deadline time.Time        `json:"deadline"` // zero: none
}

// Exit says how an agent ended.
type Exit struct {
	Code      int           `json:"code"`             // -1 when a signal ended it
	Signal    string        `json:"signal,omitempty"` // "killed"
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration"` // monotonic: changes of the wall clock do not count
	TimedOut  bool          `json:"timed_out,omitempty"`
	Idle      bool          `json:"idle,omitempty"`     // it printed nothing for too long; TimedOut is set too
	Overflow  bool          `json:"overflow,omitempty"` // it printed too much to stdout, which is cut off
	Killed    bool          `json:"killed,omitempty"`   // on request
	KillCause string        `json:"kill_cause,omitempty"`
}

// exitRecord is ExitFile.
type exitRecord struct {
	Version  int    `json:"version"`
	Delivery string `json:"delivery"`
	Exit
	Spawn *spawnError `json:"spawn,omitempty"` // the agent was never started
	Left  int         `json:"left,omitempty"`  // processes that could not be ended
}

// spawnError is why the system did not start the agent.
type spawnError struct {
	Path  string        `json:"path"`
	Errno syscall.Errno `json:"errno,omitempty"`
	Text  string        `json:"text"`
}

type stopRecord struct {
	Version int    `json:"version"`
	Cause   string `json:"cause"`
}

// SpawnError is the error of an agent that was never started.
type SpawnError struct{ Err error }

func (e *SpawnError) Error() string { return e.Err.Error() }
func (e *SpawnError) Unwrap() error { return e.Err }

// ErrNoExit says that a delivery has no record of its end: its supervisor runs, or was lost with the agent.
var ErrNoExit = errors.New("the supervisor of the call ended without a record of the agent's exit")

// ReadExit reads how the agent of a delivery ended. The error is [ErrNoExit] where that is not recorded, and a [SpawnError] if it never began. A record
// of an unknown version is an error too.
func ReadExit(dir string) (Exit, error) {
	path := filepath.Join(dir, ExitFile)
	fi, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && !fi.Mode().IsRegular() {
		return Exit{}, ErrNoExit
	}
	if err != nil {
		return Exit{}, err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return Exit{}, err
	}
	var r exitRecord
	switch {
	case json.Unmarshal(raw, &r) != nil:
		return Exit{}, ErrNoExit // the agent wrote it, and died with its supervisor
	case r.Version != Version:
		return Exit{}, fmt.Errorf("read exit record %s: version %d is unknown; another release of Passbook wrote it", path, r.Version)
	case r.Spawn == nil:
		return r.Exit, nil
	case r.Spawn.Errno != 0:
		return r.Exit, &SpawnError{&os.PathError{Op: "fork/exec", Path: r.Spawn.Path, Err: r.Spawn.Errno}}
	}
	return r.Exit, &SpawnError{errors.New(r.Spawn.Text)}
}

// ReadRecord reads who supervises a delivery; false: its agent was never started.
func ReadRecord(dir string) (Record, bool, error) {
	var r Record
	err := read(filepath.Join(dir, RecordFile), &r)
	if errors.Is(err, os.ErrNotExist) {
		return r, false, nil
	}
	return r, err == nil, err
}

func read(path string, v any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// write puts a record on disk.
func write(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return durable.Disk{}.WriteFile(path, append(raw, '\n'), 0o600)
}

// note writes a record that readers see whole. It is of no use after a power cut, which no process survives, and so is not synced.
func note(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
