package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

const withKeeper = "PASSBOOK_KEEPER=true"

// back waits for a process that replaces the one that was killed, and returns it.
func (h *environment) back(what string, killed process.Identity,
	get func(host.Status) (process.Identity, bool)) process.Identity {
	h.t.Helper()
	var now process.Identity
	begun := time.Now()
	until(h.t, what+" is restarted", func() bool {
		id, runs := get(h.meet())
		now = id
		return runs && id != killed
	})
	h.t.Logf("%s is back after %s", what, time.Since(begun).Round(10*time.Millisecond))
	return now
}

func workerOf(st host.Status) (process.Identity, bool) {
	if st.Worker == nil {
		return process.Identity{}, false
	}
	return st.Worker.Process, true
}

func serverOf(st host.Status) (process.Identity, bool) {
	if st.Server == nil {
		return process.Identity{}, false
	}
	return st.Server.Process, true
}

func keeperOf(st host.Status) (process.Identity, bool) {
	if st.Keeper == nil {
		return process.Identity{}, false
	}
	return st.Keeper.Process, true
}

// TestKeeperKeepsADetachedRunAlive kills worker, server and keeper of a detached run. After it, all of them
// stop, and nothing restarts them.
func TestKeeperKeepsADetachedRunAlive(t *testing.T) {
	t.Parallel()
	h := newEnv(t, withKeeper, "PASSBOOK_IDLE=2s")
	dir := h.dir("run")
	h.spoil(slow("2", "6") + slow("3", "20"))
	h.begin(dir)
	h.mid("002")
	worker, server := h.worker(), h.server()
	keeper, runs := keeperOf(h.meet())
	require.True(t, runs, "no keeper runs")

	h.kill(worker)
	worker = h.back("the worker", worker, workerOf)
	h.mid("003")
	h.kill(keeper)
	keeper = h.back("the keeper", keeper, keeperOf)
	h.kill(server)
	server = h.back("the server", server, serverOf)
	until(t, "the restart is reported", func() bool {
		k := h.running().Keeper
		return k != nil && k.Server.Total == 1
	})
	h.kill(h.worker())
	worker = h.back("the worker", worker, workerOf)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })

	until(t, "all of it stops", func() bool { return !worker.Alive() && !server.Alive() && !keeper.Alive() })
	st := h.running()
	require.Equal(t, host.Status{}, st)
}

// TestKeeperOfAnotherBuild replaces the programs under a running keeper, first by another build, then by one that does
// not start.
func TestKeeperOfAnotherBuild(t *testing.T) {
	t.Parallel()
	h := newEnv(t, withKeeper)
	program := filepath.Join(h.root, "starter")
	install := func(from string) {
		raw, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(program+".new", raw, 0o755))
		require.NoError(t, os.Rename(program+".new", program))
	}
	starter := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir, cmd.Env = project, h.env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		h.meet()
		return string(out)
	}
	install(filepath.Join(programs, "starter"))

	both := []*attached{h.attach("server", "start"), h.attach("server", "start")} // at once
	for _, a := range both {
		require.Zero(t, a.wait(), a.output())
		require.Contains(t, a.output(), "Keeper    pid ")
	}
	first := h.meet()
	starter("server", "start") // another build: a copy has another time
	second := h.meet()
	require.NotEqual(t, first.Keeper.Process, second.Keeper.Process)
	require.NotEqual(t, first.Worker.Process, second.Worker.Process)
	require.Equal(t, first.Server.Process, second.Server.Process)
	require.False(t, first.Keeper.Process.Alive())

	install(filepath.Join(programs, "starter")) // no process runs it yet
	h.kill(second.Worker.Process)
	worker := h.back("the worker", second.Worker.Process, workerOf)
	require.Equal(t, second.Keeper.Process, h.meet().Keeper.Process)

	broken := filepath.Join(h.root, "broken")
	require.NoError(t, os.WriteFile(broken, []byte("#!/bin/sh\necho of another system >&2\nexit 1\n"), 0o755))
	install(broken)
	h.kill(worker)
	failed := regexp.MustCompile(`worker restart [2-9] failed at .*(?s:.*)of another system`)
	until(t, "the failed restart is reported", func() bool { return failed.MatchString(h.starter("server", "status")) })

	stopped := h.meet()
	h.starter("server", "stop")
	require.False(t, stopped.Keeper.Process.Alive())
	require.Equal(t, host.Status{}, h.running())
}

// TestRunWithoutAWorker: status, list and watch report that no worker polls, until one is back.
func TestRunWithoutAWorker(t *testing.T) {
	t.Parallel()
	h := newEnv(t) // no keeper
	dir := h.dir("run")
	h.spoil(slow("2", "600"))
	h.begin(dir)
	h.mid("002")
	require.Nil(t, h.status(dir).EffectiveStatus.NoWorker)
	h.crash(h.worker()) // and its call, which would take ten minutes

	var none *run.NoWorker
	until(t, "status names the queues", func() bool { none = h.status(dir).EffectiveStatus.NoWorker; return none != nil })
	require.Len(t, none.Queues, 1)
	require.Contains(t, none.Queues[0], "passbook-dir-")
	require.Contains(t, h.starter("status", dir), "running (waits for a worker)")
	require.Contains(t, h.starter("list"), "running, no worker")
	w := h.attach("watch", dir)
	until(t, "watch reports it", func() bool {
		return strings.Contains(w.output(),
			"Blocked: no worker polls passbook-dir-")
	})
	w.interrupt()
	w.wait()

	h.spoil("[]\n")
	h.starter("server", "start")
	require.Nil(t, h.status(dir).EffectiveStatus.NoWorker)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
}
