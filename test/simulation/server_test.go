package simulation_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/testenv"
)

// site is what real runs share: the embedded server, whose database is in memory.
type site struct {
	root, program string // program: this test binary
	server        host.Server
	client        client.Client
}

// newSite starts a server.
func newSite(t *testing.T) *site {
	require.NoError(t, testenv.UseMemory())
	program, err := os.Executable()
	require.NoError(t, err)
	s := &site{root: t.TempDir(), program: program}
	t.Cleanup(testenv.HoldPorts())
	state := filepath.Join(s.root, "server")
	s.server, err = host.EnsureServer(t.Context(), host.ServerOptions{StateDir: state, SourceDir: "../.."}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		err := host.StopServer(context.Background(), state, time.Second)
		require.NoError(t, err)
	})
	trust, err := s.server.TLS(certs.CLI)
	require.NoError(t, err)
	s.client, err = client.Dial(client.Options{HostPort: s.server.Address, Namespace: s.server.Namespace,
		ConnectionOptions: client.ConnectionOptions{TLS: trust},
		Logger:            log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	return s
}

// crew is a host with two workers, whose runs follow one another.
type crew struct {
	site    *site
	root    string
	op      operations.Operator
	env     []string
	workers [2]*exec.Cmd
}

// newCrew starts two workers, which keep no execution in memory: each task executes the workflow from its begin.
func (s *site) newCrew(name string) (*crew, error) {
	root := filepath.Join(s.root, name)
	state, settings := filepath.Join(root, "state"), filepath.Join(root, "settings.yaml")
	c := &crew{site: s, root: root}
	id, err := host.HostID(state)
	if err == nil {
		err = os.WriteFile(settings, []byte("{}\n"), 0o600)
	}
	if err == nil {
		err = os.Symlink(s.program, filepath.Join(root, workerProgram))
	}
	if err != nil {
		return nil, err
	}
	c.env = slices.Concat(testenv.CleanEnv(os.Environ()), s.server.Env(), []string{"PASSBOOK_STATE_DIR=" + state,
		"PASSBOOK_HEARTBEAT=" + heartbeat.String(), "PASSBOOK_SETTINGS=" + settings, host.CacheVar + "=0"})
	c.op = operations.Operator{
		Client: s.client, Namespace: client.DefaultNamespace, Host: id, Build: "test", By: "ada",
		Settings: config.Settings{
			StateDir: state, RunRoot: root, Store: "file://" + filepath.Join(state, "store"), TaskQueue: "passbook",
			Heartbeat: heartbeat, Environment: "test",
		},
	}
	for n := range c.workers {
		if err := c.hire(n); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// heartbeat is after how long without a sign a worker counts as lost: the shortest that the settings allow.
const heartbeat = time.Second

// hire starts a worker in a place.
func (c *crew) hire(place int) error {
	out, err := os.OpenFile(filepath.Join(c.root, "workers.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(c.root, workerProgram))
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.root, out, out
	c.workers[place] = cmd
	return errors.Join(cmd.Start(), out.Close())
}

// kill kills the worker of a place.
func (c *crew) kill(place int) {
	_ = c.workers[place].Process.Kill() // it may have ended
	_ = c.workers[place].Wait()
}
