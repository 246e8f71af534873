package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/process"
)

// every is how often the sizes of the outputs are compared with their bounds.
const every = time.Second

// Main is the process: it supervises the delivery in the directory that is its only argument. Its standard input is the pipe.
func Main(args []string) int {
	if len(args) != 1 || !filepath.IsAbs(args[0]) {
		fmt.Fprintf(os.Stderr, "usage: %s DIRECTORY\nThe supervisor of one call. A worker starts it; see docs/architecture.md.\n", Program)
		return 2
	}
	child, asked := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(child, syscall.SIGCHLD)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // one that comes before the agent has begun ends it then
	runtime.LockOSThread()                                                // the parent-death signal of the agent is sent when the thread that forked it ends
	if !claimed() {
		return 0
	}
	s := supervision{dir: args[0]}
	if err := s.run(child, asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// claimed waits for the byte that lets the agent start. The end of the pipe says that nothing was claimed, or that the worker is gone.
func claimed() bool {
	var b [1]byte
	for {
		n, err := syscall.Read(0, b[:])
		if err == syscall.EINTR {
			continue
		}
		return err == nil && n == 1
	}
}

// supervision is a call under way.
type supervision struct {
	dir     string
	call    Call
	agent   int // its pid, and the number of its group
	begun   time.Time
	reaped  bool
	ending  bool
	printed int64     // bytes of output when last looked at
	moved   time.Time // when that number changed last
	rec     exitRecord
}

// run starts the agent and returns when its end is recorded.
func (s *supervision) run(child, asked <-chan os.Signal) error {
	if err := read(filepath.Join(s.dir, CallFile), &s.call); err != nil {
		return err
	}
	s.rec.Version, s.rec.Delivery = Version, s.dir
	s.begun = time.Now()
	s.rec.Started, s.moved = s.begun.UTC(), s.begun
	if err := s.record(); err != nil {
		return err
	}
	s.keepRoom()
	if err := s.start(); err != nil {
		s.rec.Code = -1
		s.rec.Spawn = spawnFailure(s.call.Path, err)
		return s.close(asked)
	}
	s.watch(child, asked)
	s.rec.Duration = time.Since(s.begun)
	return s.close(asked)
}

// record names this process, so that the next worker finds it, and joins the call or ends what is left of it.
func (s *supervision) record() error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	r := Record{Version: Version, Process: self, Delivery: s.dir}
	if s.call.Timeout > 0 {
		r.Deadline = s.begun.Add(s.call.Timeout).UTC()
	}
	return note(filepath.Join(s.dir, RecordFile), r)
}

func (s *supervision) start() error {
	var env []string
	if err := read(filepath.Join(s.dir, EnvironFile), &env); err != nil {
		return err
	}
	adopt()
	var files []uintptr
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			if f.Close() != nil {
				continue // this process has written nothing to it
			}
		}
	}()
	for _, f := range []struct {
		path string
		flag int
	}{{s.call.Stdin, os.O_RDONLY}, {s.call.Stdout, os.O_WRONLY | os.O_APPEND}, {s.call.Stderr, os.O_WRONLY | os.O_APPEND}} {
		file, err := os.OpenFile(f.path, f.flag, 0)
		if err != nil {
			return err
		}
		opened, files = append(opened, file), append(files, file.Fd())
	}
	var err error
	s.agent, err = syscall.ForkExec(s.call.Path, s.call.Argv, &syscall.ProcAttr{Dir: s.call.Dir, Env: env, Files: files, Sys: attributes()})
	return err
}

func spawnFailure(path string, err error) *spawnError {
	f := &spawnError{Path: path, Text: err.Error()}
	if errno, ok := err.(syscall.Errno); ok {
		f.Errno = errno
	}
	return f
}

// watch returns when the agent and what it had started are gone, or cannot be ended.
func (s *supervision) watch(child, asked <-chan os.Signal) {
	tick := time.NewTicker(every)
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
			if s.end() {
				s.rec.Killed, s.rec.KillCause = true, s.cause()
			}
		case <-timeout:
			s.rec.TimedOut = s.end()
		case now := <-tick.C:
			s.measure(now)
		case <-grace:
			s.signal(syscall.SIGKILL)
		}
	}
	s.clear(child)
}

