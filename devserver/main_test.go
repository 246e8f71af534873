package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// asServer makes this test binary the server: the tests kill real processes without a second build.
const asServer = "PASSBOOK_DEVSERVER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		os.Unsetenv(asServer)
		main()
	}
	os.Exit(m.Run())
}

// child is a running server process and its ready line.
type child struct {
	cmd       *exec.Cmd
	authority *authority // of a secure server
	ready
}

func launch(t *testing.T, args ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	c := &child{cmd: cmd}
	if at := slices.Index(args, "--tls-dir"); at >= 0 {
		c.authority = &authority{t: t, dir: certFolder(args[at+1])}
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, "the server ended without a ready line")
	require.NoError(t, json.Unmarshal(line, &c.ready))
	go io.Copy(io.Discard, out)
	return c
}

// stop ends the server with the signal and returns its exit code, or -1 for a signal.
func (c *child) stop(sig syscall.Signal) int {
	_ = c.cmd.Process.Signal(sig)
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

func (c *child) dial(t *testing.T) client.Client {
	t.Helper()
	o := client.Options{HostPort: c.Address, Namespace: c.Namespace, Logger: quiet{}}
	if c.authority != nil {
		o.ConnectionOptions.TLS = c.authority.client(nameCLI)
	}
	cl, err := client.Dial(o)
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// quiet drops the SDK's log.
type quiet struct{}

var _ sdklog.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// fresh starts a server on free ports. The path of its database has characters with a meaning in SQLite's URIs.
func fresh(t *testing.T, more ...string) (c *child, args []string) {
	t.Helper()
	a, folder := newAuthority(t), filepath.Join(t.TempDir(), "a #1, 50% of? it")
	require.NoError(t, os.Mkdir(folder, 0o700))
	args = append([]string{"--port", "0", "--db-filename", filepath.Join(folder, "temporal.db"), "--namespace", "book",
		"--tls-dir", string(a.dir), "--ui-login-dir", filepath.Join(t.TempDir(), "ui")}, more...)
	c = launch(t, args...)
	c.authority = a
	return c, args
}

// TestServerEndsWithItsFolder: a server whose folder was deleted would run for ever, and write to files that are gone.
func TestServerEndsWithItsFolder(t *testing.T) {
	c, args := fresh(t, "--headless")
	dir := filepath.Dir(args[slices.Index(args, "--db-filename")+1])
	require.NoError(t, os.RemoveAll(dir))
	ended := make(chan error, 1)
	go func() { ended <- c.cmd.Wait() }()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it still runs")
	}
}
