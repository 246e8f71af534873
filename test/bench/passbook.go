package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// readyTimeout bounds the start and the end of a process.
const readyTimeout = time.Minute

// passbook is Passbook with a server and one worker. A workflow is a run, and a step is a pass.
type passbook struct {
	root     string // the checkout
	programs string
	temp     string
	op       operations.Operator
	embedded bool
	worker   *exec.Cmd

	mu   sync.Mutex
	defs map[string]operations.Definition // by work
	ids  map[string]string                // of runs, by the name of the directory
}

func newPassbook(root, programs, dir string) *passbook {
	return &passbook{root: root, programs: programs, temp: dir, defs: map[string]operations.Definition{},
		ids: map[string]string{}}
}

func (p *passbook) state() string { return filepath.Join(p.temp, "state") }

func (p *passbook) settings() string { return filepath.Join(p.temp, "settings.yaml") }

func (p *passbook) agent() string { return filepath.Join(p.programs, "agent") }

func (p *passbook) log() string { return filepath.Join(p.temp, "worker.log") }

// start finds or starts the server, and starts the worker.
func (p *passbook) start(ctx context.Context) error {
	if err := os.MkdirAll(p.temp, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(p.settings(), nil, 0o600); err != nil {
		return err
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	return p.rework(ctx)
}

// connect creates the operator. A server in TEMPORAL_ADDRESS or in a profile is used as it is.
func (p *passbook) connect(ctx context.Context) error {
	id, err := host.HostID(p.state())
	if err != nil {
		return err
	}
	conn, err := host.FindConnection(config.Settings{StateDir: p.state()})
	if err != nil {
		return err
	}
	address := conn.Options.HostPort
	if p.embedded = !conn.Explicit; p.embedded {
		server, err := ensureServer(ctx, p.root, p.state())
		if err != nil {
			return err
		}
		address = server.Address
	}
	c, err := conn.Dial(ctx, address, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	p.op = operations.Operator{
		Client: c, Address: address, Namespace: conn.Options.Namespace, Host: id, Build: "bench", By: "bench",
		Embedded: p.embedded, Attributes: true,
		Settings: config.Settings{
			StateDir: p.state(), Store: "file://" + filepath.ToSlash(filepath.Join(p.state(), "store")),
			TaskQueue: "passbook", Calls: 4, Heartbeat: 10 * time.Second, Environment: "bench",
		},
	}
	return host.EnsureAttributes(ctx, c, conn.Options.Namespace)
}

func ensureServer(ctx context.Context, root, state string) (host.Server, error) {
	return host.EnsureServer(ctx, host.ServerOptions{StateDir: state, SourceDir: root},
		func(line string) { fmt.Fprintln(os.Stderr, line) })
}

func (p *passbook) where() string {
	if p.embedded {
		return "Embedded server"
	}
	return "Cluster at " + p.op.Address
}

func (p *passbook) rework(context.Context) (err error) {
	p.worker, err = startWorker(exec.Command(filepath.Join(p.programs, "worker")), p.temp, p.log(), p.environment())
	return err
}

// startWorker starts a program that appends what it prints to a log.
func startWorker(cmd *exec.Cmd, dir, log string, environ []string) (*exec.Cmd, error) {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = environ, dir, out, out
	return cmd, errors.Join(cmd.Start(), out.Close())
}

// endWorker ends a worker in order; without one it does nothing.
func endWorker(cmd *exec.Cmd, log string) error {
	if cmd == nil || cmd.ProcessState != nil {
		return nil
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), waited(cmd)); err != nil {
		text, unread := os.ReadFile(log)
		return errors.Join(fmt.Errorf("end the worker: %w: %s", err, text[max(0, len(text)-500):]), unread)
	}
	return nil
}

// waited waits for the end of a process, however it ends.
func waited(cmd *exec.Cmd) error {
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

func (p *passbook) endWorker() error { return endWorker(p.worker, p.log()) }

// stop ends the worker, then the server, if it is the embedded one.
func (p *passbook) stop(ctx context.Context) error {
	err := p.endWorker()
	if p.op.Client != nil {
		p.op.Client.Close()
		p.op.Client = nil
	}
	_, stopped := host.Stop(context.WithoutCancel(ctx), p.state(), readyTimeout)
	return errors.Join(err, stopped)
}

// environment is that of this process, with the settings of the measurement instead of the user's.
func (p *passbook) environment() []string {
	out := []string{
		"PASSBOOK_STATE_DIR=" + p.state(), "PASSBOOK_SETTINGS=" + p.settings(), "TEMPORAL_ADDRESS=" + p.op.Address,
		"TEMPORAL_NAMESPACE=" + p.op.Namespace,
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "PASSBOOK_") && name != "TEMPORAL_ADDRESS" && name != "TEMPORAL_NAMESPACE" {
			out = append(out, v)
		}
	}
	return out
}

// definition writes a pipeline once for each kind of work.
func (p *passbook) definition(w work) (operations.Definition, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, err := json.Marshal(w)
	if err != nil {
		return operations.Definition{}, err
	}
	def, made := p.defs[string(key)]
	if !made {
		def, err = pipelineFor(filepath.Join(p.temp, fmt.Sprint("definition-", len(p.defs))), w)
		p.defs[string(key)] = def
	}
	return def, err
}

func (p *passbook) begin(ctx context.Context, name string, w work) error {
	def, err := p.definition(w)
	if err != nil {
		return err
	}
	st, err := p.op.Start(ctx, def, p.dir(name))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids[name] = st.RunID
	return err
}

// await counts the passes in the journal.
func (p *passbook) await(ctx context.Context, name string) (answers int, err error) {
	p.mu.Lock()
	id := p.ids[name]
	p.mu.Unlock()
	if err := p.op.Client.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
		return 0, fmt.Errorf("wait for run %s to end: %w", id, err)
	}
	for line, err := range p.dir(name).Lines(0) {
		if err != nil {
			return answers, err
		}
		if line.Event.Kind == run.KindPassEnd {
			answers++
		}
	}
	return answers, nil
}

// executionBefore returns the execution that an execution of a run continues; empty: it is the first.
func (p *passbook) executionBefore(ctx context.Context, id, execution string) (string, error) {
	history := p.op.Client.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := history.Next()
	if err != nil {
		return "", fmt.Errorf("read the history of run %s: %w", id, err)
	}
	return first.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(), nil
}
