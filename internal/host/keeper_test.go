package host_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
)

func keeperOptions(dir, key, stable string) host.KeeperOptions {
	return host.KeeperOptions{
		StateDir: dir, Exec: os.Args[0], Args: []string{key, stable}, Key: key,
		Env: append(os.Environ(), roleEnv+"=keeper", dirEnv+"="+dir),
	}
}

// kept starts a server, a worker and a keeper in a state directory.
func kept(t *testing.T, stable string) (dir string, st host.Status) {
	t.Helper()
	dir = stateDir(t)
	ensure(t, options(t, dir))
	ensureWorker(t, workerIn(dir, "here"))
	ensureKeeper(t, keeperOptions(dir, "build", stable))
	st = read(t, dir)
	require.NotNil(t, st.Server)
	require.NotNil(t, st.Worker)
	require.NotNil(t, st.Keeper)
	return dir, st
}

func TestKeeperRestartsKilledProcesses(t *testing.T) {
	dir, before := kept(t, "1h")
	kill(t, before.Worker.Process)
	eventually(t, "a new worker", func() bool {
		w := read(t, dir).Worker
		return w != nil && host.Polls(dir, w.Process)
	})
	kill(t, before.Server.Process)
	eventually(t, "a new server", func() bool { return read(t, dir).Server != nil })
	now := read(t, dir)
	require.Equal(t, before.Server.Address, now.Server.Address)
	require.Equal(t, before.Keeper.Process, now.Keeper.Process)
	eventually(t, "the restart is recorded", func() bool { return read(t, dir).Keeper.Server.InRow == 1 })
	require.Equal(t, 1, read(t, dir).Keeper.Worker.Total)
}

func TestStopStopsTheKeeperFirst(t *testing.T) {
	dir, before := kept(t, "1h")
	was := must(host.Stop(t.Context(), dir, 10*time.Second))(t)
	require.Equal(t, before.Keeper.Process, was.Keeper.Process)
	for name, id := range map[string]process.Identity{"keeper": before.Keeper.Process, "worker": before.Worker.Process,
		"server": before.Server.Process} {
		require.False(t, id.Alive(), name)
	}
	ensureKeeper(t, keeperOptions(dir, "build", "1h"))
	require.Equal(t, host.Status{}, read(t, dir))
}

// TestStoppedProcessesStayStopped: an idle worker stops the server and ends. A keeper restarts neither, and ends too.
func TestStoppedProcessesStayStopped(t *testing.T) {
	dir, before := kept(t, "1h")
	require.NoError(t, host.StopServer(t.Context(), dir, 10*time.Second))
	kill(t, before.Worker.Process)
	eventually(t, "the keeper ends", func() bool { return !before.Keeper.Process.Alive() })
	require.Equal(t, host.Status{}, read(t, dir))
}

// TestStarterOfAnotherBuildReplacesWorkerAndKeeper, and the keeper of the other build restarts neither.
func TestStarterOfAnotherBuildReplacesWorkerAndKeeper(t *testing.T) {
	dir, before := kept(t, "1h")
	w := ensureWorker(t, workerIn(dir, "another build"))
	k := ensureKeeper(t, keeperOptions(dir, "another build", "1h"))
	require.NotEqual(t, before.Keeper.Process, k.Process, "the keeper is of another build too")
	require.False(t, before.Keeper.Process.Alive())
	require.False(t, before.Worker.Process.Alive())
	require.Equal(t, w.Process, read(t, dir).Worker.Process)
	require.Zero(t, k.Worker.Total)
}

