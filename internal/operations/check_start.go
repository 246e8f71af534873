package operations

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/pipeline/template"
)

// CheckStart reports what a new run lacks, before anything is claimed or changed: a task that its prompts use, its
// agents in this environment, its source. Without an environment, as of a store that other hosts share, agents are not
// looked up.
func CheckStart(ctx context.Context, def Definition, dir projector.Dir, env []string) error {
	if problems := append(def.withoutTask(), def.withoutAgents(env)...); len(problems) > 0 {
		return problems
	}
	return CheckSource(ctx, def, dir)
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
					What: "uses {{task}}, and this run has no task: add --task \"what it is to do\""})
				break
			}
		}
	}
	return all
}

// withoutAgents lists the agents of roles whose programs are not found.
func (d Definition) withoutAgents(env []string) (all pipeline.Problems) {
	if env == nil {
		return nil
	}
	for _, a := range d.Plan.Agents {
		used := slices.ContainsFunc(d.Plan.Roles, func(r pipeline.Role) bool {
			return r.Agent == a.Name || slices.Contains(r.Limits.Fallback, a.Name)
		})
		if !used || len(a.Run) == 0 || a.Run[0] == pipeline.Scripted {
			continue
		}
		if strings.Contains(a.Run[0], "/") && !filepath.IsAbs(a.Run[0]) {
			continue // in the workspace of the call
		}
		if _, err := environ.LookPath(a.Run[0], env); err != nil {
			at := []string{"agent", "run"}
			if a.Name != "" {
				at = []string{"agents", a.Name, "run"}
			}
			at, line := pipeline.Locate(d.Source, at)
			all = append(all, pipeline.Problem{File: d.Parsed.File, Line: line, What: strings.Join(at, ".") + " names " +
				a.Run[0] + ": " + err.Error() + "; install it, or give the path of the program"})
		}
	}
	return all
}
