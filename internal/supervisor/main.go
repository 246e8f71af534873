package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/process"
)

// checkInterval is the interval at which output sizes are checked.
const checkInterval = 100 * time.Millisecond

// retryInterval is the interval at which a write to a full disk is tried again, and the time to kill what is left.
const retryInterval = time.Second

// Main is the supervisor process: it supervises the delivery in the directory that is its only argument. Standard
// input is the pipe from the worker.
func Main(args []string) int {
	if len(args) > 1 && args[0] == EnterVerb {
		return enter(args[1:])
	}
	if len(args) == 4 && args[0] == ConnectVerb {
		return connectVerb(args[1:])
	}
	if len(args) != 1 || !filepath.IsAbs(args[0]) {
		fmt.Fprintf(
			os.Stderr, "usage: %s DIRECTORY\nThe supervisor of one call. A worker starts it; see "+
				"docs/architecture.md.\n",
			Program,
		)
		return 2
	}
	keepFiles()
	child, asked := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	// a signal before the agent starts ends it then
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// the agent's parent-death signal is sent when the thread that forked it ends
	runtime.LockOSThread()
	if !awaitClaim() {
		return 0
	}
	s := supervision{dir: args[0]}
	if err := s.run(child, asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// keepFiles keeps the agent from inheriting files: the one that [Start] passes, and those that the terminal of the
// worker had open. An open folder would lead out of a sandbox.
func keepFiles() {
	const first, usual = 3, 1 << 10
	open, err := os.ReadDir("/dev/fd")
	for fd := first; err != nil && fd < usual; fd++ { // there is no list
		syscall.CloseOnExec(fd)
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			syscall.CloseOnExec(fd)
		}
	}
}

// awaitClaim waits for the byte that lets the agent start. The end of the pipe means that nothing was claimed or the
// worker is gone.
func awaitClaim() bool {
	var b [1]byte
	for {
		n, err := syscall.Read(0, b[:])
		if err == syscall.EINTR {
			continue
		}
		return err == nil && n == 1
	}
}

type supervision struct {
	dir       string
	call      Call
	stdout    *os.File // open to the end: the agent may replace the file
	stderr    *os.File
	report    *os.File     // of the sandbox, likewise
	entered   chan bool    // whether the sandbox's network was prepared; nil: it has none
	pasta     atomic.Int64 // its pid; 0: it does not run
	agent     int          // pid and process group
	startedAt time.Time
	reaped    bool
	ending    bool
	printed   int64     // bytes of output at the last check
	printedAt time.Time // time of the last change
	rec       exitRecord
}

// run starts the agent and returns when its exit is recorded.
func (s *supervision) run(child, asked <-chan os.Signal) error {
	if err := read(filepath.Join(s.dir, CallFile), &s.call); err != nil {
		return err
	}
	s.rec.Version, s.rec.Delivery = Version, s.dir
	s.startedAt = time.Now()
	s.rec.Started, s.printedAt = s.startedAt.UTC(), s.startedAt
	if err := s.record(); err != nil {
		return err
	}
	s.reserveSpace()
	if err := s.start(); err != nil {
		s.rec.Code = -1
		s.rec.Spawn = spawnFailure(s.call.Path, err)
		return s.close(asked)
	}
	s.watch(child, asked)
	s.rec.Duration = time.Since(s.startedAt)
	return s.close(asked)
}

// record stores this process's identity, so that the next worker can join the call or end it.
func (s *supervision) record() error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	r := Record{Version: Version, Process: self, Delivery: s.dir}
	if s.call.Timeout > 0 {
		r.Deadline = s.startedAt.Add(s.call.Timeout).UTC()
	}
	return writeUnsynced(filepath.Join(s.dir, RecordFile), r)
}

func (s *supervision) start() error {
	var env []string
	if err := read(filepath.Join(s.dir, EnvironFile), &env); err != nil {
		return err
	}
	stdin, err := s.openFiles()
	if err != nil {
		return err
	}
	becomeSubreaper()
	files := []uintptr{stdin.Fd(), s.stdout.Fd(), s.stderr.Fd()}
	if s.call.Sandbox {
		if s.report, err = os.Create(filepath.Join(s.dir, SandboxFile)); err != nil {
			return errors.Join(err, stdin.Close())
		}
		files = append(files, s.report.Fd())
		if err := errors.Join(limitResources(), hideSockets(s.call.Path)); err != nil {
			return errors.Join(err, stdin.Close())
		}
	}
	var inside *os.File // the sandbox's end of a socket
	if s.call.Network != nil {
		if inside, err = s.prepareNetwork(); err != nil {
			return errors.Join(err, stdin.Close())
		}
		files = append(files, inside.Fd())
	}
	s.agent, err = syscall.ForkExec(s.call.Path, s.call.Argv, &syscall.ProcAttr{
		Dir: s.call.Dir, Env: env, Files: files, Sys: agentAttributes(),
	})
	closed := stdin.Close()
	if inside != nil {
		closed = errors.Join(closed, inside.Close())
	}
	if err == nil {
		err = closed
	}
	return err
}

