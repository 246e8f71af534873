package host_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
)

func readLog(t *testing.T, s host.Server) string {
	t.Helper()
	return string(must(os.ReadFile(s.Log))(t))
}

func TestEnsureStartsAServerOnce(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	o.Codec = "http://127.0.0.1:8234"
	s := ensure(t, o)
	require.Equal(t, "127.0.0.1:"+strconv.Itoa(o.Port), s.Address)
	require.Equal(t, "http://127.0.0.1:"+strconv.Itoa(o.UIPort), s.UI)
	require.Equal(t, filepath.Join(dir, "server", "temporal-1.32.db"), s.Database)
	require.Equal(t, "1.32.1", s.Version)
	require.Equal(t, s.Process.PID, must(unix.Getsid(s.Process.PID))(t), "a closed terminal would end it")
	log := readLog(t, s)
	require.Contains(t, log, "--search-attribute PassbookStage=Keyword")
	require.Contains(t, log, "--ui-codec-endpoint http://127.0.0.1:8234")

	require.Equal(t, s, ensure(t, o))
	require.Equal(t, &s, read(t, dir).Server)
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	o.CacheDir, o.Binary = "", ""
	require.Equal(t, s, ensure(t, o), "a running server needs no home")
}

func TestConcurrentStartersStartOneServer(t *testing.T) {
	o := options(t, stateDir(t))
	var all sync.WaitGroup
	found := make([]host.Server, 8)
	errs := make([]error, len(found))
	for i := range found {
		all.Go(func() { found[i], errs[i] = host.EnsureServer(t.Context(), o, nil) })
	}
	all.Wait()
	for i := range found {
		require.NoError(t, errs[i])
		require.Equal(t, found[0].Process, found[i].Process)
	}
}

func TestEnsureReplacesAKilledServerAtItsAddress(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	first := ensure(t, o)
	kill(t, first.Process)
	require.Nil(t, read(t, dir).Server)

	o.Port, o.UIPort = freePort(t), freePort(t)
	second := ensure(t, o)
	require.NotEqual(t, first.Process, second.Process)
	require.Equal(t, first.Address, second.Address, "links stay valid")
	require.Equal(t, first.UI, second.UI)
	require.Equal(t, first.Database, second.Database)
}

func TestStopSparesAnotherProcessWithTheRecordedPid(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	s := ensure(t, o)
	kill(t, s.Process)

	other := exec.Command("sleep", "600")
	require.NoError(t, other.Start())
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	id := must(process.Of(other.Process.Pid))(t)
	s.Process.PID = other.Process.Pid // with the start time of the dead server
	writeRecords(t, dir, host.Status{Server: &s})

	require.NoError(t, host.StopServer(t.Context(), dir, time.Second))
	next := ensure(t, o)
	require.NotEqual(t, s.Process.PID, next.Process.PID)
	require.True(t, id.Alive(), "the other process was stopped")
}

func TestStopServer(t *testing.T) {
	for fault, grace := range map[string]time.Duration{"": 10 * time.Second, "stubborn": 50 * time.Millisecond} {
		t.Run("fault "+fault, func(t *testing.T) {
			dir := stateDir(t)
			o := options(t, dir)
			t.Setenv(faultEnv, fault)
			s := ensure(t, o)
			require.NoError(t, host.StopServer(t.Context(), dir, grace))
			require.False(t, s.Process.Alive())
			require.Equal(t, fault == "", strings.Contains(readLog(t, s), "stopped gracefully"))
			require.NoError(t, host.StopServer(t.Context(), dir, grace))
		})
	}
}

func TestEnsureReportsTheOutputOfAFailedServer(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(faultEnv, "refuses")
	_, err := host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "it ended (exit status 1): the database is of another version; see ")
}

// starting calls Ensure for a server that waits for [proceed], and returns when it is recorded.
func starting(t *testing.T, ctx context.Context, o host.ServerOptions) (recorded host.Server, done chan error) {
	t.Helper()
	t.Setenv(faultEnv, "slow")
	done = make(chan error, 1)
	go func() {
		_, err := host.EnsureServer(ctx, o, nil)
		done <- err
	}()
	eventually(t, "it is recorded", func() bool {
		st, err := host.Read(o.StateDir)
		if err == nil && st.Server != nil {
			recorded = *st.Server
		}
		return recorded.Process.PID != 0
	})
	return recorded, done
}

func proceed(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proceed"), nil, 0o600))
}

func TestEnsureJoinsAnInterruptedStart(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	recorded, done := starting(t, ctx, o)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	proceed(t, dir)
	require.Equal(t, recorded.Process, ensure(t, o).Process)
}

func TestEnsureReplacesAServerThatDiesWhileStarting(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	recorded, done := starting(t, ctx, o)
	cancel()
	<-done
	var s host.Server
	go func() {
		var err error
		s, err = host.EnsureServer(t.Context(), o, nil)
		done <- err
	}()
	require.NoError(t, recorded.Process.Signal(syscall.SIGKILL))
	proceed(t, dir)
	require.NoError(t, <-done)
	require.NotEqual(t, recorded.Process, s.Process)
}

func TestEnsureReplacesAPortLostWhileStarting(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	recorded, done := starting(t, t.Context(), o)
	defer must(net.Listen("tcp", recorded.Address))(t).Close()
	proceed(t, dir)
	require.NoError(t, <-done)
	s := ensure(t, o)
	require.NotEqual(t, recorded.Address, s.Address)
	require.NotEqual(t, recorded.Process, s.Process)
}

// TestEnsureRetriesAPortTakenForAMoment: another starter that tries ports may have released it already.
func TestEnsureRetriesAPortTakenForAMoment(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(faultEnv, "port taken for a moment")
	ensure(t, o)
}

func TestEnsureStopsServerThatIsNeverReady(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	o.StartTimeout = 200 * time.Millisecond
	t.Setenv(faultEnv, "slow")
	_, err := host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "not ready after 200ms")
	require.ErrorContains(t, err, "it was stopped")
	require.Nil(t, read(t, dir).Server)
}

func TestServerOutlivesItsStarter(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), roleEnv+"=starter")
	out, err := starter.CombinedOutput()
	require.NoError(t, err, string(out))
	st := must(host.Read(dir))(t)
	require.NotNil(t, st.Server)
	require.Equal(t, st.Server.Process, ensure(t, o).Process)
}

func TestEnsureRejectsInvalidOptions(t *testing.T) {
	dir := stateDir(t)
	good := options(t, dir)
	for name, row := range map[string]struct {
		change func(*host.ServerOptions)
		want   string
	}{
		"no state directory": {func(o *host.ServerOptions) { o.StateDir = "" }, "no state directory is set"},
		"no such binary": {func(o *host.ServerOptions) { o.Binary = "/no/temporal" },
			"the configured Temporal server /no/temporal"},
		"not a server": {func(o *host.ServerOptions) { o.Binary = "ls" }, "is not a server of Passbook: --version prints"},
		"no checkout":  {func(o *host.ServerOptions) { o.Binary, o.SourceDir = "", dir }, "is not a checkout of"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			row.change(&o)
			_, err := host.EnsureServer(t.Context(), o, nil)
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestEnsureRefusesADamagedRecord(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	path := filepath.Join(dir, "processes.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "move the file away")
	require.NoError(t, os.Remove(path))
}

// writeRecords records processes as their starter does.
func writeRecords(t *testing.T, stateDir string, st host.Status) {
	t.Helper()
	require.NoError(t, os.MkdirAll(stateDir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(stateDir, "processes.json"), must(json.Marshal(st))(t), 0o600))
}
