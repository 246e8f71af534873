package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// given is the environment of calls.
type given struct {
	variables []string // nil: not known
	only      bool     // only PATH is known
	whose     string
	unread    error // why the environment of the run is not used
	runID     string
}

// environment returns what is known of the environment of a run's calls.
func (e *examiner) environment(claim run.Claim) given {
	if !operations.HostBound(claim.Store) {
		return e.workers("the environment of their worker, because the store of the run is not on one host")
	}
	handed, err := environ.Load(e.Settings.StateDir, claim.RunID)
	if err == nil {
		return given{variables: handed.Variables,
			whose: fmt.Sprintf("the environment of its %s at %s", handed.By, when(handed.At))}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.workers("the worker's environment (the run has none)")
	case !errors.Is(err, environ.ErrNotPrivate):
		return given{whose: "none", unread: err}
	}
	g := e.workers("the worker's environment (" + err.Error() + ")")
	g.unread = err
	return g
}

// workers returns the environment of this machine's worker, as far as it reported it: a process keeps the PATH with
// which it started. Other workers are not asked.
func (e *examiner) workers(whose string) given {
	w := e.status.Worker
	if w == nil || w.Path == "" {
		return given{whose: whose}
	}
	return given{variables: []string{"PATH=" + w.Path}, only: true,
		whose: fmt.Sprintf("%s, with the PATH of this machine's worker at its start (pid %d, %s)", whose, w.Process.PID,
			when(w.Started))}
}

// ofRun returns the named run, its plan and the environment of its calls. ok is false if no run is named or it cannot
// be read.
func (e *examiner) ofRun() (pipeline.Plan, given, bool) {
	if e.Run == nil {
		return pipeline.Plan{}, given{}, false
	}
	claim, err := e.Run.Claim()
	if err != nil {
		return pipeline.Plan{}, given{}, false
	}
	plan, err := e.Run.Plan()
	g := e.environment(claim)
	g.runID = claim.RunID
	return plan, g, err == nil
}

// calls checks the environment of an open run's calls, and what a resume in this terminal would change.
func (e *examiner) calls(claim run.Claim, d rundir.Dir, status run.Status) {
	plan, err := d.Plan()
	if err != nil || claim.Store == "" || e.Run == nil && !operations.HostBound(claim.Store) {
		return // `starter check` names a plan that is missing
	}
	name, g := fmt.Sprintf("env %.8s", claim.RunID), e.environment(claim)
	again := e.typed("resume %s", d.Root) + " in this terminal"
	if g.unread != nil && g.variables == nil {
		e.add(Problem, "agents", name, "make the file readable or remove it, then run "+again,
			"its calls wait until its environment can be read: %v", g.unread)
		return
	}
	if g.variables == nil {
		e.add(Unchecked, "agents", name, "", "its calls get %s, which is not known here", g.whose)
		return
	}
	here := agent.AllowedEnv(os.Environ(), operations.VariablesOf(plan))
	fix := again
	if status == run.Running || status == run.Replaying {
		fix = e.typed("pause %s", d.Root) + ", then " + fix
	}
	if !operations.HostBound(claim.Store) {
		fix = "start the workers in a terminal with the missing programs: " + e.typed("server stop") + ", then " +
			e.typed("server start")
	}
	worst, words := OK, []string{}
	for _, program := range programs(plan.Agents) {
		state, text := compare(program, g, here)
		words = append(words, text)
		worst = worse(worst, state)
	}
	if names := g.differing(plan.Agents, here); len(names) > 0 {
		worst = worse(worst, Warning)
		words = append(words, strings.Join(names, ", ")+" different in this terminal")
	}
	if g.unread != nil {
		worst = worse(worst, Warning)
	}
	if worst == OK {
		fix = ""
	}
	words = append(words, "PATH="+environ.Value(g.variables, "PATH"))
	e.add(worst, "agents", name, fix, "its calls get %s: %s", g.whose, strings.Join(words, "; "))
}

// programs lists the programs of agents, each once, except the built-in one.
func programs(agents []pipeline.Agent) []string {
	var out []string
	for _, a := range agents {
		if len(a.Run) > 0 && a.Run[0] != pipeline.Scripted && !slices.Contains(out, a.Run[0]) {
			out = append(out, a.Run[0])
		}
	}
	return out
}

// compare looks up a program in the environment of a run's calls and in this terminal.
func compare(program string, g given, here []string) (State, string) {
	theirs, err := environ.LookPath(program, g.variables)
	mine, missing := environ.LookPath(program, here)
	switch {
	case err != nil && missing != nil:
		return Problem, program + " is found neither by them nor in this terminal"
	case err != nil:
		return Problem, program + " is not found by them; this terminal finds " + mine
	case missing != nil:
		return OK, program + " is " + theirs + " (this terminal does not find it)"
	case theirs != mine:
		return Warning, program + " is " + theirs + ", and " + mine + " in this terminal"
	}
	return OK, program + " is " + theirs
}

// differing lists the variables with keys, and those that the agents name, that this terminal sets and the calls lack
// or set otherwise. No value is shown.
func (g given) differing(agents []pipeline.Agent, here []string) []string {
	if g.only {
		return nil
	}
	names := keyVariables()
	for _, a := range agents {
		names = append(names, a.Env...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		mine := environ.Value(here, name)
		return mine == "" || mine == environ.Value(g.variables, name)
	})
}

func worse(a, b State) State {
	order := []State{OK, Warning, Problem}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// workersAgents looks up the agents in the environment of this machine's worker, if that one is used.
func (e *examiner) workersAgents() {
	g := e.workers("the worker's environment")
	if e.Settings.LocalStore() || e.Run != nil || !g.only {
		return
	}
	for _, program := range programs(e.Agents) {
		if _, err := environ.LookPath(program, g.variables); err != nil {
			e.add(Problem, "agents", program,
				"start the worker in a terminal that finds it: "+e.typed("server stop")+", then "+
					e.typed("server start"),
				"calls of runs whose store is a bucket get %s, which does not find it: PATH=%s", g.whose,
				environ.Value(g.variables, "PATH"))
		}
	}
}
