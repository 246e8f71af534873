// Package awake keeps the machine from sleeping while calls run, with systemd-inhibit on Linux and caffeinate on macOS.
//
// One inhibitor runs for all calls of a worker. It ends when a pipe is closed that the worker and the supervisors of
// its calls hold open: a killed worker does not end it, because its calls continue, and it never outlives them. An
// inhibitor that cannot run is a warning; no call fails.
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

// Inhibitor keeps the machine awake while it is held.
type Inhibitor struct {
	warn func(error)

	mu     sync.Mutex
	holds  int
	pipe   *os.File // the write end; nil: no inhibitor was started
	warned bool
}

// New returns an inhibitor. warn is called at most once, with the reason why the machine may sleep.
func New(warn func(error)) *Inhibitor { return &Inhibitor{warn: warn} }

// Hold keeps the machine awake until release is called and every process that inherited the file has ended. The file is
// nil if nothing keeps it awake, and valid until release.
func (i *Inhibitor) Hold() (file *os.File, release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.holds++; i.holds == 1 {
		i.start()
	}
	return i.pipe, sync.OnceFunc(i.release)
}

func (i *Inhibitor) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.holds--; i.holds > 0 || i.pipe == nil {
		return
	}
	if err := i.pipe.Close(); err != nil {
		i.report(err)
	}
	i.pipe = nil
}

// start starts the inhibitor. It ends at the end of its standard input. The caller holds the lock.
func (i *Inhibitor) start() {
	cmd, err := command(context.Background(), "cat")
	if err != nil {
		i.report(err)
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		i.report(err)
		return
	}
	var output bytes.Buffer
	cmd.Stdin, cmd.Stderr = r, &output
	err = cmd.Start()
	if closed := r.Close(); err != nil {
		i.report(errors.Join(err, closed, w.Close()))
		return
	}
	i.pipe = w
	go func() {
		err := cmd.Wait()
		i.mu.Lock()
		defer i.mu.Unlock()
		if err != nil || i.pipe == w {
			i.report(explain(err, output.String()))
		}
	}()
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
