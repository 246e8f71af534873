package pipeline

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/pipeline/template"
)

// checkReferences reports roles, steps and names that stages refer to and that do not exist.
func (d *decoder) checkReferences() {
	for si, s := range d.def.Stages {
		at := location{"stages"}.item(si)
		for pi, p := range s.Steps {
			step := d.get(d.steps(at, s).item(pi))
			d.checkRolesOf(step, p)
			if p.See != "" {
				if _, err := d.def.seen(si, pi); err != nil {
					d.problem(step, "%v", err)
				}
			}
		}
		d.checkConditions(at, si)
	}
	for _, r := range d.def.Roles {
		d.checkValues(r)
	}
}

// checkValues reports placeholders of a role's prompt that have no value in any step that uses the prompt.
func (d *decoder) checkValues(r Role) {
	prompted := func(name string) bool {
		other, ok := d.roleNamed(name)
		return ok && other.Prompt == r.Prompt
	}
	used := slices.DeleteFunc(slices.Clone(d.def.Stages), func(s Stage) bool {
		return !slices.ContainsFunc(s.Steps, func(p Step) bool {
			return prompted(p.Role) || slices.ContainsFunc(p.Together, prompted)
		})
	})
	if info, err := fs.Stat(d.folder, cmp.Or(r.Prompt, ".")); err != nil || !info.Mode().IsRegular() {
		return // already reported; a pipe would block
	}
	src, err := fs.ReadFile(d.folder, r.Prompt)
	if len(used) == 0 || err != nil {
		return
	}
	d.checkPlaceholders(r, string(src))
	inSets := slices.ContainsFunc(used, func(s Stage) bool { return s.ForEach != "" })
	inLanes := slices.ContainsFunc(used, func(s Stage) bool { return s.Each != nil })
	for _, piece := range template.Scan(string(src)) {
		stage := ""
		switch {
		case piece.Name == "item" && !inLanes:
			stage = "each"
		case (piece.Name == "set" || piece.Name == "theme") && !inSets:
			stage = "for_each: corpus"
		default:
			continue
		}
		d.found = append(d.found, Problem{File: r.Prompt, Line: piece.Line, What: fmt.Sprintf("%s has no value; use the "+
			"prompt in a stage with %s, or drop it here", piece.Text, stage)})
	}
}

func (d *decoder) checkRolesOf(at *yaml.Node, p Step) {
	names := p.Together
	if p.Role != "" {
		names = []string{p.Role}
	}
	for _, name := range names {
		r, ok := d.roleNamed(name)
		switch {
		case !ok:
			d.problem(at, "role %q is not one of roles; %s", name, suggest(name, d.keys(location{"roles"})))
		case len(p.Together) > 0 && r.Gives != "" && r.Gives != GivesReport:
			d.problem(at, "role %q outputs %s, and roles under together can only output reports; make it a separate step",
				name, r.Gives)
		case len(p.Together) > 0 && r.Session != "":
			d.problem(at, "role %q continues its session, and roles under together cannot; remove session from the role, "+
				"or make it a separate step", name)
		}
	}
}

func (d *decoder) roleNamed(name string) (Role, bool) {
	return d.def.role(name)
}