func spawnFailure(path string, err error) *spawnError {
	f := &spawnError{Path: path, Text: err.Error()}
	if errno, ok := err.(syscall.Errno); ok {
		f.Errno = errno
	}
	return f
}

// watch returns when the agent and its descendants are gone or cannot be killed.
func (s *supervision) watch(child, asked <-chan os.Signal) {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var timeout, grace <-chan time.Time
	if s.call.Timeout > 0 {
		timeout = time.After(s.call.Timeout)
	}
	for {
		s.reap()
		if s.reaped {
			break
		}
		if s.ending && grace == nil {
			grace = time.After(s.call.Grace)
		}
		select {
		case <-child:
		case <-asked:
			if s.terminate() {
				s.rec.Killed, s.rec.KillCause = true, s.cause()
			}
		case <-timeout:
			s.rec.TimedOut = s.terminate()
		case now := <-tick.C:
			s.checkOutput(now)
		case <-grace:
			s.signal(syscall.SIGKILL)
		}
	}
	s.endPasta()
	s.killRemaining(child)
}

// terminate starts ending the agent, once.
func (s *supervision) terminate() (first bool) {
	if s.ending {
		return false
	}
	s.ending = true
	s.signal(syscall.SIGTERM)
	return true
}

// signal signals the agent's group. The agent is not reaped, so the pid is not reused.
func (s *supervision) signal(sig syscall.Signal) {
	if s.call.Sandbox && s.signalSandbox(sig) {
		return
	}
	_ = syscall.Kill(-s.agent, sig) // ESRCH: the group is already gone
}

// cause returns why the call is ended.
func (s *supervision) cause() string {
	var r stopRecord
	if err := read(filepath.Join(s.dir, StopFile), &r); err != nil {
		return "the supervisor of the call was signalled"
	}
	return r.Cause
}

// reap collects ended processes.
func (s *supervision) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if pid != s.agent {
			s.pasta.CompareAndSwap(int64(pid), 0)
			continue
		}
		s.reaped = true
		s.rec.Code = status.ExitStatus() // -1 if ended by a signal
		if status.Signaled() {
			s.rec.Signal = status.Signal().String()
		}
		if s.call.Sandbox {
			s.readSandboxExit()
		}
	}
}

// killRemaining kills what the agent left running. Processes that survive the grace period are left: the answer still
// counts.
func (s *supervision) killRemaining(child <-chan os.Signal) {
	late := time.After(max(s.call.Grace, retryInterval))
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		left := s.killChildren()
		if left == 0 {
			return
		}
		select {
		case <-child:
		case <-again.C:
		case <-late:
			s.rec.Left = left
			return
		}
		s.reap()
	}
}

// roomFile reserves disk space for the exit record: the agent may fill the disk.
const (
	reserveFile = "room"
	reserveSize = 16 << 10
)

func (s *supervision) reserveSpace() {
	if os.WriteFile(filepath.Join(s.dir, reserveFile), make([]byte, reserveSize), 0o600) != nil {
		return // the disk is already full, which the agent reports
	}
}

// close stores the output and the exit record. On a full disk it retries: until then the call has not ended.
func (s *supervision) close(asked <-chan os.Signal) error {
	for {
		err := s.persist()
		if err == nil || os.Remove(filepath.Join(s.dir, reserveFile)) == nil && s.persist() == nil {
			return nil
		}
		if _, gone := os.Stat(filepath.Dir(filepath.Dir(s.dir))); gone != nil {
			return err
		}
		select {
		case <-asked:
			return err
		case <-time.After(retryInterval):
		}
	}
}

// persist writes the record even if the agent removed its directory or created something in the record's place.
func (s *supervision) persist() error {
	for _, dir := range []string{filepath.Dir(s.dir), s.dir} {
		if fi, err := os.Lstat(dir); err == nil && !fi.IsDir() {
			if err := os.Remove(dir); err != nil {
				return err
			}
		}
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := s.finishOutputs(); err != nil {
		return err
	}
	path := filepath.Join(s.dir, ExitFile)
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return writeRecord(path, s.rec)
}
