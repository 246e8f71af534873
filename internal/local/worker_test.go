package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/process"
)

func workerOptions(t *testing.T, dir, key string) local.WorkerOptions {
	t.Helper()
	return local.WorkerOptions{
		StateDir:     dir,
		Exec:         os.Args[0],
		Args:         []string{key},
		Env:          append(os.Environ(), roleEnv+"=worker", dirEnv+"="+dir),
		Key:          key,
		StartTimeout: 20 * time.Second,
	}
}

func TestEnsureWorkerStartsOneWorker(t *testing.T) {
	dir := stateDir(t)
	o := workerOptions(t, dir, "here")
	found := make([]local.Worker, 4)
	errs := make([]error, len(found))
	var all sync.WaitGroup
	for i := range found {
		all.Go(func() { found[i], errs[i] = local.EnsureWorker(t.Context(), o, nil) })
	}
	all.Wait()
	for i := range found {
		require.NoError(t, errs[i])
		require.Equal(t, found[0].Process, found[i].Process)
	}
	st, err := local.Read(dir)
	require.NoError(t, err)
	require.Equal(t, found[0].Process, st.Worker.Process)
	stopped, err := local.StopWorker(t.Context(), dir, 10*time.Second)
	require.NoError(t, err)
	require.True(t, stopped)
	require.False(t, found[0].Process.Alive())
}

func TestEnsureWorkerReplacesAKilledWorker(t *testing.T) {
	o := workerOptions(t, stateDir(t), "here")
	first, err := local.EnsureWorker(t.Context(), o, nil)
	require.NoError(t, err)
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	require.NoError(t, first.Process.AwaitEnd(t.Context()))
	second, err := local.EnsureWorker(t.Context(), o, nil)
	require.NoError(t, err)
	require.NotEqual(t, first.Process, second.Process, "the ready file of the dead one was believed")
}

func TestEnsureWorkerReportsAnotherKey(t *testing.T) {
	dir := stateDir(t)
	first, err := local.EnsureWorker(t.Context(), workerOptions(t, dir, "here"), nil)
	require.NoError(t, err)
	_, err = local.EnsureWorker(t.Context(), workerOptions(t, dir, "there"), nil)
	var other *local.ErrOtherWorker
	require.ErrorAs(t, err, &other)
	require.Equal(t, first.Process, other.Running.Process)
	require.ErrorContains(t, err, `a worker runs for "here"`)
	require.True(t, first.Process.Alive())
}

func TestEnsureWorkerFindsAForegroundWorker(t *testing.T) {
	dir := stateDir(t)
	o := workerOptions(t, dir, "here")
	byHand := exec.Command(o.Exec, o.Args...)
	byHand.Env = o.Env
	require.NoError(t, byHand.Start())
	t.Cleanup(func() { _ = byHand.Process.Kill(); _ = byHand.Wait() })
	require.Eventually(t, func() bool {
		st, err := local.Read(dir)
		return err == nil && st.Worker != nil
	}, 10*time.Second, 5*time.Millisecond)
	w, err := local.EnsureWorker(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, byHand.Process.Pid, w.Process.PID)
}

// byHand starts a worker as a user does, and returns when it polls.
func byHand(t *testing.T, o local.WorkerOptions, key string) process.Identity {
	t.Helper()
	cmd := exec.Command(o.Exec, key)
	cmd.Env = o.Env
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	id, err := process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return local.Polls(o.StateDir, id) }, 20*time.Second, 5*time.Millisecond)
	return id
}

// TestForegroundWorkerDoesNotBlockStarts: workers that share a ready file would overwrite each other's.
func TestForegroundWorkerDoesNotBlockStarts(t *testing.T) {
	dir := stateDir(t)
	o := workerOptions(t, dir, "here")
	o.StartTimeout = 2 * time.Second
	background, err := local.EnsureWorker(t.Context(), o, nil)
	require.NoError(t, err)
	foreground := byHand(t, o, "")
	again, err := local.EnsureWorker(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, background.Process, again.Process)
	require.True(t, local.Polls(dir, background.Process))
	require.True(t, foreground.Alive())
}

// TestForegroundWorkerOfAnotherKeyStays: one that was started by hand for something else is neither used nor stopped.
func TestForegroundWorkerOfAnotherKeyStays(t *testing.T) {
	dir := stateDir(t)
	o := workerOptions(t, dir, "here")
	foreground := byHand(t, o, "")
	w, err := local.EnsureWorker(t.Context(), o, nil)
	require.NoError(t, err)
	require.NotEqual(t, foreground.PID, w.Process.PID)
	require.True(t, foreground.Alive())
}

// TestReadyFilesOfEndedWorkersAreRemoved: each worker that begins removes those that crashes have left.
func TestReadyFilesOfEndedWorkersAreRemoved(t *testing.T) {
	dir := stateDir(t)
	o := workerOptions(t, dir, "here")
	for range 2 {
		w, err := local.EnsureWorker(t.Context(), o, nil)
		require.NoError(t, err)
		left, err := filepath.Glob(filepath.Join(dir, "worker", "ready-*.json"))
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.NoError(t, w.Process.Signal(syscall.SIGKILL))
		require.NoError(t, w.Process.AwaitEnd(t.Context()))
	}
}

func TestEnsureWorkerReportsTheOutputOfAFailedWorker(t *testing.T) {
	o := workerOptions(t, stateDir(t), "here")
	o.Env = append(o.Env, faultEnv+"=refuses")
	_, err := local.EnsureWorker(t.Context(), o, nil)
	require.ErrorContains(t, err, "it ended (exit status 1): no such pipeline")
	o.Exec = "/no/worker"
	_, err = local.EnsureWorker(t.Context(), o, nil)
	require.ErrorContains(t, err, "start the worker")
}
