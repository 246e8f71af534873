// Package supervisor runs one agent under a small dedicated process that outlives the worker.
//
// The process waits on a pipe until its delivery is claimed; if the pipe closes before, it exits. Then it starts
// the agent, enforces its limits and kills what the agent leaves running. The agent does not outlive it (Linux),
// and [ExitFile] exists only when the agent and its descendants are gone and the output is on disk. It does not
// read the output. The package contains both sides: the process ([Main]) and the worker's view of it ([Process]).
// It imports little, because one process runs per call.
//
// In the directory of the delivery:
//
//	call.json        what to run, written by the worker before it sends the byte
//	environ.json     the agent's environment
//	supervisor.json  who supervises it, written before the agent starts
//	sandbox.json     the first process of the agent's sandbox, written by bwrap; none without a sandbox
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

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
)

// Files in the directory of a delivery.
const (
	CallFile    = "call.json"
	EnvironFile = "environ.json"
	RecordFile  = "supervisor.json"
	StopFile    = "stop.json"
	ExitFile    = "exit.json"
	// SandboxFile is written by bwrap: the sandbox's first process, then the agent's exit code.
	SandboxFile = "sandbox.json"
)

// Version is the version of the files.
const Version = 1

// Verb makes a program that contains the worker a supervisor. [Program] is smaller.
const Verb = "supervise-call"

// Program is the supervisor program, beside the worker's.
const Program = "passbook-call"

// DaemonEnv marks background processes of Passbook: they outlive the call that started them.
const DaemonEnv = "PASSBOOK_DAEMON"

// Call is what to run, and its limits. Paths are absolute; the files exist.
type Call struct {
	Version int           `json:"version"`
	Path    string        `json:"path"`
	Argv    []string      `json:"argv"`
	Dir     string        `json:"dir"`
	Stdin   string        `json:"stdin"`
	Stdout  string        `json:"stdout"`
	Stderr  string        `json:"stderr"`
	Timeout time.Duration `json:"timeout,omitempty"` // on the monotonic clock; 0: none
	Idle    time.Duration `json:"idle,omitempty"`    // maximum time without output; 0: none
	// a process that the agent has started since its last output counts as output: a tool is at work
	Tools bool `json:"tools,omitempty"`
	// maximum bytes of stdout and of stderr; more stdout ends the agent; 0: no limit
	Output int64         `json:"output,omitempty"`
	Grace  time.Duration `json:"grace"` // between SIGTERM and SIGKILL
	// Path is bwrap, and Argv ends with the agent's command: it reports to [SandboxFile], its file descriptor 3
	Sandbox bool `json:"sandbox,omitempty"`
	// Argv begins with this program and [EnterVerb] in the sandbox; nil: the network of the host, or none
	Network *Network `json:"network,omitempty"`
}

// Record identifies the supervisor of a delivery.
type Record struct {
	Version  int              `json:"version"`
	Process  process.Identity `json:"process"`
	Delivery string           `json:"delivery"` // its directory
	Deadline time.Time        `json:"deadline"` // zero: none
}

// Exit is how an agent ended.
type Exit struct {
	Code      int           `json:"code"`             // -1 if ended by a signal
	Signal    string        `json:"signal,omitempty"` // "killed"
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration"` // on the monotonic clock
	TimedOut  bool          `json:"timed_out,omitempty"`
	Idle      bool          `json:"idle,omitempty"`     // no output for too long; TimedOut is set too
	Overflow  bool          `json:"overflow,omitempty"` // too much stdout, which is truncated
	Limit     int64         `json:"limit,omitempty"`    // bytes at which stdout was truncated
	Replaced  bool          `json:"replaced,omitempty"` // stdout is not the file that the agent printed to
	Killed    bool          `json:"killed,omitempty"`   // on request
	KillCause string        `json:"kill_cause,omitempty"`
}

// exitRecord is the content of ExitFile.
type exitRecord struct {
	Version  int    `json:"version"`
	Delivery string `json:"delivery"`
	Exit
	Spawn *spawnError `json:"spawn,omitempty"` // why the agent never started
	Left  int         `json:"left,omitempty"`  // processes that could not be killed
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

// SpawnError is the error of an agent that never started.
type SpawnError struct{ Err error }

func (e *SpawnError) Error() string { return e.Err.Error() }
func (e *SpawnError) Unwrap() error { return e.Err }

// ErrNoExit means that a delivery has no exit record: its supervisor is running, or was lost with the agent.
var ErrNoExit = errors.New("the supervisor of the call ended without a record of the agent's exit")

// ReadExit reads how the agent of a delivery ended. The error is [ErrNoExit] if it is not recorded, and a
// [SpawnError] if the agent never started.
func ReadExit(dir string) (Exit, error) {
	path := filepath.Join(dir, ExitFile)
	raw, err := disk.ReadFile(path, maxRecord)
	var other *disk.KindError
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.As(err, &other) {
		return Exit{}, ErrNoExit
	}
	if err != nil {
		return Exit{}, err
	}
	var r exitRecord
	switch {
	case json.Unmarshal(raw, &r) != nil:
		return Exit{}, ErrNoExit // written by the agent, which died with its supervisor
	case r.Version != Version:
		return Exit{}, fmt.Errorf("read exit record %s: version %d is unknown; another release of Passbook wrote it",
			path,
			r.Version)
	case r.Spawn == nil:
		return r.Exit, nil
	case r.Spawn.Errno != 0:
		return r.Exit, &SpawnError{&os.PathError{Op: "fork/exec", Path: r.Spawn.Path, Err: r.Spawn.Errno}}
	}
	return r.Exit, &SpawnError{errors.New(r.Spawn.Text)}
}

// ReadRecord reads who supervises a delivery; false: its agent never started.
func ReadRecord(dir string) (Record, bool, error) {
	var r Record
	err := read(filepath.Join(dir, RecordFile), &r)
	var other *disk.KindError
	if errors.Is(err, os.ErrNotExist) || errors.As(err, &other) {
		return r, false, nil
	}
	return r, err == nil, err
}

// maxRecord is the maximum size of a file of a delivery. Agents may replace them.
const maxRecord = 8 << 20

func read(path string, v any) error {
	raw, err := disk.ReadFile(path, maxRecord)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

func writeRecord(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return disk.Disk{}.WriteFile(path, append(raw, '\n'), 0o600)
}

// writeUnsynced writes a record atomically without syncing it: after a power failure it is useless.
func writeUnsynced(path string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return disk.WriteFile(path, append(raw, '\n'))
}
