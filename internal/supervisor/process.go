package supervisor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
)

// Process is a supervisor as its worker sees it: its own child, or one that another worker started.
type Process struct {
	id    process.Identity
	dir   string
	pipe  io.WriteCloser // nil once the agent may start
	once  sync.Once
	ended chan struct{}
}

// Argv returns the command of a supervisor: the small program that this one carries, written to the state directory, or
// this program with [Verb].
func Argv(state string) ([]string, error) {
	if carried == nil {
		self, err := os.Executable()
		return []string{self, Verb}, err
	}
	path := filepath.Join(state, "bin", carriedName())
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(carried)) {
		return []string{path}, nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = disk.Disk{}.WriteFile(path, carried, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("write the supervisor of calls: %w", err)
	}
	return []string{path}, nil
}

// carriedName is computed once: the digest takes milliseconds, and each call needs it.
var carriedName = sync.OnceValue(nameCarried)

func nameCarried() string { return fmt.Sprintf("%s-%.6x", Program, sha256.Sum256(carried)) }

// Start starts the supervisor of a delivery, which waits. Claim the delivery for it, then call [Process.StartAgent] or
// [Process.Abandon]. The supervisor keeps held open until it ends; it may be nil.
func Start(argv []string, dir string, held *os.File) (*Process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the supervisor of a call: %w", err)
	}
	cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], dir)...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", supervisorEnv(), r
	if held != nil {
		cmd.ExtraFiles = []*os.File{held}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	if closed := r.Close(); err != nil {
		return nil, fmt.Errorf("start the supervisor of a call: %w", errors.Join(err, closed, w.Close()))
	}
	id, err := process.Of(cmd.Process.Pid) // not reaped: its pid is not reused
	if err != nil {
		return nil, fmt.Errorf("start the supervisor of a call: %w", errors.Join(err, w.Close(), cmd.Wait()))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := cmd.Wait(); err != nil {
			return
		}
	}()
	return Waiting(dir, id, w, ended), nil
}

// Waiting returns a supervisor that was started for a delivery and waits for one byte in pipe. It closes ended when it
// has ended.
func Waiting(dir string, id process.Identity, pipe io.WriteCloser, ended chan struct{}) *Process {
	return &Process{id: id, dir: dir, pipe: pipe, ended: ended}
}

// supervisorEnv returns the environment of a supervisor: nothing of the worker's, which contains secrets, except for
// coverage.
func supervisorEnv() []string {
	env := []string{"GOMAXPROCS=1"}
	if cover, ok := os.LookupEnv("GOCOVERDIR"); ok {
		env = append(env, "GOCOVERDIR="+cover)
	}
	return env
}

// Attach returns the supervisor of a delivery that another worker started.
func Attach(dir string, id process.Identity) *Process {
	p := &Process{id: id, dir: dir, ended: make(chan struct{})}
	go func() {
		const every = 50 * time.Millisecond // a process that is not a child can only be polled
		tick := time.NewTicker(every)
		defer tick.Stop()
		for id.Alive() {
			<-tick.C
		}
		close(p.ended)
	}()
	return p
}

// StartAgent stores the call and lets the agent start. From then on the supervisor is independent of this process.
func (p *Process) StartAgent(c Call, environ []string) error {
	c.Version = Version
	err := errors.Join(writeUnsynced(filepath.Join(p.dir, EnvironFile), environ),
		writeUnsynced(filepath.Join(p.dir, CallFile), c))
	if err == nil {
		_, err = p.pipe.Write([]byte{1})
	}
	if err != nil {
		return fmt.Errorf("start the agent of %s: %w", p.dir, errors.Join(err, p.Abandon()))
	}
	err = p.pipe.Close()
	p.pipe = nil
	return err
}

// Abandon ends a supervisor whose agent has not started, and waits for it.
func (p *Process) Abandon() error {
	err := p.pipe.Close()
	<-p.ended
	return err
}

// Stop ends the agent: SIGTERM now, SIGKILL after its grace period. It does not wait. The first cause counts.
func (p *Process) Stop(cause string) (err error) {
	p.once.Do(func() {
		p.awaitRecord()
		err = Stop(p.dir, p.id, cause)
	})
	return err
}

// awaitRecord waits until a new supervisor handles signals: before its record exists, SIGTERM would kill it. The
// wait has a timeout, since an agent may have removed the record.
func (p *Process) awaitRecord() {
	const every, most = 2 * time.Millisecond, 5 * time.Second
	late := time.After(most)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := os.Stat(filepath.Join(p.dir, RecordFile)); err == nil {
			return
		}
		select {
		case <-p.ended:
			return
		case <-late:
			return
		case <-tick.C:
		}
	}
}

// Stop ends the call of a delivery and its descendants. It does not wait. It also ends the call if the cause
// cannot be stored, as on a full disk.
func Stop(dir string, id process.Identity, cause string) error {
	if !id.Alive() {
		return nil
	}
	var unwritten error
	path := filepath.Join(dir, StopFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := writeUnsynced(path, stopRecord{Version: Version, Cause: cause}); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			unwritten = err
		}
	}
	if err := id.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, process.ErrGone) {
		return errors.Join(unwritten, err)
	}
	return unwritten
}

// Identity returns the identity of the supervisor.
func (p *Process) Identity() process.Identity { return p.id }

// Dir returns the directory of the delivery.
func (p *Process) Dir() string { return p.dir }

// Done is closed when the supervisor has ended. [ReadExit] returns how the agent ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Running returns the running supervisors under a folder of deliveries (FOLDER/CALL/DELIVERY).
func Running(folder string) ([]Record, error) {
	files, err := filepath.Glob(
		filepath.Join(strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`).Replace(folder), "*", "*",
			RecordFile),
	)
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, f := range files {
		if r, ok, err := ReadRecord(filepath.Dir(f)); err == nil && ok && r.Process.Alive() {
			r.Delivery = filepath.Dir(f)
			out = append(out, r)
		}
	}
	return out, nil
}

// StopAll ends the calls under a folder of deliveries, waits for them, and returns their number.
func StopAll(ctx context.Context, folder, cause string) (int, error) {
	found, err := Running(folder)
	for _, r := range found {
		err = errors.Join(err, Stop(r.Delivery, r.Process, cause))
	}
	for _, r := range found {
		err = errors.Join(err, r.Process.AwaitEnd(ctx))
	}
	return len(found), err
}