// end begins the end of the agent, once.
func (s *supervision) end() (first bool) {
	if s.ending {
		return false
	}
	s.ending = true
	s.signal(syscall.SIGTERM)
	return true
}

// signal reaches the agent's group. The agent is not reaped, so the number is not a stranger's.
func (s *supervision) signal(sig syscall.Signal) {
	_ = syscall.Kill(-s.agent, sig) // ESRCH: the group is gone, which is what was wanted
}

// cause is why the call is ended.
func (s *supervision) cause() string {
	var r stopRecord
	if err := read(filepath.Join(s.dir, StopFile), &r); err != nil {
		return "the supervisor of the call was signalled"
	}
	return r.Cause
}

// measure ends an agent that has printed too much of an answer, or nothing for too long. Error output beyond the bound is only cut off.
func (s *supervision) measure(now time.Time) {
	if s.call.Output <= 0 && s.call.Idle <= 0 {
		return
	}
	out, complaints := size(s.call.Stdout), size(s.call.Stderr)
	if out+complaints != s.printed {
		s.printed, s.moved = out+complaints, now
	}
	if s.call.Output > 0 && complaints > s.call.Output && s.settle(s.call.Stderr) == nil { // otherwise at the next tick, or at the end
		s.printed = out + s.call.Output
	}
	switch {
	case s.call.Output > 0 && out > s.call.Output:
		s.end()
	case s.call.Idle > 0 && now.Sub(s.moved) >= s.call.Idle:
		if s.end() {
			s.rec.TimedOut, s.rec.Idle = true, true
		}
	}
}

// size of a file, without following a symlink; 0: there is none.
func size(path string) int64 {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return 0
	}
	return fi.Size()
}

// reap collects what has ended.
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
			continue
		}
		s.reaped = true
		s.rec.Code = status.ExitStatus() // -1 where a signal ended it
		if status.Signaled() {
			s.rec.Signal = status.Signal().String()
		}
	}
}

// clear ends what the agent has left behind. What cannot be ended within the grace is left: the answer counts all the same.
func (s *supervision) clear(child <-chan os.Signal) {
	late := time.After(max(s.call.Grace, every))
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		left := s.endLeft()
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

// roomFile holds space on the disk for the record of the end: the agent may fill the disk.
const (
	roomFile = "room"
	roomSize = 16 << 10
)

func (s *supervision) keepRoom() {
	if os.WriteFile(filepath.Join(s.dir, roomFile), make([]byte, roomSize), 0o600) != nil {
		return // the disk is full already, which the agent will say
	}
}

// close puts the output and the record of the end on disk. A disk that is full may have room again: until then the call has not ended.
func (s *supervision) close(asked <-chan os.Signal) error {
	for {
		err := s.persist()
		if err == nil || os.Remove(filepath.Join(s.dir, roomFile)) == nil && s.persist() == nil {
			return nil
		}
		if _, gone := os.Stat(filepath.Dir(filepath.Dir(s.dir))); gone != nil {
			return err
		}
		select {
		case <-asked:
			return err
		case <-time.After(every):
		}
	}
}

// persist writes the record also where the agent has removed its directory, or put something in the record's place. Nothing of it is left to do that
// again.
func (s *supervision) persist() error {
	for _, dir := range []string{filepath.Dir(s.dir), s.dir} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	s.rec.Overflow = s.rec.Overflow || s.call.Output > 0 && size(s.call.Stdout) > s.call.Output
	for _, path := range []string{s.call.Stdout, s.call.Stderr} {
		if err := s.settle(path); err != nil {
			return err
		}
	}
	path := filepath.Join(s.dir, ExitFile)
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return write(path, s.rec)
}

// settle cuts an output at its bound and syncs it. What the agent has put in its place is left to whoever reads it.
func (s *supervision) settle(path string) (err error) {
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if fi, err := f.Stat(); err == nil && s.call.Output > 0 && fi.Size() > s.call.Output {
		if err := f.Truncate(s.call.Output); err != nil {
			return err
		}
	}
	return f.Sync()
}
