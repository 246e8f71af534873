package local_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/process"
)

func readLog(t *testing.T, s local.Server) string {
	t.Helper()
	data, err := os.ReadFile(s.Log)
	require.NoError(t, err)
	return string(data)
}

func TestEnsureStartsAServerOnce(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	o.SearchAttributes = map[string]string{"Stage": "Keyword"}
	o.Codec = "http://127.0.0.1:8234"
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:"+strconv.Itoa(o.Port), s.Address)
	require.Equal(t, "http://127.0.0.1:"+strconv.Itoa(o.UIPort), s.UI)
	require.Equal(t, filepath.Join(dir, "server", "temporal-1.32.db"), s.Database)
	require.Equal(t, "1.32.1", s.Version)
	session, err := unix.Getsid(s.Process.PID)
	require.NoError(t, err)
	require.Equal(t, s.Process.PID, session, "a closed terminal would end it")

	again, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, s, again)
	st, err := local.Read(dir)
	require.NoError(t, err)
	require.Equal(t, &s, st.Server)
	log := readLog(t, s)
	require.Contains(t, log, "--search-attribute Stage=Keyword")
	require.Contains(t, log, "--ui-codec-endpoint http://127.0.0.1:8234")
	require.NotContains(t, log, "--sqlite-pragma", "our server has its settings by itself")
	require.Contains(t, log, "update default 2160h0m0s")
	require.Contains(t, log, "add Stage Keyword")
}

func TestConcurrentStartersStartOneServer(t *testing.T) {
	o := options(t, stateDir(t))
	var all sync.WaitGroup
	found := make([]local.Server, 8)
	errs := make([]error, len(found))
	for i := range found {
		all.Go(func() { found[i], errs[i] = local.Ensure(t.Context(), o, nil) })
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
	first, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	require.NoError(t, first.Process.AwaitEnd(t.Context()))
	st, err := local.Read(dir)
	require.NoError(t, err)
	require.Nil(t, st.Server)

	o.Port, o.UIPort = freePort(t), freePort(t)
	second, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.NotEqual(t, first.Process, second.Process)
	require.Equal(t, first.Address, second.Address, "links would break")
	require.Equal(t, first.UI, second.UI)
	require.Equal(t, first.Database, second.Database)
}

func TestEnsureAvoidsATakenPort(t *testing.T) {
	o := options(t, stateDir(t))
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(o.Port))
	require.NoError(t, err)
	defer l.Close()
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.NotEqual(t, "127.0.0.1:"+strconv.Itoa(o.Port), s.Address)
}

func TestStopSparesAnotherProcessWithTheRecordedPid(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.NoError(t, s.Process.Signal(syscall.SIGKILL))
	require.NoError(t, s.Process.AwaitEnd(t.Context()))

	stranger := exec.Command("sleep", "600")
	require.NoError(t, stranger.Start())
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	id, err := process.Of(stranger.Process.Pid)
	require.NoError(t, err)
	s.Process.PID = stranger.Process.Pid // the start time stays the dead server's
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "server", "server.json"), data, 0o600))

	stopped, err := local.StopServer(t.Context(), dir, time.Second)
	require.NoError(t, err)
	require.False(t, stopped)
	next, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.NotEqual(t, s.Process.PID, next.Process.PID)
	require.True(t, id.Alive(), "the stranger was hit")
}

func TestStopServer(t *testing.T) {
	for name, row := range map[string]struct {
		fault   string
		message bool
	}{"a server that listens": {"", true}, "a stubborn one": {"stubborn", false}} {
		t.Run(name, func(t *testing.T) {
			dir := stateDir(t)
			o := options(t, dir)
			t.Setenv(faultEnv, row.fault)
			s, err := local.Ensure(t.Context(), o, nil)
			require.NoError(t, err)
			grace := 10 * time.Second
			if !row.message {
				grace = 50 * time.Millisecond
			}
			stopped, err := local.StopServer(t.Context(), dir, grace)
			require.NoError(t, err)
			require.True(t, stopped)
			require.False(t, s.Process.Alive())
			if row.message {
				require.Contains(t, readLog(t, s), "stopped gracefully")
			}
			stopped, err = local.StopServer(t.Context(), dir, grace)
			require.NoError(t, err)
			require.False(t, stopped)
		})
	}
}

func TestEnsureReportsTheOutputOfAFailedServer(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(faultEnv, "refuses")
	_, err := local.Ensure(t.Context(), o, nil)
	require.ErrorContains(t, err, "it ended (exit status 1): the database is of another version; see ")
}

