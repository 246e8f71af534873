package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/testenv"
)

// deadline is how long anything may take that should happen soon.
const deadline = 5 * time.Minute

// environment is one machine of a test: its state directory with server and worker, the agent's call log and its
// faults.
type environment struct {
	t      *testing.T
	root   string
	shared string // the state directory of all tests; empty: the test has its own
	bin    string // folder of the starter; empty: that of the tests
	log    string
	faults string
	env    []string
	mu     sync.Mutex
	met    map[int]process.Identity // servers and workers seen, to be ended
	stops  int                      // of the server
}

// newEnv returns an empty environment; extra are settings such as PASSBOOK_IDLE=2s. Its processes end with the test.
func newEnv(t *testing.T, extra ...string) *environment {
	t.Helper()
	h := newRoot(t, t.TempDir(), "")
	h.env = append(append(h.env, extra...), caching()...)
	return h
}

// sharedEnv returns an environment on the server and the worker that tests share. Its runs, settings, call log and
// faults are separate. It is not for tests that stop processes, configure the worker, or need a server without other
// runs.
func sharedEnv(t *testing.T, extra ...string) *environment {
	t.Helper()
	state, err := sharedServer()
	require.NoError(t, err)
	root, err := os.MkdirTemp(filepath.Dir(state), "test-")
	require.NoError(t, err)
	h := newRoot(t, root, state)
	h.env = append(h.env, extra...)
	return h
}

func newRoot(t *testing.T, root, shared string) *environment {
	t.Helper()
	h := &environment{t: t, root: root, shared: shared, log: filepath.Join(root, "calls.jsonl"),
		faults: filepath.Join(root, "faults.yaml"), met: map[int]process.Identity{}}
	h.spoil("[]\n")
	h.env = append(environ(h.state()), "PASSBOOK_SETTINGS="+h.settings(), "PASSBOOK_RUN_ROOT="+h.dir("runs"),
		scripted.CallLogEnv+"="+h.log, scripted.FaultsEnv+"="+h.faults)
	t.Cleanup(h.clear)
	return h
}

// environ is what all programs of a state directory get.
func environ(state string) []string {
	return append(testenv.CleanEnv(os.Environ()), "PASSBOOK_STATE_DIR="+state, "PASSBOOK_HEARTBEAT=3s",
		"PASSBOOK_BROWSER="+filepath.Join(programs, "browser"))
}

func (h *environment) state() string { return cmp.Or(h.shared, filepath.Join(h.root, "state")) }

// settings is an empty file, so that those of the developer do not count.
func (h *environment) settings() string {
	name := filepath.Join(h.root, "settings.yaml")
	require.NoError(h.t, os.WriteFile(name, []byte("{}\n"), 0o600))
	return name
}

// spoil sets the faults of the agent.
func (h *environment) spoil(faults string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.faults, []byte(faults), 0o600))
}

// dir is a run directory of that name.
func (h *environment) dir(name string) string { return filepath.Join(h.root, name) }

// command is a starter that has not begun.
func (h *environment) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(cmp.Or(h.bin, programs), "starter"), args...)
	cmd.Dir, cmd.Env = project, h.env
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// try runs the starter to its end.
func (h *environment) try(args ...string) (output string, code int) {
	h.t.Helper()
	if len(args) > 1 && args[0] == "server" && args[1] == "stop" {
		h.replayHistories()
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	out, err := h.command(ctx, args...).CombinedOutput()
	require.NoError(h.t, ctx.Err(), "starter %s does not end:\n%s", strings.Join(args, " "), out)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(h.t, err)
	}
	h.meet()
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}

// starter runs the starter and wants it to be fine.
func (h *environment) starter(args ...string) string {
	h.t.Helper()
	output, code := h.try(args...)
	require.Zero(h.t, code, "starter %s:\n%s", strings.Join(args, " "), output)
	return output
}

// attached is a starter that stays attached in the background.
type attached struct {
	h   *environment
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
	end chan struct{}
}

func (a *attached) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Write(p)
}

func (a *attached) output() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.String()
}

// attach starts the starter and leaves it at work.
func (h *environment) attach(args ...string) *attached {
	h.t.Helper()
	a := &attached{h: h, end: make(chan struct{})}
	a.cmd = h.command(h.t.Context(), args...)
	a.cmd.Stdout, a.cmd.Stderr = a, a
	require.NoError(h.t, a.cmd.Start())
	go func() {
		defer close(a.end)
		_ = a.cmd.Wait() // how it ended is asked for in wait
	}()
	return a
}

// wait returns the exit code.
func (a *attached) wait() int {
	a.h.t.Helper()
	select {
	case <-a.end:
	case <-time.After(deadline):
		require.FailNow(a.h.t, "the starter does not end", a.output())
	}
	a.h.meet()
	return a.cmd.ProcessState.ExitCode()
}

// interrupt is Ctrl+C.
func (a *attached) interrupt() {
	a.h.t.Helper()
	require.NoError(a.h.t, a.cmd.Process.Signal(syscall.SIGINT))
}

