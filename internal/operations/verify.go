package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Verified is the result of running the gates of a finished run again.
type Verified struct {
	RunID  string `json:"run_id"`
	Tree   string `json:"tree"` // digest of the final tree
	Passed bool   `json:"passed"`
	Gates  []Gate `json:"gates"`
}

// Results of a gate.
const (
	gatePassed = string(run.CategoryOK)
	gateFailed = "failed"
)

// Gate is one command of a run. Equal commands of several steps are one gate.
type Gate struct {
	Steps      []string `json:"steps"`
	Command    string   `json:"command"`
	Passed     bool     `json:"passed"`
	ExitCode   int      `json:"exit_code"`
	DurationMS int64    `json:"duration_ms"`
	Recorded   string   `json:"recorded"` // last value in the run: ok, failed, or empty if it was not reached
	Problem    string   `json:"problem"`  // why it was ended or did not start; or empty
	Sandbox    string   `json:"sandbox"`
	Output     string   `json:"output"` // the end of what it printed, with redacted secrets

	step pipeline.PlanStep
}

// Verify runs the gates of a finished run again, each on a new copy of its final tree. Neither the run directory nor
// the source changes. own are the addresses of Passbook, which no gate may open.
func Verify(ctx context.Context, settings config.Settings, dir rundir.Dir, secrets *redact.Redactor,
	own []string) (Verified, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Verified{}, err
	}
	if err := MayExecute(ctx, dir, claim); err != nil {
		return Verified{}, err
	}
	v, err := newVerification(dir, claim)
	if err != nil {
		return Verified{}, err
	}
	if v.store, err = OpenStore(ctx, claim.Store); err != nil {
		return Verified{}, err
	}
	v.settings, v.secrets, v.own, v.host = settings, secrets, own, sandbox.Examine()
	if v.variables, err = verifyVariables(settings.StateDir, claim.RunID); err != nil {
		return Verified{}, err
	}
	secrets.Learn(v.variables)
	out := Verified{RunID: claim.RunID, Tree: v.state.Tree.Digest, Passed: true, Gates: v.gates}
	for i := range out.Gates {
		if err := v.run(ctx, &out.Gates[i]); err != nil {
			return out, fmt.Errorf("verify %s: %w", dir.Root, err)
		}
		out.Passed = out.Passed && out.Gates[i].Passed
	}
	return out, nil
}

// verifyVariables returns the environment of the run's calls; without one, that of the terminal.
func verifyVariables(stateDir, runID string) ([]string, error) {
	e, err := environ.Load(stateDir, runID)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Environ(), nil
	}
	return e.Variables, err
}

// verification runs gates.
type verification struct {
	dir       string // of the run
	settings  config.Settings
	secrets   *redact.Redactor
	own       []string // addresses of Passbook
	store     *store.Store
	host      sandbox.Host
	variables []string
	plan      pipeline.Plan
	state     run.State
	workspace run.Workspace
	gates     []Gate
}

// newVerification reads the gates of a run, and refuses one that has none or is not finished.
func newVerification(dir rundir.Dir, claim run.Claim) (*verification, error) {
	refuse := func(early bool, format string, args ...any) error {
		return &RefusedError{Verb: "verify", Why: fmt.Sprintf(format, args...), FailedPrecondition: early}
	}
	now, err := dir.Now()
	if err != nil {
		return nil, err
	}
	if !now.State.Status.Settled() {
		return nil, refuse(true, "run %s in %s is %s, and only a finished run has a final tree: let it finish, or "+
			"cancel it with: %s", claim.RunID, dir.Root, now.State.Status, shell.Line("starter", "cancel", dir.Root))
	}
	start, err := dir.First()
	if err != nil {
		return nil, err
	}
	if start.Workspace == nil || now.State.Tree == nil {
		return nil, refuse(false, "run %s in %s has no workspace, so there is no tree to verify", claim.RunID, dir.Root)
	}
	v := &verification{dir: dir.Root, state: now.State, workspace: *start.Workspace}
	if v.plan, err = dir.Plan(); err != nil {
		return nil, err
	}
	v.gates = gatesOf(v.plan)
	if len(v.gates) == 0 {
		return nil, refuse(false, "the pipeline of run %s in %s has no command: add a step such as {run: make test}, "+
			"and start a new run", claim.RunID, dir.Root)
	}
	return v, v.recorded(dir)
}

// gatesOf returns the commands of a plan, each once.
func gatesOf(plan pipeline.Plan) []Gate {
	var all []Gate
	at := map[string]int{}
	for _, stage := range plan.Stages {
		for _, round := range stage.Rounds {
			for _, step := range round.Steps {
				if step.Kind != pipeline.KindRun {
					continue
				}
				key := fmt.Sprintf("%q %q %v", step.Run, step.Env, step.Confinement)
				i, seen := at[key]
				if !seen {
					i, at[key] = len(all), len(all)
					all = append(all, Gate{Command: step.Run, step: step})
				}
				all[i].Steps = append(all[i].Steps, step.Key)
			}
		}
	}
	return all
}

