package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/pipeline/template"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// CheckStart reports what a new run lacks, before anything is claimed or changed: all problems of the definition, of
// what it names and of its projects; then what the settings forbid, and sources that no run can start from.
func (o Operator) CheckStart(ctx context.Context, def Definition, dir rundir.Dir) error {
	members, problems := o.members(ctx, def)
	problems = append(o.lacks(def), problems...)
	for _, m := range members {
		problems = append(problems, o.lacks(m.Definition)...)
	}
	if len(problems) > 0 {
		return problems
	}
	if err := o.allowsStart(ctx, def, dir); err != nil {
		return err
	}
	for _, m := range members {
		if err := o.allowsStart(ctx, m.Definition, projectDir(dir, m.Alias)); err != nil {
			return fmt.Errorf("project %s: %w", m.Alias, err)
		}
	}
	return nil
}

// allowsStart compares a definition with the settings, and checks its source.
func (o Operator) allowsStart(ctx context.Context, def Definition, dir rundir.Dir) error {
	if err := o.allows(def.Plan); err != nil {
		return err
	}
	if err := def.CheckRequests(o.Settings); err != nil {
		return err
	}
	return CheckSource(ctx, def, dir)
}

// allows compares a plan with the settings.
func (o Operator) allows(p *pipeline.Plan) error {
	return policyOf(p, "", run.Budget{CapUSD: p.Budget.USD}).Allowed(o.Settings, p.Budget.USD)
}

// lacks lists what a run of a definition lacks that the definition names: its task, agents and folder.
func (o Operator) lacks(def Definition) pipeline.Problems {
	folder := def.withoutFolder()
	all := slices.Concat(def.withoutTask(), def.WithoutPrograms(o.ownPrograms()), o.withoutSandboxHere(def), folder)
	if folder == nil {
		all = append(all, def.withoutScripts(o.Settings.LocalStore())...)
	}
	return all
}

// withoutTask lists the prompts that use the task of a run that has none.
func (d Definition) withoutTask() (all pipeline.Problems) {
	if d.Task != "" {
		return nil
	}
	var seen []string
	for _, r := range d.Plan.Roles {
		if slices.Contains(seen, r.Prompt) || r.Prompt == "" {
			continue
		}
		seen = append(seen, r.Prompt)
		text, err := fs.ReadFile(d.Folder, r.Prompt)
		if err != nil {
			continue // the run reports it when it stores its inputs
		}
		for _, piece := range template.Scan(string(text)) {
			if piece.Name == "task" {
				all = append(all, pipeline.Problem{File: filepath.Join(d.Home, r.Prompt), Line: piece.Line,
					What: "uses {{task}}, and this run has no task: add what it is to do, as in: starter run NAME \"TASK\""})
				break
			}
		}
	}
	return all
}

// WithoutPrograms lists the agents of roles whose programs are not in the PATH of an environment; nil: they are not
// looked up, because other hosts may make the calls.
func (d Definition) WithoutPrograms(env []string) (all pipeline.Problems) {
	if env == nil {
		return nil
	}
	for _, a := range d.usedAgents() {
		if strings.Contains(a.Run[0], "/") {
			continue
		}
		if _, err := environ.LookPath(a.Run[0], env); err != nil {
			all = append(all, d.agentProblem(a, a.Run[0], err, "install it, or give the path of the program"))
		}
	}
	return all
}

// withoutScripts lists the agents of roles whose program or script is a path to no file. A relative path lies in the
// source of the run. On other hosts, absolute paths may lead elsewhere.
func (d Definition) withoutScripts(ownHost bool) (all pipeline.Problems) {
	for _, a := range d.usedAgents() {
		path, check := a.Run[0], environ.Executable
		if len(a.Run) > 1 && slices.Contains(interpreters, filepath.Base(path)) && !strings.HasPrefix(a.Run[1], "-") {
			path, check = a.Run[1], func(path string) error { _, err := os.Stat(path); return err }
		} else if !strings.Contains(path, "/") {
			continue
		}
		at := path
		switch {
		case filepath.IsAbs(path) && !ownHost, d.Follow != nil && d.Follow.Workspace != nil:
			continue
		case !filepath.IsAbs(path) && d.Plan.Workspace != nil:
			source, err := sourceOf(d)
			if err != nil {
				continue // reported with the source
			}
			at = filepath.Join(source, path)
		}
		err := check(at)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: no file %s", environ.ErrNotFound, at)
		}
		if err != nil {
			all = append(all, d.agentProblem(a, path, err, "create it, or correct the path"))
		}
	}
	return all
}

// interpreters are programs whose first argument is a script, unless it is an option.
var interpreters = []string{"sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby"}

// usedAgents lists the agents that roles call, without the scripted one.
func (d Definition) usedAgents() (all []pipeline.Agent) {
	for _, a := range d.Plan.Agents {
		used := slices.ContainsFunc(d.Plan.Roles, func(r pipeline.Role) bool {
			return r.Agent == a.Name || slices.Contains(r.Limits.Fallback, a.Name)
		})
		if used && len(a.Run) > 0 && a.Run[0] != pipeline.Scripted {
			all = append(all, a)
		}
	}
	return all
}

func (d Definition) agentProblem(a pipeline.Agent, named string, err error, advice string) pipeline.Problem {
	at := []string{"agent", "run"}
	if a.Name != "" {
		at = []string{"agents", a.Name, "run"}
	}
	return d.problem(at, fmt.Sprintf("names %s: %v; %s", named, err, advice))
}

// problem is a problem of the value at a place of the definition.
func (d Definition) problem(at []string, what string) pipeline.Problem {
	at, line := pipeline.Locate(d.Source, at)
	return pipeline.Problem{File: d.Parsed.File, Line: line, What: strings.Join(at, ".") + " " + what}
}

// withoutFolder reports a workspace that does not exist, unless the run has another source.
func (d Definition) withoutFolder() pipeline.Problems {
	w := d.Plan.Workspace
	if w == nil || w.Dir == "" || d.Home == "" || d.WorkOn != "" || d.Follow != nil {
		return nil
	}
	if fi, err := os.Stat(filepath.Join(d.Home, filepath.FromSlash(w.Dir))); err == nil && fi.IsDir() {
		return nil
	}
	return pipeline.Problems{d.problem([]string{"workspace", "dir"}, fmt.Sprintf("names %s, and there is no such "+
		"folder; create it, correct the path, or run with --source DIR", w.Dir))}
}
