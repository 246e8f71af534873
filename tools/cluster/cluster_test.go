package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ports are the numbers in a process's command and environment that can be ports.
func ports(p process) []string {
	text := ""
	for _, a := range p.Argv {
		text += " " + a
	}
	for _, v := range p.Env {
		text += " " + v
	}
	return regexp.MustCompile(`\b[0-9]{4,5}\b`).FindAllString(text+" "+p.Ready.Dial, -1)
}

// newLauncher returns the launcher of an empty cluster.
func newLauncher(t *testing.T) *launcher {
	t.Helper()
	h := &launcher{settings: settings{Root: checkout(t), Dir: t.TempDir(), Offset: 10000, Workers: 1}}
	require.NoError(t, os.Mkdir(filepath.Join(h.Dir, "log"), 0o700))
	t.Cleanup(func() {
		for _, r := range h.running {
			if r.alive() {
				_ = syscall.Kill(-r.PID, syscall.SIGKILL) // with what it has started
			}
		}
	})
	return h
}

func TestProcessIsStartedOnce(t *testing.T) {
	h := newLauncher(t)
	p := process{Name: "sleeper", Argv: []string{"sleep", "600"}}
	require.NoError(t, h.bring(t.Context(), p))
	require.NoError(t, h.bring(t.Context(), p))
	all, err := h.records()
	require.NoError(t, err)
	require.Equal(t, h.running, all)
	require.Len(t, all, 1)
	require.True(t, all[0].alive())

	require.NoError(t, all[0].signal(syscall.SIGKILL))
	require.True(t, gone(t.Context(), all[0], time.Minute))
	require.NoError(t, h.bring(t.Context(), p), "one that was killed is started again")
	again, err := h.records()
	require.NoError(t, err)
	require.Len(t, again, 1)
	require.NotEqual(t, all, again)
}

func TestJobIsNotRecorded(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "example.org:7233") // settings of the terminal are not inherited
	t.Setenv("PASSBOOK_STORE", "s3://bucket")
	t.Setenv("LANG", "C.UTF-8")
	h := newLauncher(t)
	require.NoError(t, h.bring(t.Context(), process{
		Name: "job", Once: true, Argv: []string{"sh", "-c", `echo "$TEMPORAL_ADDRESS|$PASSBOOK_STORE|$LANG" >said`},
		Env: map[string]string{"TEMPORAL_ADDRESS": "here:1"},
	}))
	output, err := os.ReadFile(filepath.Join(h.Dir, "said"))
	require.NoError(t, err)
	require.Equal(t, "here:1||C.UTF-8\n", string(output))
	require.Empty(t, h.running)
}

func TestEarlyExitReportsOutput(t *testing.T) {
	for _, p := range []process{{Once: true}, {Ready: probe{Command: []string{"false"}}}} {
		p.Name, p.Argv = "x", []string{"sh", "-c", "echo no such host; exit 3"}
		err := newLauncher(t).bring(t.Context(), p)
		require.ErrorContains(t, err, "x: it ended: exit status 3")
		require.ErrorContains(t, err, "no such host")
	}
}

// Another process on the port of a server is refused, because later jobs would use it.
func TestReadyProcessAnswersItsProbe(t *testing.T) {
	h := newLauncher(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := process{Name: "server", Argv: []string{"sleep", "600"}, Ready: probe{Dial: l.Addr().String()}}
	require.True(t, h.ready(t.Context(), p))
	require.ErrorContains(t, h.bring(t.Context(), p), "start server: another process answers on its port")
	require.Empty(t, h.running)
	require.NoError(t, l.Close())
	require.False(t, h.ready(t.Context(), p))
	p = process{Ready: probe{Command: []string{"sh", "-c", "test $IS = so"}}, Env: map[string]string{"IS": "so"}}
	require.True(t, h.ready(t.Context(), p))
	p.Env = nil
	require.False(t, h.ready(t.Context(), p))
}

func TestStopEndsOnlyRecordedProcesses(t *testing.T) {
	h := newLauncher(t)
	require.NoError(t, h.bring(t.Context(), process{Name: "first", Argv: []string{"sleep", "600"}}))
	require.NoError(t, h.bring(t.Context(), process{Name: "second", Argv: []string{"sleep", "600"}}))
	unrelated := exec.Command("sleep", "600")
	require.NoError(t, unrelated.Start())
	t.Cleanup(func() { _ = unrelated.Process.Kill(); _ = unrelated.Wait() })
	started, ok := identify(unrelated.Process.Pid)
	require.True(t, ok)
	require.NoError(t, h.keep(append(h.running, record{Name: "third", PID: unrelated.Process.Pid,
		Started: started + "0"})))

	require.NoError(t, stopAll(t.Context(), h.settings))
	require.False(t, h.running[0].alive())
	require.False(t, h.running[1].alive())
	require.True(t, record{PID: unrelated.Process.Pid, Started: started}.alive(),
		"a process that only has the number of one that ended")
	all, err := h.records()
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoError(t, stopAll(t.Context(), h.settings), "a second time there is nothing to do")
}

func TestProcessIsKilledAfterGracePeriod(t *testing.T) {
	h := newLauncher(t)
	stubborn := process{
		Name: "stubborn", Argv: []string{"sh", "-c", "trap '' TERM; touch stubborn; while :; do sleep 1; done"},
		Ready: probe{Command: []string{"test", "-e", filepath.Join(h.Dir, "stubborn")}},
	}
	require.NoError(t, h.bring(t.Context(), stubborn))
	require.NoError(t, end(t.Context(), h.running[0], 200*time.Millisecond))
	require.False(t, h.running[0].alive())
}

func TestBusyWorkerHasChild(t *testing.T) {
	h := newLauncher(t)
	ready := probe{Command: []string{"test", "-e", filepath.Join(h.Dir, "begun")}}
	require.NoError(t, h.bring(t.Context(), process{Name: "busy",
		Argv: []string{"sh", "-c", "sleep 60 & touch begun; wait"}, Ready: ready}))
	require.NoError(t, h.bring(t.Context(), process{Name: "idle", Argv: []string{"sleep", "600"}}))
	require.True(t, hasChild(h.running[0].PID))
	require.False(t, hasChild(h.running[1].PID))
}

func TestSettings(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("CLUSTER_DIR", "/data/cluster")
	t.Setenv("CLUSTER_WORKERS", "5")
	t.Setenv("CLUSTER_PORT_OFFSET", "")
	s, err := fromEnvironment()
	require.NoError(t, err)
	require.Equal(t, "/data/cluster", s.Dir)
	require.Equal(t, 5, s.Workers)
	require.Equal(t, 10000, s.Offset)
	t.Setenv("CLUSTER_WORKERS", "0")
	t.Setenv("CLUSTER_PORT_OFFSET", "70000")
	_, err = fromEnvironment()
	require.ErrorContains(t, err, `CLUSTER_WORKERS is "0"; write a whole number from 1 to 64`)
	require.ErrorContains(t, err, `CLUSTER_PORT_OFFSET is "70000"; write a whole number from 0 to 50000`)
}
