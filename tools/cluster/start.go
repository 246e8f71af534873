package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// readyTimeout bounds the time until a process is ready.
const readyTimeout = 2 * time.Minute

// start starts what does not run, in order, and returns when all is ready.
func start(ctx context.Context, s settings) error {
	processes, err := plan(ctx, s)
	if err != nil {
		return err
	}
	if err := prepare(ctx, s, processes); err != nil {
		return err
	}
	h := launcher{settings: s}
	if h.running, err = s.records(); err != nil {
		return err
	}
	for _, p := range processes {
		if err := h.bring(ctx, p); err != nil {
			return fmt.Errorf("%w\nstarted processes keep running; `make cluster-stop` ends them", err)
		}
	}
	env := s.passbook()
	fmt.Printf("The cluster runs: TEMPORAL_ADDRESS=%s, Web UI http://%s:%d, everything in %s\n", s.address(), loopback,
		8233+s.Offset, s.Dir)
	fmt.Printf("Start your own runs with: TEMPORAL_ADDRESS=%s PASSBOOK_STATE_DIR=%s bin/starter run ...\n", s.address(),
		env["PASSBOOK_STATE_DIR"])
	return nil
}

// launcher starts processes and keeps the record of them.
type launcher struct {
	settings
	running []record
}

// bring waits until the process is done, or ready. A running process stays.
func (h *launcher) bring(ctx context.Context, p process) error {
	if slices.ContainsFunc(h.running, func(r record) bool { return r.Name == p.Name && r.alive() }) {
		fmt.Printf("  %-10s already runs\n", p.Name)
		return nil
	}
	if p.Ready.set() && h.ready(ctx, p) {
		return fmt.Errorf("start %s: another process answers on its port; choose other ports with "+
			"CLUSTER_PORT_OFFSET", p.Name)
	}
	began := time.Now()
	cmd, err := h.command(p)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if !p.Once {
		if err := h.note(p.Name, cmd.Process.Pid); err != nil {
			return errors.Join(err, cmd.Process.Kill())
		}
	}
	if err := h.await(ctx, p, ended); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.Name, err, h.lastWords(p.Name))
	}
	fmt.Printf("  %-10s %s after %s\n", p.Name, map[bool]string{true: "done", false: "ready"}[p.Once],
		time.Since(began).Round(100*time.Millisecond))
	return nil
}

func (h *launcher) command(p process) (*exec.Cmd, error) {
	log, err := os.OpenFile(h.logFile(p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Env = environment(p.Env)
	cmd.Dir = h.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // independent of this terminal
	if p.Argv[0] == "postgres" {
		err = asOwner(cmd)
	}
	return cmd, err
}

// environment is that of this process with more variables, and without those that would redirect worker and server.
func environment(more map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "TEMPORAL_") || strings.HasPrefix(e, "PASSBOOK_")
	})
	for name, value := range more {
		env = append(env, name+"="+value)
	}
	return env
}

func (h *launcher) logFile(name string) string { return filepath.Join(h.Dir, "log", name+".log") }

// note records a started process; an earlier process with its name has ended.
func (h *launcher) note(name string, pid int) error {
	started, _ := identify(pid)
	h.running = slices.DeleteFunc(h.running, func(r record) bool { return r.Name == name })
	h.running = append(h.running, record{Name: name, PID: pid, Started: started})
	return h.keep(h.running)
}

// await returns when the process is done, or ready.
func (h *launcher) await(ctx context.Context, p process, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if p.Once && err == nil {
				return nil
			}
			return fmt.Errorf("it ended: %v", err)
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w", ctx.Err())
		case <-tick.C:
			if !p.Once && h.ready(ctx, p) {
				return nil
			}
		}
	}
}

func (h *launcher) ready(ctx context.Context, p process) bool {
	switch {
	case p.Ready.Command != nil:
		cmd := exec.CommandContext(ctx, p.Ready.Command[0], p.Ready.Command[1:]...)
		cmd.Env = environment(p.Env)
		return cmd.Run() == nil
	case p.Ready.Dial != "":
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", p.Ready.Dial)
		if err != nil {
			return false
		}
		return c.Close() == nil
	default:
		return true
	}
}

// lastWords returns the end of a process's log.
func (h *launcher) lastWords(name string) string {
	log, err := os.ReadFile(h.logFile(name))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n") + "\nfull log: " + h.logFile(name)
}
