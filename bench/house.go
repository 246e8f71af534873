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
	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/serve"
)

// patience is how long a process may take to be ready or to end.
const patience = time.Minute

// house is a machine for the measurement: a state directory, the programs, and a server.
type house struct {
	settings
	temp     string
	op       operate.Operator
	embedded bool
	batches  int
}

// open builds the programs and finds or starts the server.
func open(ctx context.Context, s settings) (*house, error) {
	temp, err := os.MkdirTemp(s.Temp, "passbook-bench-")
	if err != nil {
		return nil, err
	}
	h := &house{settings: s, temp: temp}
	if err := os.WriteFile(h.empty(), []byte("{}\n"), 0o600); err != nil {
		return nil, errors.Join(err, h.close())
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", temp+string(filepath.Separator), "./worker", "./supervisor/passbook-call", "./bench/agent")
	build.Dir = s.Root
	if said, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build the programs: %w\n%s", err, said), h.close())
	}
	if err := h.connect(ctx); err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

func (h *house) state() string { return filepath.Join(h.temp, "state") }

// empty is a settings file without settings.
func (h *house) empty() string { return filepath.Join(h.temp, "settings.yaml") }

func (h *house) agent() string { return filepath.Join(h.temp, "agent") }

// connect makes the operator. A server that TEMPORAL_ADDRESS or a profile names is used as it is.
func (h *house) connect(ctx context.Context) error {
	host, err := local.HostID(h.state())
	if err != nil {
		return err
	}
	conn, err := serve.FindConnection(config.Settings{})
	if err != nil {
		return err
	}
	h.embedded = !conn.Explicit
	address := conn.Options.HostPort
	if h.embedded {
		server, err := local.Ensure(ctx, local.Options{StateDir: h.state(), SourceDir: h.Root}, func(line string) { fmt.Fprintln(os.Stderr, line) })
		if err != nil {
			return err
		}
		address = server.Address
	}
	c, err := conn.Dial(ctx, address, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	h.op = operate.Operator{
		Client: c, Address: address, Namespace: conn.Options.Namespace, Host: host, Build: "bench", By: "bench", Embedded: h.embedded, Attributes: true,
		Settings: config.Settings{
			StateDir: h.state(), Store: "file://" + filepath.ToSlash(filepath.Join(h.state(), "store")), TaskQueue: "passbook", Calls: 4,
			Heartbeat: 10 * time.Second, Environment: "bench",
		},
	}
	return serve.EnsureAttributes(ctx, c, conn.Options.Namespace)
}

func (h *house) where() string {
	if h.embedded {
		return "Embedded server"
	}
	return "Cluster at " + h.op.Address
}

// close ends the server, if it is the house's own, and removes everything.
func (h *house) close() error {
	if h.op.Client != nil {
		h.op.Client.Close()
	}
	_, err := local.Stop(context.Background(), h.state(), patience)
	return errors.Join(err, os.RemoveAll(h.temp))
}

// worked runs the real worker until work returns, and gives the CPU time that it and its agents took. If the worker ends before, work is ended.
func (h *house) worked(ctx context.Context, work func(context.Context) error) (time.Duration, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(h.temp, "worker"))
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = h.environment(), h.temp, &said, &said
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the worker: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait(); cancel() }()
	err := work(ctx)
	stopped := cmd.Process.Signal(syscall.SIGTERM)
	if err = errors.Join(err, <-ended, stopped); err != nil {
		return 0, fmt.Errorf("the worker: %w\n%s", err, said.Bytes()[max(0, said.Len()-2000):])
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// environment is this process's own, with the settings of the house in the place of the user's.
func (h *house) environment() []string {
	out := []string{
		"PASSBOOK_STATE_DIR=" + h.state(), "PASSBOOK_SETTINGS=" + h.empty(), "TEMPORAL_ADDRESS=" + h.op.Address, "TEMPORAL_NAMESPACE=" + h.op.Namespace,
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "PASSBOOK_") && name != "TEMPORAL_ADDRESS" && name != "TEMPORAL_NAMESPACE" {
			out = append(out, v)
		}
	}
	return out
}
