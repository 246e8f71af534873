package host

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// environment returns what is known of the environment of a run's calls, and whose it is: its own, or at least the PATH
// with which this machine's worker started. Other workers are not asked.
func (e *examiner) environment(claim run.Claim) (variables []string, whose string, err error) {
	whose = "the environment of their worker, because the store of the run is not on one host"
	if operations.HostBound(claim.Store) {
		handed, err := environ.Load(e.Settings.StateDir, claim.RunID)
		if !errors.Is(err, fs.ErrNotExist) {
			return handed.Variables, fmt.Sprintf("the environment of its %s at %s", handed.By, when(handed.At)), err
		}
		whose = "the worker's environment (the run has none)"
	}
	w := e.status.Worker
	if w == nil || w.Path == "" {
		return nil, whose, nil
	}
	return []string{"PATH=" + w.Path}, fmt.Sprintf("%s, with the PATH of this machine's worker at its start (pid %d, %s)",
		whose, w.Process.PID, when(w.Started)), nil
}

// calls checks whether an open run's calls find their programs.
func (e *examiner) calls(claim run.Claim, d rundir.Dir, status run.Status) {
	plan, err := d.Plan()
	if err != nil || claim.Store == "" || e.Run == nil && !operations.HostBound(claim.Store) {
		return // `starter check` names a plan that is missing
	}
	name, again := fmt.Sprintf("env %.8s", claim.RunID), e.typed("resume %s", d.Root)+" in a terminal that finds its agents"
	variables, whose, err := e.environment(claim)
	switch {
	case err != nil:
		e.add(Problem, "agents", name, "make the file readable for this user only, or remove it, then run "+again,
			"its calls cannot use its environment: %v", err)
		return
	case variables == nil:
		e.add(Unchecked, "agents", name, "", "its calls get %s, which is not known here", whose)
		return
	}
	missing := slices.DeleteFunc(programs(plan.Agents), func(program string) bool {
		_, err := environ.LookPath(program, variables)
		return err == nil
	})
	path := environ.Value(variables, "PATH")
	if len(missing) == 0 {
		e.ok("agents", name, "its calls get %s: PATH=%s", whose, path)
		return
	}
	switch {
	case !operations.HostBound(claim.Store):
		again = "start the workers in a terminal with the missing programs: " + e.typed("server stop") + ", then " +
			e.typed("server start")
	case status == run.Running || status == run.Replaying:
		again = e.typed("pause %s", d.Root) + ", then " + again
	}
	e.add(Problem, "agents", name, again, "its calls get %s, which does not find %s: PATH=%s", whose,
		strings.Join(missing, ", "), path)
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
