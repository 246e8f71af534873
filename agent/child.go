package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/process"
)

// Exit says how a child ended.
type Exit struct {
	Code      int           `json:"code"`             // -1 when a signal ended it
	Signal    string        `json:"signal,omitempty"` // "killed"
	Started   time.Time     `json:"started"`
	Duration  time.Duration `json:"duration"` // monotonic: changes of the wall clock do not count
	TimedOut  bool          `json:"timed_out,omitempty"`
	Killed    bool          `json:"killed,omitempty"` // by Kill
	KillCause string        `json:"kill_cause,omitempty"`
}

// Child is a running agent. It belongs to this process, not to any context.
type Child struct {
	id      process.Identity
	mark    string
	timeout time.Duration
	grace   time.Duration
	kill    chan string   // cause; the first counts
	ended   chan struct{} // closed when the leader has exited
	done    chan struct{} // closed when nothing of the group is left and exit is set
	exit    Exit
}

// Start starts the process in its own group. An error means that nothing runs; SpawnFailure classifies it.
func Start(c Command) (*Child, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	cmd, files, err := c.open()
	if err != nil {
		return nil, err
	}
	child := &Child{mark: c.Mark, timeout: c.Timeout, grace: c.Grace, kill: make(chan string, 1), ended: make(chan struct{}), done: make(chan struct{})}
	if child.grace <= 0 {
		child.grace = DefaultGrace
	}
	started := make(chan error)
	go child.live(cmd, started)
	err = <-started
	if closed := closeAll(files); err != nil { // a child that runs has files of its own: nothing was written through these
		return nil, fmt.Errorf("start agent %s: %w", c.Argv[0], errors.Join(err, closed))
	}
	return child, nil
}

// live starts the process and stays on one OS thread until it is gone: the parent-death signal is sent when the *thread* that forked ends.
func (c *Child) live(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun := time.Now()
	if err := c.launch(cmd); err != nil {
		started <- err
		return
	}
	c.exit.Started = begun.UTC()
	started <- nil
	guarded := make(chan struct{})
	go func() { defer close(guarded); c.guard() }()
	err := await(cmd, func() {
		close(c.ended)
		<-guarded
		c.signal(syscall.SIGKILL) // whatever the agent started and left behind
	})
	c.endMarked()
	c.exit.Duration = time.Since(begun)
	c.settle(cmd, err)
	close(c.done)
}

// launch starts the process and notes who it is; a process that cannot be named is not kept, as nobody could find it after a crash.
func (c *Child) launch(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	var err error
	if c.id, err = process.Of(cmd.Process.Pid); err != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if gone := cmd.Wait(); !errors.As(gone, new(*exec.ExitError)) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// guard ends the group on a kill or at the timeout: SIGTERM, and SIGKILL after the grace.
func (c *Child) guard() {
	var timeout <-chan time.Time
	if c.timeout > 0 {
		timer := time.NewTimer(c.timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-c.ended:
		return
	case c.exit.KillCause = <-c.kill:
		c.exit.Killed = true
	case <-timeout:
		c.exit.TimedOut = true
	}
	c.signal(syscall.SIGTERM)
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-c.ended:
	case <-grace.C:
		c.signal(syscall.SIGKILL)
	}
}

// signal reaches the whole group. It is only called while the leader is not reaped, so the group's number cannot be a stranger's.
func (c *Child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.id.PID, s) // ESRCH: the group is gone, which is what was wanted
}

// endMarked ends what the agent started and what has left its group. What cannot be ended within the grace is left: the answer counts all the same.
func (c *Child) endMarked() {
	if c.mark == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.grace)
	defer cancel()
	if err := process.EndCarrying(ctx, MarkEnv, c.mark); err != nil {
		return
	}
}

func (c *Child) settle(cmd *exec.Cmd, err error) {
	c.exit.Code = cmd.ProcessState.ExitCode()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		c.exit.Signal = status.Signal().String()
	}
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		c.exit.Code, c.exit.Signal = -1, "unknown: "+err.Error()
	}
}

// Kill asks for the end of the child's group: SIGTERM now, SIGKILL after the grace. It does not wait; a later cause is ignored.
func (c *Child) Kill(cause string) {
	select {
	case c.kill <- cause:
	default:
	}
}

// Done is closed when the child and its group are gone.
func (c *Child) Done() <-chan struct{} { return c.done }

// Result waits for Done and says how the child ended.
func (c *Child) Result() Exit {
	<-c.done
	return c.exit
}

// Identity names the leader of the group: it is found again by it after a crash.
func (c *Child) Identity() process.Identity { return c.id }