// TestKeeperRetriesACrashLoop: what a process lacks may come back.
func TestKeeperRetriesACrashLoop(t *testing.T) {
	for fault, message := range map[string]string{"refuses": "no such pipeline", "crashes": "started and ended again"} {
		t.Run(fault, func(t *testing.T) {
			dir, before := kept(t, "1h")
			name := filepath.Join(dir, "worker fault")
			require.NoError(t, os.WriteFile(name, []byte(fault), 0o600))
			kill(t, before.Worker.Process)
			eventually(t, "it fails again and again", func() bool { return read(t, dir).Keeper.Worker.Failing() })
			require.Contains(t, read(t, dir).Keeper.Worker.String(), message)
			require.True(t, before.Server.Process.Alive())

			require.NoError(t, os.Remove(name))
			eventually(t, "it stays up", func() bool {
				w := read(t, dir).Worker
				return w != nil && host.Polls(dir, w.Process) && read(t, dir).Keeper.Worker.Error == ""
			})
		})
	}
}

func TestStableProcessResetsRestartCount(t *testing.T) {
	dir, before := kept(t, "50ms")
	kill(t, before.Worker.Process)
	eventually(t, "a restart that is no longer counted",
		func() bool { r := read(t, dir).Keeper.Worker; return r.Total == 1 && r.InRow == 0 })
}

// TestConcurrentStartersStartOneKeeper also with a record that a killed one has left.
func TestConcurrentStartersStartOneKeeper(t *testing.T) {
	dir, before := kept(t, "1h")
	kill(t, before.Keeper.Process)
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		all.Go(func() {
			errs[i] = host.EnsureKeeper(t.Context(), keeperOptions(dir, "build", "1h"))
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	if found, err := process.WithEnv(dirEnv, dir); err != nil || len(found) == 0 {
		t.Skip("the processes of this system cannot be inspected")
	}
	eventually(t, "all but one end", func() bool { return keepers(t, dir) == 1 })
	require.NotNil(t, read(t, dir).Keeper)
}

// keepers counts the processes that the options of [kept] start.
func keepers(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, id := range must(process.WithEnv(dirEnv, dir))(t) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(id.PID), "cmdline"))
		if err == nil && strings.HasSuffix(string(line), "\x001h\x00") {
			n++
		}
	}
	return n
}

// TestEnsureKeeperRestartsAKilledKeeper as the worker restarts it, but none that was stopped. A starter starts that one.
func TestEnsureKeeperRestartsAKilledKeeper(t *testing.T) {
	dir, before := kept(t, "1h")
	o := keeperOptions(dir, "build", "1h")
	o.Again = true
	kill(t, before.Keeper.Process)
	require.True(t, ensureKeeper(t, o).Process.Alive())
	must(host.Stop(t.Context(), dir, 10*time.Second))(t)
	ensure(t, options(t, dir))
	require.NoError(t, host.EnsureKeeper(t.Context(), o))
	require.Nil(t, read(t, dir).Keeper, "it was stopped")

	o.Again = false
	require.True(t, ensureKeeper(t, o).Process.Alive())
}

// TestKeeperEndsWithItsStateDirectory and does not recreate it.
func TestKeeperEndsWithItsStateDirectory(t *testing.T) {
	dir, before := kept(t, "1h")
	gone := dir + "-gone"
	require.NoError(t, os.Rename(dir, gone))
	eventually(t, "the keeper ends", func() bool { return !before.Keeper.Process.Alive() })
	require.NoDirExists(t, dir)
	require.NoError(t, os.Rename(gone, dir)) // for the cleanup
}

func TestStateOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chown(dir, 65534, 65534))
	_, err := host.EnsureServer(t.Context(), host.ServerOptions{StateDir: dir}, nil)
	require.ErrorContains(t, err, "belongs to user 65534, and this process runs as user 0; run it as the owner")
}

// TestTwoBuildsAtOnceLeaveOneKeeper, which is the recorded one.
func TestTwoBuildsAtOnceLeaveOneKeeper(t *testing.T) {
	dir, _ := kept(t, "1h")
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		all.Go(func() {
			errs[i] = host.EnsureKeeper(t.Context(), keeperOptions(dir, []string{"build", "other"}[i%2], "1h"))
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	eventually(t, "all but one end", func() bool { return keepers(t, dir) == 1 })
	require.True(t, read(t, dir).Keeper.Process.Alive())
}
