package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/probe"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// probeTimeout bounds how long a program takes to print its version.
const probeTimeout = 10 * time.Second

// ExamineAgents asks the programs of agents for their version and login, started as their calls are: with the
// environment of the run, in the same sandbox, under a supervisor.
func (a *Activities) ExamineAgents(ctx context.Context, in contract.ExamineInput) (contract.ExamineResult, error) {
	from := environ.FromContext(ctx)
	if from == nil {
		from = os.Environ()
	}
	out := contract.ExamineResult{Worker: fmt.Sprint(a.worker.PID), Path: environ.Value(from, "PATH")}
	for _, asked := range in.Agents {
		if len(asked.Run) == 0 {
			return out, badInput("an agent without a command")
		}
		ag := pipeline.Agent{Run: asked.Run, Env: asked.Env,
			Confinement: pipeline.Confinement{Sandbox: asked.Sandbox, Network: asked.Network}}
		cmd := agent.Command{Run: in.RunID, Argv: a.agentArgv(ag), Env: a.agentEnv(ag), Environment: from}
		held := a.confine(&cmd, ag.Confinement, a.bounds().OfAgent(ag), in.RunID, "")
		answer := probe.Agent(ctx, cmd, a.probe(cmd))
		if answer.Sandbox = held.String(); held.Mode == "" {
			answer.Sandbox = sandbox.None
		}
		a.redactAll(&answer.Version, &answer.Failed, &answer.Missing, &answer.Printed)
		out.Agents = append(out.Agents, answer)
	}
	return out, nil
}

// probe returns the function that starts the program of a command as calls are started.
func (a *Activities) probe(of agent.Command) probe.Run {
	return func(ctx context.Context, path string, args ...string) (string, error) {
		cmd := of
		cmd.Argv, cmd.Timeout = append([]string{path}, args...), probeTimeout
		return a.runBriefly(ctx, cmd, nil, "the doctor no longer waits")
	}
}

// runBriefly runs a command under a supervisor, in its sandbox if it has one, with this standard input and without a
// directory that stays. It returns what the command printed. cause is why it ends with the context.
func (a *Activities) runBriefly(ctx context.Context, cmd agent.Command, input []byte, cause string) (printed string, err error) {
	if err := os.MkdirAll(a.cfg.Scratch, 0o700); err != nil {
		return "", err
	}
	root, err := os.MkdirTemp(a.cfg.Scratch, "brief-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, calls.RemoveFolder(root, "")) }()
	dir := filepath.Join(root, "1")
	cmd.Output = 1 << 20
	cmd.Dir = filepath.Join(dir, calls.WorkDir)
	calls.Within(dir, &cmd)
	if cmd.Sandbox != nil {
		s := *cmd.Sandbox
		s.Delivery, s.Brief = dir, true
		cmd.Sandbox = &s
	}
	if err := errors.Join(os.MkdirAll(cmd.Dir, 0o700), os.WriteFile(cmd.Prompt, input, 0o600)); err != nil {
		return "", err
	}
	p, err := a.startSupervisor(dir, nil)
	if err != nil {
		return "", err
	}
	exit, err := agent.Run(ctx, p, cmd, cause)
	if err != nil {
		return "", err
	}
	out, err := calls.ReadOutputs(dir, cmd.Output)
	if printed = string(out.Stdout); printed == "" {
		printed = string(out.Stderr)
	}
	switch {
	case err != nil:
		return printed, err
	case exit.TimedOut:
		return printed, fmt.Errorf("no answer within %s", cmd.Timeout)
	case exit.Signal != "":
		return printed, fmt.Errorf("ended by a signal: %s", exit.Signal)
	case exit.Code != 0:
		return printed, fmt.Errorf("exit status %d", exit.Code)
	}
	return printed, nil
}
