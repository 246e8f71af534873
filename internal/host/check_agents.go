package host

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/probe"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// agents checks the programs of the definition's agents, or the well-known ones that are installed. The worker of this
// machine asks them, as the calls of the named run find them, and otherwise as those of the next start or resume in
// this terminal. If no worker runs, this process asks them.
func (e *examiner) agents(ctx context.Context, o *operations.Operator) {
	e.from = os.Environ()
	runID := ""
	if e.Run != nil {
		claim, err := e.Run.Claim()
		plan, unplanned := e.Run.Plan()
		if err == nil && unplanned == nil {
			runID = claim.RunID
			if e.Agents == nil {
				e.Agents = asked(plan.Agents)
			}
			if handed, err := environ.Load(e.Settings.StateDir, runID); err == nil {
				e.from = handed.Variables
			}
		}
	}
	agents, usual := e.each()
	answers, byWorker := e.askWorker(ctx, o, runID, agents)
	if !byWorker {
		for _, a := range agents {
			answers = append(answers, e.askHere(ctx, a))
		}
	}
	found := false
	for i, a := range answers {
		switch {
		case !usual || a.Path != "":
			found = true
			e.answer(agents[i], a)
		case e.OnlyAgents:
			found = true
			about, _ := adapter.SetupOf(a.Program)
			e.add(Unchecked, "agents", a.Program, about.Install, "not in PATH")
		}
	}
	if usual && !found {
		e.add(Unchecked, "agents", "agents", e.typed("doctor --config FILE"),
			"neither claude nor codex nor gemini is in PATH; name a pipeline to check its agents")
	}
}

// each returns the agents to ask, one for each program. usual: they are the well-known ones, which may be missing.
func (e *examiner) each() (agents []pipeline.Agent, usual bool) {
	if e.Agents == nil {
		for _, name := range adapter.Programs() {
			agents = append(agents, pipeline.Agent{Run: []string{name}})
		}
		return agents, true
	}
	var seen []string
	for _, a := range e.Agents {
		if len(a.Run) == 0 || slices.Contains(seen, a.Run[0]) {
			continue
		}
		seen = append(seen, a.Run[0])
		if a.Run[0] == pipeline.Scripted {
			e.ok("agents", a.Run[0], "built in")
			continue
		}
		agents = append(agents, a)
	}
	return agents, false
}

// asked lists the agents whose programs answer these checks safely. Others are only looked up.
func asked(agents []pipeline.Agent) []pipeline.Agent {
	return slices.DeleteFunc(slices.Clone(agents), func(a pipeline.Agent) bool {
		if len(a.Run) == 0 {
			return true
		}
		_, known := adapter.SetupOf(a.Run[0])
		return !known && a.Run[0] != pipeline.Scripted
	})
}

// askWorker has the worker of this machine ask the programs. It reports who asked them; false: this process has to.
func (e *examiner) askWorker(ctx context.Context, o *operations.Operator, runID string,
	agents []pipeline.Agent) ([]contract.AgentAnswer, bool) {
	const here = "; this process asked the agents, without their sandbox"
	switch {
	case len(agents) == 0:
		return nil, false
	case o == nil:
		e.add(Unchecked, "agents", "asked by", e.typed("doctor --agents --start"), "no worker runs on this machine"+here)
		return nil, false
	}
	op := *o
	op.Environ = e.from
	out, err := op.ExamineAgents(ctx, runID, agents)
	switch {
	case errors.Is(err, operations.ErrNoWorker):
		e.add(Unchecked, "agents", "asked by", e.typed("doctor --agents --start"), "no worker runs on this machine"+here)
		return nil, false
	case err != nil || len(out.Agents) != len(agents):
		e.add(Warning, "agents", "asked by", e.starts(op), "the worker of this machine does not answer: %v"+here, err)
		return nil, false
	}
	whose := "the environment of this terminal"
	switch {
	case runID != "":
		whose = "the environment of the run's calls"
	case !operations.HostBound(e.Settings.Store):
		whose = "its own environment, as calls of runs whose store is a bucket"
	}
	e.ok("agents", "asked by", "the worker of this machine (pid %s), with %s, in the sandbox of calls", out.Worker, whose)
	return out.Agents, true
}

// askHere asks the program of an agent from this process.
func (e *examiner) askHere(ctx context.Context, a pipeline.Agent) contract.AgentAnswer {
	cmd := agent.Command{Argv: a.Run, Env: a.Env, Environment: e.from, Dir: os.TempDir()}
	env := cmd.Environ()
	return probe.Agent(ctx, cmd, func(ctx context.Context, path string, args ...string) (string, error) {
		return printed(ctx, env, path, args...)
	})
}

// answer reports what was found about an agent.
func (e *examiner) answer(of pipeline.Agent, a contract.AgentAnswer) {
	name := filepath.Base(of.Run[0])
	about, known := adapter.SetupOf(name)
	add := func(s CheckState, fix, format string, args ...any) {
		if a.Sandbox != "" {
			format, args = format+" (sandbox: %s)", append(args, a.Sandbox)
		}
		e.add(s, "agents", name, fix, format, args...)
	}
	switch {
	case a.Missing != "":
		e.add(Problem, "agents", name, cmp.Or(about.Install,
			"install it, or give its full path under agent.run in the pipeline file"), "%s", a.Missing)
	case a.Failed != "" && known:
		add(Problem, about.Install, "%s exists and does not answer --version: %s", a.Path, a.Failed)
	case a.Failed != "":
		add(Unchecked, "", "%s exists; it does not answer --version, which is optional", a.Path)
	case a.Login == contract.LoginWith:
		add(OK, "", "%s: %s, with %s (only a call shows whether it is accepted)", a.Path, a.Version, a.With)
	case a.Login == contract.LoginNotPassed:
		add(Warning, "write env: ["+a.With+"] in the agent of the pipeline file",
			"%s: %s; %s is set, and calls do not get it", a.Path, a.Version, a.With)
	case a.Login == contract.LoginMissing:
		worst := Problem
		if e.Agents == nil {
			worst = Warning // it may be unused
		}
		printed := ""
		if a.Printed != "" {
			printed = " (" + a.Printed + ")"
		}
		add(worst, about.SignIn, "%s: %s, not logged in%s", a.Path, a.Version, printed)
	case a.Login == contract.LoginOK:
		add(OK, "", "%s: %s, logged in", a.Path, a.Version)
	default:
		add(Unchecked, "", "%s: %s; only a call shows whether it is logged in", a.Path, a.Version)
	}
}
