// Package awake keeps the machine from sleeping while calls run, with systemd-inhibit on Linux and caffeinate on macOS.
//
// One inhibitor runs for all calls of a worker. It ends when a pipe is closed that the worker and the supervisors of
// its calls hold open: a killed worker does not end it, because its calls continue, and without a worker it does not
// outlive them. An inhibitor that cannot run is a warning; no call fails.
package awake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// programs are the inhibitors by operating system. A command follows the arguments; the inhibitor ends with it.
var programs = map[string][]string{
	"linux": {
		"systemd-inhibit", "--what=idle:sleep", "--who=Passbook", "--why=A call of an agent is running", "--mode=block",
	},
	"darwin": {"caffeinate", "-i"},
}

// Program returns the name of this system's inhibitor; empty: there is none.
func Program() string {
	if argv := programs[runtime.GOOS]; argv != nil {
		return argv[0]
	}
	return ""
}

// Linger is how long the inhibitor stays after the last call, so that calls one after the other share one.
const Linger = 10 * time.Second

// retry is how long no inhibitor is started after one that could not run: a host without logind would start one in vain
// for each call.
const retry = time.Minute

// Inhibitor keeps the machine awake while it is held.
type Inhibitor struct {
	warn   func(error)
	linger time.Duration

	mu     sync.Mutex
	holds  int
	pipe   *os.File    // the write end; nil: no inhibitor was started
	ended  bool        // the inhibitor of pipe has
	idle   *time.Timer // ends the inhibitor; nil before the first release
	failed time.Time   // when the last one could not run
	warned bool
}

// New returns an inhibitor that stays for a time after the last call; see [Linger]. warn is called at most once, with
// the reason why the machine may sleep.
func New(warn func(error), linger time.Duration) *Inhibitor {
	return &Inhibitor{warn: warn, linger: linger}
}

// Hold keeps the machine awake until release is called and every process that inherited the file has ended. The file is
// nil if nothing keeps it awake, and valid until release.
func (i *Inhibitor) Hold() (file *os.File, release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.idle != nil {
		i.idle.Stop()
	}
	if i.holds++; i.holds == 1 && i.pipe == nil && time.Since(i.failed) > retry {
		if err := i.start(); err != nil {
			i.fail(err)
		}
	}
	return i.pipe, sync.OnceFunc(i.release)
}

func (i *Inhibitor) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.holds--
	if i.holds > 0 || i.pipe == nil {
		return
	}
	if i.ended {
		i.close()
		return
	}
	i.idle = time.AfterFunc(i.linger, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.holds == 0 && i.pipe != nil {
			i.close()
		}
	})
}

// close ends the inhibitor once no supervisor has the pipe open. The caller holds the lock.
func (i *Inhibitor) close() {
	if err := i.pipe.Close(); err != nil {
		i.report(err)
	}
	i.pipe = nil
}

// start starts the inhibitor. It ends at the end of its standard input. The caller holds the lock.
func (i *Inhibitor) start() error {
	cmd, err := command(context.Background(), "cat")
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	var output bytes.Buffer
	cmd.Stdin, cmd.Stderr = r, &output
	err = cmd.Start()
	if closed := r.Close(); err != nil {
		return errors.Join(err, closed, w.Close())
	}
	i.pipe, i.ended = w, false
	go func() {
		err := cmd.Wait()
		i.mu.Lock()
		defer i.mu.Unlock()
		if err == nil && i.pipe != w {
			return
		}
		i.fail(explain(err, output.String()))
		if i.pipe != w {
			return
		}
		if i.ended = true; i.holds == 0 {
			i.close()
		}
	}()
	return nil
}

// fail records that nothing keeps the machine awake. The caller holds the lock.
func (i *Inhibitor) fail(err error) {
	i.failed = time.Now()
	i.report(err)
}

// report passes the first error on. The caller holds the lock.
func (i *Inhibitor) report(err error) {
	if !i.warned {
		i.warned = true
		i.warn(err)
	}
}

// Probe returns why this machine cannot be kept awake.
func Probe(ctx context.Context) error {
	cmd, err := command(ctx, "true")
	if err != nil {
		return err
	}
	var output bytes.Buffer
	cmd.Stderr = &output
	if err := cmd.Run(); err != nil {
		return explain(err, output.String())
	}
	return nil
}

// command returns the inhibitor around a command, in its own process group: Ctrl+C in the worker's terminal leaves
// calls running.
func command(ctx context.Context, what string) (*exec.Cmd, error) {
	argv := programs[runtime.GOOS]
	if argv == nil {
		return nil, fmt.Errorf("no program that prevents sleep is known on %s", runtime.GOOS)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append(argv[1:len(argv):len(argv)], what)...)
	cmd.Dir = "/"
	for _, name := range []string{"PATH", "DBUS_SYSTEM_BUS_ADDRESS"} { // not the worker's secrets
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// explain adds the last line of standard error to why an inhibitor ended.
func explain(err error, stderr string) error {
	output := strings.TrimSpace(stderr)
	output = output[strings.LastIndexByte(output, '\n')+1:]
	switch {
	case err == nil:
		return fmt.Errorf("%s ended before the calls", Program())
	case output == "":
		return fmt.Errorf("%s: %w", Program(), err)
	}
	return fmt.Errorf("%s: %s (%w)", Program(), output, err)
}
