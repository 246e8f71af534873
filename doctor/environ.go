package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// given is the environment that calls get.
type given struct {
	variables []string // nil: not known
	only      bool     // only PATH is known
	whose     string
	unread    error // why what was handed over does not count
}

// environment is what is known of the environment of a run's calls.
func (e *examiner) environment(claim run.Claim) given {
	if !operate.HostBound(claim.Store) {
		return e.workers("the environment of the worker that makes them, because its store is no folder of one host")
	}
	handed, err := environ.Load(e.Settings.StateDir, claim.RunID)
	if err == nil {
		return given{variables: handed.Variables, whose: fmt.Sprintf("the environment of its %s at %s", handed.By, when(handed.At))}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e.workers("the worker's environment (no other one was handed over)")
	case !errors.Is(err, environ.ErrNotPrivate):
		return given{whose: "none", unread: err}
	}
	g := e.workers("the worker's environment (" + err.Error() + ")")
	g.unread = err
	return g
}

// workers is the environment of this machine's worker, as far as it has announced it: a process keeps the PATH that it was started with. Workers of other
// hosts, and others of this one, are not asked.
func (e *examiner) workers(whose string) given {
	w := e.status.Worker
	if w == nil || w.Path == "" {
		return given{whose: whose}
	}
	return given{variables: []string{"PATH=" + w.Path}, only: true, whose: fmt.Sprintf("%s, with the PATH that the worker of this machine announced when it started (pid %d, %s)", whose, w.Process.PID, when(w.Started))}
}

// ofRun is the run that was named, with its plan and the environment of its calls. False: none was named, or it cannot be read.
func (e *examiner) ofRun() (pipeline.Plan, given, bool) {
	if e.Run == nil {
		return pipeline.Plan{}, given{}, false
	}
	claim, err := e.Run.Claim()
	if err != nil {
		return pipeline.Plan{}, given{}, false
	}
	plan, err := e.Run.Plan()
	return plan, e.environment(claim), err == nil
}

// calls says which environment the calls of an open run get, and what a resume from this terminal would change.
func (e *examiner) calls(claim run.Claim, d rundir.Dir, status run.Status) {
	plan, err := d.Plan()
	if err != nil || claim.Store == "" || e.Run == nil && !operate.HostBound(claim.Store) {
		return // `starter check` names a plan that is missing
	}
	name, g := fmt.Sprintf("env %.8s", claim.RunID), e.environment(claim)
	again := e.typed("resume %s", d.Root) + ", typed in this terminal"
	if g.unread != nil && g.variables == nil {
		e.say(Problem, "agents", name, "make the file readable, or remove it; then "+again, "none of its calls is made while its environment cannot be read: %v", g.unread)
		return
	}
	if g.variables == nil {
		e.say(Unchecked, "agents", name, "", "its calls get %s, which is not known here", g.whose)
		return
	}
	here := agent.Allowed(os.Environ(), operate.VariablesOf(plan))
	fix := again
	if status == run.Running || status == run.Replaying {
		fix = e.typed("pause %s", d.Root) + ", then " + fix
	}
	if !operate.HostBound(claim.Store) {
		fix = "start the workers from a terminal that has what is missing: " + e.typed("server stop") + ", then " + e.typed("server start")
	}
	worst, words := OK, []string{}
	for _, program := range programs(plan.Agents) {
		state, text := compare(program, g, here)
		words = append(words, text)
		worst = worse(worst, state)
	}
	if names := g.differing(plan.Agents, here); len(names) > 0 {
		worst = worse(worst, Warning)
		words = append(words, strings.Join(names, ", ")+" set otherwise in this terminal")
	}
	if g.unread != nil {
		worst = worse(worst, Warning)
	}
	if worst == OK {
		fix = ""
	}
	words = append(words, "PATH="+environ.Value(g.variables, "PATH"))
	e.say(worst, "agents", name, fix, "its calls get %s: %s", g.whose, strings.Join(words, "; "))
}

// programs of agents, each once, but the built-in one.
func programs(agents []pipeline.Agent) []string {
	var out []string
	for _, a := range agents {
		if len(a.Run) > 0 && a.Run[0] != pipeline.Scripted && !slices.Contains(out, a.Run[0]) {
			out = append(out, a.Run[0])
		}
	}
	return out
}

// compare looks for a program as the calls of a run do, and as this terminal does.
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

// differing names the variables with keys, and those that the agents name, that this terminal has and the calls do not have so. No value is shown.
func (g given) differing(agents []pipeline.Agent, here []string) []string {
	if g.only {
		return nil
	}
	var names []string
	for _, k := range usual() {
		names = append(names, k.keys...)
	}
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

// workersAgents looks for the agents as the worker of this machine does, where its environment is the one that counts.
func (e *examiner) workersAgents() {
	g := e.workers("the worker's environment")
	if e.Settings.LocalStore() || e.Run != nil || !g.only {
		return
	}
	for _, program := range programs(e.Agents) {
		if _, err := environ.LookPath(program, g.variables); err != nil {
			e.say(Problem, "agents", program, "start the worker from a terminal that finds it: "+e.typed("server stop")+", then "+e.typed("server start"),
				"calls of runs whose store is a bucket get %s, which does not find it: PATH=%s", g.whose, environ.Value(g.variables, "PATH"))
		}
	}
}