// running returns the processes of the environment. It reads their records: the starter would also ask the server.
func (h *environment) running() host.Status {
	h.t.Helper()
	dir := h.state()
	for _, v := range h.env { // a test of several hosts names another one
		if other, ok := strings.CutPrefix(v, "PASSBOOK_STATE_DIR="); ok {
			dir = other
		}
	}
	st, err := host.Read(dir)
	require.NoError(h.t, err)
	return st
}

// meet records running processes, so that they are ended even if the state directory loses them.
func (h *environment) meet() host.Status {
	st := h.running()
	h.mu.Lock()
	defer h.mu.Unlock()
	if st.Server != nil {
		h.met[st.Server.Process.PID] = st.Server.Process
	}
	if st.Worker != nil {
		h.met[st.Worker.Process.PID] = st.Worker.Process
	}
	if st.Keeper != nil {
		h.met[st.Keeper.Process.PID] = st.Keeper.Process
	}
	return st
}

// worker is the background worker, which must be there.
func (h *environment) worker() process.Identity {
	h.t.Helper()
	st := h.meet()
	require.NotNil(h.t, st.Worker, "no worker runs")
	return st.Worker.Process
}

// server is the embedded server, which must be there.
func (h *environment) server() process.Identity {
	h.t.Helper()
	st := h.meet()
	require.NotNil(h.t, st.Server, "no server runs")
	return st.Server.Process
}

// kill ends a process the hard way and waits until it is gone.
func (h *environment) kill(id process.Identity) {
	h.t.Helper()
	require.NoError(h.t, id.Signal(syscall.SIGKILL))
	ctx, cancel := context.WithTimeout(h.t.Context(), deadline)
	defer cancel()
	require.NoError(h.t, id.AwaitEnd(ctx))
}

// crash ends a worker and the supervisors of its calls, and the agents with them: what a machine that stops does to
// them.
func (h *environment) crash(worker process.Identity) {
	h.t.Helper()
	h.kill(worker)
	h.endSupervisors()
}

// endSupervisors kills the supervisors of all calls that run, and waits until they are gone.
func (h *environment) endSupervisors() {
	h.t.Helper()
	require.NoError(h.t, endSupervisors(filepath.Join(h.state(), "scratch")))
}

func endSupervisors(scratch string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	living, err := supervisor.Running(scratch)
	for _, r := range living {
		if gone := r.Process.Signal(syscall.SIGKILL); !errors.Is(gone, process.ErrGone) {
			err = errors.Join(err, gone)
		}
		err = errors.Join(err, r.Process.AwaitEnd(ctx))
	}
	return err
}

// signal sends a signal to a process.
func (h *environment) signal(id process.Identity, sig syscall.Signal) {
	h.t.Helper()
	require.NoError(h.t, id.Signal(sig))
}

// dial returns a client of the environment's server.
func (h *environment) dial() client.Client {
	h.t.Helper()
	st := h.running()
	require.NotNil(h.t, st.Server, "no server runs")
	c, err := dialServer(h.t.Context(), *st.Server)
	require.NoError(h.t, err)
	h.t.Cleanup(c.Close)
	return c
}

func dialServer(ctx context.Context, s host.Server) (client.Client, error) {
	trust, err := s.TLS(certs.CLI)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, client.Options{HostPort: s.Address, Namespace: s.Namespace,
		ConnectionOptions: client.ConnectionOptions{TLS: trust},
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}

// clear ends all processes of the environment, or of a shared one all runs. A frozen process is ended too: SIGKILL does
// not wait for SIGCONT.
func (h *environment) clear() {
	h.meet()
	h.replayHistories()
	if h.t.Failed() {
		h.logBackground()
	}
	if h.shared != "" {
		h.endRuns()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if _, err := host.Stop(ctx, h.state(), time.Millisecond); err != nil { // before what the keeper would restart
		h.t.Errorf("clean up: %v", err)
	}
	for _, id := range h.met {
		if !id.Alive() {
			continue
		}
		if err := id.KillGroup(); err != nil && !errors.Is(err, process.ErrGone) {
			h.t.Errorf("clean up: %v", err)
		}
		if err := id.AwaitEnd(ctx); err != nil {
			h.t.Errorf("clean up: %v", err)
		}
	}
	if err := endSupervisors(filepath.Join(h.state(), "scratch")); err != nil {
		h.t.Errorf("clean up: %v", err)
	}
	endAgents(h.t, h.calls())
}

// logBackground logs the output of background processes.
func (h *environment) logBackground() {
	for _, name := range []string{"worker/worker.log", "server/server.log", "keeper/keeper.log"} {
		raw, err := os.ReadFile(filepath.Join(h.state(), name))
		if err != nil {
			continue
		}
		h.t.Logf("%s:\n%s", name, raw[max(0, len(raw)-4000):])
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(deadline)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			require.FailNow(t, "waited in vain until "+what)
		}
	}
}