// starting calls Ensure for a server that waits for [goOn], and returns when it is recorded.
func starting(t *testing.T, ctx context.Context, o local.Options) (recorded local.Server, done chan error) {
	t.Helper()
	t.Setenv(faultEnv, "slow")
	done = make(chan error, 1)
	go func() {
		_, err := local.Ensure(ctx, o, nil)
		done <- err
	}()
	require.Eventually(t, func() bool {
		st, err := local.Read(o.StateDir)
		if err == nil && st.Server != nil {
			recorded = *st.Server
		}
		return recorded.Process.PID != 0
	}, 10*time.Second, 5*time.Millisecond)
	return recorded, done
}

func goOn(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go on"), nil, 0o600))
}

func TestEnsureJoinsAnInterruptedStart(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	recorded, done := starting(t, ctx, o)
	cancel()
	require.ErrorContains(t, <-done, "it keeps starting")
	goOn(t, dir)
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, recorded.Process, s.Process)
}

func TestEnsureReplacesAServerThatDiesWhileStarting(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	recorded, done := starting(t, ctx, o)
	cancel()
	<-done
	var s local.Server
	go func() {
		var err error
		s, err = local.Ensure(t.Context(), o, nil)
		done <- err
	}()
	require.NoError(t, recorded.Process.Signal(syscall.SIGKILL))
	goOn(t, dir)
	require.NoError(t, <-done)
	require.NotEqual(t, recorded.Process, s.Process)
}

func TestEnsureReplacesAPortLostWhileStarting(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	recorded, done := starting(t, t.Context(), o)
	l, err := net.Listen("tcp", recorded.Address)
	require.NoError(t, err)
	defer l.Close()
	goOn(t, dir)
	require.NoError(t, <-done)
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.NotEqual(t, recorded.Address, s.Address)
	require.NotEqual(t, recorded.Process, s.Process)
}

// The process that took a port, such as another starter that looks for free ports, may have released it already.
func TestEnsureRetriesAPortTakenForAMoment(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(faultEnv, "port taken for a moment")
	_, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
}

func TestEnsureStopsServerThatIsNeverReady(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	o.StartTimeout = 200 * time.Millisecond
	t.Setenv(faultEnv, "slow")
	_, err := local.Ensure(t.Context(), o, nil)
	require.ErrorContains(t, err, "not ready after 200ms")
	require.ErrorContains(t, err, "it was stopped")
	st, err := local.Read(dir)
	require.NoError(t, err)
	require.Nil(t, st.Server)
}

func TestServerOutlivesItsStarter(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	starter := exec.Command(os.Args[0])
	starter.Env = append(os.Environ(), roleEnv+"=starter")
	out, err := starter.CombinedOutput()
	require.NoError(t, err, string(out))
	st, err := local.Read(dir)
	require.NoError(t, err)
	require.NotNil(t, st.Server)
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, st.Server.Process, s.Process)
}

func TestEnsureAddsANamespaceToARunningServer(t *testing.T) {
	o := options(t, stateDir(t))
	first, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	o.Namespace = "other"
	second, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, first.Process, second.Process)
	require.Equal(t, "other", second.Namespace)
	require.Contains(t, readLog(t, second), "register other 2160h0m0s")
}

func TestEnsureRunsTheTemporalCLI(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(roleEnv, "foreign server")
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, "temporal-1.29.db", filepath.Base(s.Database))
	require.Contains(t, readLog(t, s), "--sqlite-pragma synchronous=2")
}

func TestEnsureRejectsInvalidOptions(t *testing.T) {
	dir := stateDir(t)
	good := options(t, dir)
	for name, row := range map[string]struct {
		change func(*local.Options)
		want   string
	}{
		"no state directory": {func(o *local.Options) { o.StateDir = "" }, "no state directory is set"},
		"no such binary": {func(o *local.Options) { o.Binary = "/no/temporal" },
			"the configured Temporal server /no/temporal"},
		"not a server": {func(o *local.Options) { o.Binary = "ls" }, "is not a Temporal server"},
		"no checkout":  {func(o *local.Options) { o.Binary, o.SourceDir = "", dir }, "is not a checkout of"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			row.change(&o)
			_, err := local.Ensure(t.Context(), o, nil)
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestEnsureRefusesADamagedRecord(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	path := filepath.Join(dir, "server", "server.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := local.Ensure(t.Context(), o, nil)
	require.ErrorContains(t, err, "move the file away")
	require.NoError(t, os.Remove(path))
}

func TestEnsureFindsARunningServerWithoutAHome(t *testing.T) {
	o := options(t, stateDir(t))
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	o.CacheDir, o.Binary = "", ""
	again, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Equal(t, s, again)
}