// recorded adds the last values of the gates in the journal.
func (v *verification) recorded(dir rundir.Dir) error {
	events, _, err := dir.Events()
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Kind != run.KindPassEnd {
			continue
		}
		var p run.PassEnd
		e.Decode(&p)
		for i := range v.gates {
			for _, key := range v.gates[i].Steps {
				if key == p.Step { // only steps with a name have a value
					v.gates[i].Recorded = commandResult(p)
				}
			}
		}
	}
	return nil
}

// commandResult is the result of a command as the journal has it.
func commandResult(p run.PassEnd) string {
	if p.Outcome == run.CategoryOK && p.Validation.Passed {
		return gatePassed
	}
	return gateFailed
}

// run runs one gate on a new copy of the tree.
func (v *verification) run(ctx context.Context, g *Gate) (err error) {
	scratch, err := os.MkdirTemp("", "passbook-verify-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(scratch)) }()
	if scratch, err = filepath.EvalSymlinks(scratch); err != nil {
		return err
	}
	cmd := v.command(g, scratch)
	if err := os.Mkdir(cmd.Dir, 0o700); err != nil {
		return err
	}
	objects, err := v.checkout(ctx, cmd.Dir)
	if err != nil {
		return err
	}
	if cmd.Sandbox != nil {
		cmd.Sandbox.Objects = objects
	}
	if err := os.WriteFile(cmd.Prompt, []byte(g.Command+"\n"), 0o600); err != nil {
		return err
	}
	exit, err := start(ctx, v.settings.StateDir, scratch, cmd)
	if spawn := (*supervisor.SpawnError)(nil); errors.As(err, &spawn) || cmd.Refused != nil && err != nil {
		g.ExitCode, g.Problem = -1, v.secrets.Text(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	g.ExitCode, g.DurationMS = exit.Code, exit.Duration.Milliseconds()
	if exit.TimedOut {
		g.Problem = "ended after its timeout of " + cmd.Timeout.String()
	}
	g.Passed = exit.Code == 0 && !exit.TimedOut && !exit.Killed
	g.Output = lastOutput(v.secrets, cmd.Stdout, cmd.Stderr)
	return nil
}

// checkout makes a copy of the final tree, as the calls of the run get it.
func (v *verification) checkout(ctx context.Context, dir string) (objects string, err error) {
	rules := workspace.RulesOf(&v.plan)
	if _, err := tree.Checkout(ctx, v.store, store.Digest(v.state.Tree.Digest), dir, rules); err != nil {
		return "", fmt.Errorf("check out the final tree: %w; run: %s", err, shell.Line("starter", "check", v.dir))
	}
	of := v.workspace
	of.Commit = v.state.Commit
	return workspace.RemakeGit(ctx, v.settings.StateDir, of, dir)
}

// command is a gate with its limits and its sandbox.
func (v *verification) command(g *Gate, scratch string) agent.Command {
	limits := v.plan.RoleLimits(g.step, pipeline.CommandRole)
	cmd := agent.Command{
		Argv: g.step.ShellArgv(), Env: g.step.Env, Environment: v.variables, Shell: true,
		Dir: filepath.Join(scratch, "work"), Mark: scratch, Timeout: limits.Timeout, Output: int64(limits.Output),
		Prompt: filepath.Join(scratch, "input"), Stdout: filepath.Join(scratch, "stdout"),
		Stderr: filepath.Join(scratch, "stderr"),
	}
	held, err := hold(g.step.Confinement, v.settings.Sandbox, v.host)
	if err == nil {
		own := BoundsOf(v.settings)
		err = own.Allow(own.OfStep(g.step))
	}
	if err == nil {
		held = held.With(sandbox.Named(cmd.Environ()))
		if open := held.Opens(v.own); open != "" {
			err = &allow.OwnServerError{Address: open}
		}
	}
	if g.Sandbox = held.String(); err != nil {
		cmd.Refused = err
		return cmd
	}
	if held.Bound() {
		cmd.Sandbox = &sandbox.Call{Held: held, Bwrap: v.host.Bwrap, Pasta: v.host.Pasta, Private: v.host.Private, Delivery: scratch,
			Offered: v.settings.Sandbox.Network, Read: v.settings.Sandbox.Read, Write: v.settings.Sandbox.Write, Hidden: []string{v.settings.StateDir}}
	}
	return cmd
}

// start runs a command under a supervisor until it ends, or ends it with the context.
func start(ctx context.Context, state, scratch string, cmd agent.Command) (agent.Exit, error) {
	argv, err := supervisor.Argv(state)
	if err != nil {
		return agent.Exit{}, err
	}
	if cmd.Sandbox != nil {
		cmd.Sandbox.Supervisor = argv
	}
	p, err := supervisor.Start(argv, scratch, nil)
	if err != nil {
		return agent.Exit{}, err
	}
	return agent.Run(ctx, p, cmd, "verify was interrupted")
}

// maxGateOutput is how much of the output of a gate is kept, in bytes.
const maxGateOutput = 4 << 10

// lastOutput returns the ends of files, redacted before they are cut: a part of a secret is not recognized.
func lastOutput(secrets *redact.Redactor, files ...string) string {
	text := ""
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		redacted := secrets.Text(string(raw))
		text += strings.ToValidUTF8(redacted[max(0, len(redacted)-maxGateOutput):], "")
	}
	return text
}

// Duration is how long the gate ran.
func (g Gate) Duration() time.Duration { return time.Duration(g.DurationMS) * time.Millisecond }
