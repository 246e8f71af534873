package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// Names under which this test binary is another program.
const (
	agentProgram  = "agent"
	workerProgram = "worker"
)

// TestMain is also the worker, supervisor and agent of runs with a real server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		syscall.Exit(supervisor.Main(os.Args[2:]))
	}
	var err error
	switch filepath.Base(os.Args[0]) {
	case agentProgram:
		var code int
		if code, err = answer(filepath.Dir(os.Args[0])); err == nil {
			syscall.Exit(code)
		}
	case workerProgram:
		err = poll(context.Background())
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
}

// poll is the worker: it polls until it is killed.
func poll(ctx context.Context) error {
	settings, err := config.Load(nil)
	if err != nil {
		return err
	}
	conn, err := host.FindConnection(settings)
	if err != nil {
		return err
	}
	id, err := host.HostID(settings.StateDir)
	if err != nil {
		return err
	}
	c, err := conn.Dial(ctx, "", slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	defer c.Close()
	return host.RunWorker(ctx, host.WorkerConfig{
		Operator: operations.Operator{Settings: settings, Client: c, Host: id}})
}

// realFaults are those of agentFaults that a process can have which no supervisor ends, and that no run waits long for.
var realFaults = []string{"exit", "empty", "no output", "truncated", "binary", "no change", "wrong answer", "gone",
	"login", "credit", "model", "too long"}

// agentLine is one line of the log of agents: an answer.
type agentLine struct {
	Call   string `json:"call"` // and delivery
	Usable bool   `json:"usable"`
}

const (
	agentLog  = "agents.jsonl"
	agentPlan = "agent.json"
)

// answer is the agent: the seed and the delivery determine what it does.
func answer(home string) (code int, err error) {
	var told struct {
		Seed   uint64
		Faults bool
	}
	raw, err := os.ReadFile(filepath.Join(home, agentPlan))
	if err == nil {
		err = json.Unmarshal(raw, &told)
	}
	if err != nil {
		return 0, err
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 0, err
	}
	p := draw(told.Seed)
	p.agentFaults = told.Faults
	w := newWorld(told.Seed, home, p, "")
	w.faults = realFaults
	call := w.callName(os.Getenv(agent.MarkEnv))
	b := w.behave(withoutRun(w.name(call)), string(prompt), false)
	const faster = 100 // than in the simulated time
	time.Sleep(b.takes / faster)
	dir, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	w.leave(b, dir)
	_, oerr := io.WriteString(os.Stdout, b.stdout)
	_, eerr := io.WriteString(os.Stderr, b.stderr)
	return b.code, errors.Join(oerr, eerr, agentLine{call, b.usable}.write(home), w.failure())
}

// withoutRun replaces the run in the name of a call, which no seed determines.
func withoutRun(call string) string { return "run-1" + call[strings.LastIndex(call, "_g"):] }

// write appends a line to the log in one write.
func (l agentLine) write(home string) error {
	raw, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(home, agentLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Close())
}

// readAgents reads what the agents of a run have done into its log of calls.
func (w *world) readAgents() {
	raw, err := os.ReadFile(filepath.Join(w.root, agentLog))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.check(err)
	}
	w.calls = newCallLog()
	for line := range bytes.Lines(raw) {
		var l agentLine
		w.check(json.Unmarshal(line, &l))
		w.calls.end(l.Call, l.Usable)
	}
}
