package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// program is one to run in the background.
type program struct {
	exec string
	args []string
	env  []string // nil: that of this process
	dir  string
	log  string
}

// daemon is a process that this process started and that does not depend on it: it has its own session, a log file
// and no terminal.
type daemon struct {
	id     process.Identity
	log    string
	offset int64 // start of its part of the log
	exited chan struct{}
	err    error // its exit; valid when exited is closed
}

func launch(s program) (started *daemon, err error) {
	if err := (disk.Disk{}).Mkdir(filepath.Dir(s.log), 0o700); err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	at, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open its log: %w", err)
	}
	cmd := exec.Command(s.exec, s.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, unmarked(s.env), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{log: s.log, offset: at, exited: make(chan struct{})}
	// It is not reaped before it is identified, so even if it ends at once its pid is not reused.
	d.id, err = process.Of(cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	go func() {
		d.err = cmd.Wait()
		close(d.exited)
	}()
	return d, nil
}

// unmarked removes the mark of a call from an environment, by default that of this process. What an agent starts
// through Passbook outlives the call; supervisors recognize it by another mark.
func unmarked(env []string) []string {
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env),
		func(pair string) bool { return strings.HasPrefix(pair, agent.MarkEnv+"=") })
	return append(env, supervisor.DaemonEnv+"=1")
}

// output returns what it has written so far.
func (d *daemon) output() ([]byte, error) {
	f, err := os.Open(d.log)
	if err != nil {
		return nil, err
	}
	defer disk.Close(f)
	const most = 1 << 20
	return io.ReadAll(io.NewSectionReader(f, d.offset, most))
}

// explain adds to a failed start what an operator needs. A process that is not ready in time is ended; if the starter
// was interrupted, it keeps starting.
func (d *daemon) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w; it keeps starting (pid %d, log %s)", err, d.id.PID, d.log)
	}
	if d.id.Alive() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(fmt.Errorf("%w; it was stopped; see %s", err, d.log), end(stop, d.id, 10*time.Second))
	}
	<-d.exited
	text, err := d.output()
	if err != nil {
		return fmt.Errorf("it ended (%w), and its output cannot be read: %w", d.how(), err)
	}
	if last := lastLine(text); last != "" {
		return fmt.Errorf("it ended (%w): %s; see %s", d.how(), last, d.log)
	}
	return fmt.Errorf("it ended (%w) without output; see %s", d.how(), d.log)
}

// how returns how the process ended, as an error even for exit status 0.
func (d *daemon) how() error {
	if d.err == nil {
		return errors.New("exit status 0")
	}
	return d.err
}

func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}

// errEnded ends a wait: the process has ended.
var errEnded = errors.New("it ended before it was ready")

// await calls check until it succeeds, the process ends, or time is up. A nil daemon is the process of another
// starter.
func (d *daemon) await(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready after %s", timeout))
	defer cancel()
	var exited chan struct{}
	if d != nil {
		exited = d.exited
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	for {
		err := once(ctx, check)
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		if ctx.Err() == nil {
			last = err // an error after the deadline is only the deadline's
		}
		select {
		case <-exited:
			return errEnded
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

// once calls check with a short timeout, because a client that retries would hide that the process ended.
func once(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check(ctx)
}

// end stops a process with SIGTERM, and after the grace its whole group with SIGKILL. A process that has ended is no
// error.
func end(ctx context.Context, id process.Identity, grace time.Duration) error {
	if err := id.Signal(syscall.SIGTERM); err != nil {
		return unlessGone(err)
	}
	patient, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if id.AwaitEnd(patient) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("process %d still runs after SIGKILL: %w", id.PID, context.Cause(ctx))
	}
	if err := id.KillGroup(); err != nil {
		return unlessGone(err)
	}
	return id.AwaitEnd(ctx)
}

func unlessGone(err error) error {
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	return err
}
