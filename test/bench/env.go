package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
)

// readyTimeout bounds the start and the end of a process.
const readyTimeout = time.Minute

// env is the environment of a measurement: a state directory, the programs, and a server.
type env struct {
	settings
	temp     string
	op       operations.Operator
	embedded bool
	server   int // process id of the embedded server
	batches  int
}

// open builds the programs and finds or starts the server.
func open(ctx context.Context, s settings) (*env, error) {
	temp, err := os.MkdirTemp(s.Temp, "passbook-bench-")
	if err != nil {
		return nil, err
	}
	h := &env{settings: s, temp: temp}
	if err := os.WriteFile(h.empty(), []byte("{}\n"), 0o600); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := buildPassbook(ctx, s.Root, temp); err != nil {
		return nil, errors.Join(err, h.close())
	}
	if err := h.connect(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *env) state() string { return filepath.Join(h.temp, "state") }

// empty is a settings file without settings.
func (h *env) empty() string { return filepath.Join(h.temp, "settings.yaml") }

func (h *env) agent() string { return filepath.Join(h.temp, "agent") }

// connect creates the operator. A server in TEMPORAL_ADDRESS or in a profile is used as it is.
func (h *env) connect(ctx context.Context) error {
	host, err := local.HostID(h.state())
	if err != nil {
		return err
	}
	conn, err := connect.Find(config.Settings{StateDir: h.state()})
	if err != nil {
		return err
	}
	h.embedded = !conn.Explicit
	address := conn.Options.HostPort
	if h.embedded {
		server, err := local.Ensure(ctx, local.Options{StateDir: h.state(), SourceDir: h.Root},
			func(line string) { fmt.Fprintln(os.Stderr, line) })
		if err != nil {
			return err
		}
		address, h.server = server.Address, server.Process.PID
	}
	c, err := conn.Dial(ctx, address, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	h.op = operations.Operator{
		Client: c, Address: address, Namespace: conn.Options.Namespace, Host: host, Build: "bench", By: "bench",
		Embedded: h.embedded, Attributes: true,
		Settings: config.Settings{
			StateDir: h.state(), Store: "file://" + filepath.ToSlash(filepath.Join(h.state(), "store")),
			TaskQueue: "passbook", Calls: 4,
			Heartbeat: 10 * time.Second, Environment: "bench",
		},
	}
	return connect.EnsureAttributes(ctx, c, conn.Options.Namespace)
}

func (h *env) where() string {
	if h.embedded {
		return "Embedded server"
	}
	return "Cluster at " + h.op.Address
}

// close ends the server, if the environment started it, and removes everything.
func (h *env) close() error {
	if h.op.Client != nil {
		h.op.Client.Close()
	}
	_, err := local.Stop(context.Background(), h.state(), readyTimeout)
	return errors.Join(err, os.RemoveAll(h.temp))
}

// worked runs the real worker until work returns, and returns the CPU time of the worker and its agents. If the worker
// ends first, work is cancelled.
func (h *env) worked(ctx context.Context, work func(ctx context.Context, worker int) error) (time.Duration, error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(h.temp, "worker"))
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = h.environment(), h.temp, &output, &output
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the worker: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); cancel() }()
	err := work(ctx, cmd.Process.Pid)
	stopped := cmd.Process.Signal(syscall.SIGTERM)
	if err = errors.Join(err, <-ended, stopped); err != nil {
		return 0, fmt.Errorf("the worker: %w\n%s", err, output.Bytes()[max(0, output.Len()-2000):])
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// environment is that of this process, with the settings of the measurement instead of the user's.
func (h *env) environment() []string {
	out := []string{
		"PASSBOOK_STATE_DIR=" + h.state(), "PASSBOOK_SETTINGS=" + h.empty(), "TEMPORAL_ADDRESS=" + h.op.Address,
		"TEMPORAL_NAMESPACE=" + h.op.Namespace,
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "PASSBOOK_") && name != "TEMPORAL_ADDRESS" && name != "TEMPORAL_NAMESPACE" {
			out = append(out, v)
		}
	}
	return out
}
