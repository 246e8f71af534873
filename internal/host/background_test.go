package host_test

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
)

func TestEnsureWorkerStartsOneWorker(t *testing.T) {
	dir := stateDir(t)
	o := workerIn(dir, "here")
	found := make([]host.Worker, 4)
	errs := make([]error, len(found))
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i], errs[i] = host.EnsureWorker(t.Context(), o, nil) })
	}
	all.Wait()
	for i := range found {
		require.NoError(t, errs[i])
		require.Equal(t, found[0].Process, found[i].Process)
	}
	require.Equal(t, found[0].Process, must(host.Read(dir))(t).Worker.Process)
	must(host.Stop(t.Context(), dir, 10*time.Second))(t)
	require.False(t, found[0].Process.Alive())
}

// TestEnsureWorkerReplacesAKilledWorker, and the new one removes the ready file that a crash has left.
func TestEnsureWorkerReplacesAKilledWorker(t *testing.T) {
	dir := stateDir(t)
	o := workerIn(dir, "here")
	first := ensureWorker(t, o)
	kill(t, first.Process)
	second := ensureWorker(t, o)
	require.NotEqual(t, first.Process, second.Process, "the ready file of the dead one was used")
	require.Len(t, must(filepath.Glob(filepath.Join(dir, "worker", "ready-*.json")))(t), 1)
}

// TestEnsureWorkerReplacesAnotherKey unless the caller keeps it, as it does while it makes calls.
func TestEnsureWorkerReplacesAnotherKey(t *testing.T) {
	dir := stateDir(t)
	first := ensureWorker(t, workerIn(dir, "here"))
	o := workerIn(dir, "there")
	o.Keep = func(w host.Worker) bool { return w.Key == "here" }
	require.Equal(t, first.Process, ensureWorker(t, o).Process)
	o.Keep = nil
	require.NotEqual(t, first.Process, ensureWorker(t, o).Process)
	require.False(t, first.Process.Alive())
}

// foreground starts a worker as a user does, and returns when it polls.
func foreground(t *testing.T, o host.WorkerOptions, key string) process.Identity {
	t.Helper()
	cmd := exec.Command(o.Exec, key)
	cmd.Env = o.Env
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	id := must(process.Of(cmd.Process.Pid))(t)
	eventually(t, "it polls", func() bool { return host.Polls(o.StateDir, id) })
	return id
}

func TestEnsureWorkerFindsAForegroundWorker(t *testing.T) {
	o := workerIn(stateDir(t), "here")
	id := foreground(t, o, "here")
	require.Equal(t, id, ensureWorker(t, o).Process)
}

// TestForegroundWorkerOfAnotherKeyStays: one that an operator started for another key is neither used nor stopped, and
// does not block starts. Each worker has its own ready file.
func TestForegroundWorkerOfAnotherKeyStays(t *testing.T) {
	dir := stateDir(t)
	o := workerIn(dir, "here")
	early := foreground(t, o, "")
	background := ensureWorker(t, o)
	require.NotEqual(t, early.PID, background.Process.PID)
	late := foreground(t, o, "")
	require.Equal(t, background.Process, ensureWorker(t, o).Process)
	require.True(t, host.Polls(dir, background.Process))
	require.True(t, early.Alive())
	require.True(t, late.Alive())
}

func TestEnsureWorkerReportsTheOutputOfAFailedWorker(t *testing.T) {
	o := workerIn(stateDir(t), "here")
	o.Env = append(o.Env, faultEnv+"=refuses")
	_, err := host.EnsureWorker(t.Context(), o, nil)
	require.ErrorContains(t, err, "it ended (exit status 1): no such pipeline")
	o.Exec = "/no/worker"
	_, err = host.EnsureWorker(t.Context(), o, nil)
	require.ErrorContains(t, err, "start the worker")
}
