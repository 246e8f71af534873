package pipeline

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/pipeline/template"
)

// checkReferences reports roles, steps and names that stages refer to and that do not exist.
func (d *decoder) checkReferences(names map[string]*yaml.Node) {
	for si, s := range d.def.Stages {
		at := location{"stages"}.item(si)
		if key, dup := names[s.Name]; dup {
			d.problem(key, "as %q is the name of a stage too; choose another", s.Name)
		}
		for pi, p := range s.Steps {
			step := d.get(d.steps(at, s).item(pi))
			d.checkRoles(step, p)
			if p.See != "" {
				if _, err := d.def.seen(si, pi); err != nil {
					d.problem(step, "%v", err)
				}
			}
		}
		d.checkConditions(at, s)
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

func (d *decoder) checkRoles(at *yaml.Node, p Step) {
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

// checkConditions checks that something in the stage sets a value for each name in its conditions.
func (d *decoder) checkConditions(at location, s Stage) {
	if s.Repeat != nil {
		d.checkCondition(at.key("repeat").key("until"), s, s.Repeat.Until)
	}
	d.checkCondition(at.key("quality_gate"), s, s.Gate)
}

func (d *decoder) checkCondition(at location, s Stage, condition string) {
	u, err := ParseUntil(condition)
	if err != nil {
		return // empty, or already reported
	}
	for _, n := range u.Names() {
		if problem := d.valueless(s, n); problem != "" {
			d.wrong(at, "asks for %s, %s", n, problem)
		}
	}
	d.checkPossible(at, s, u)
}

// valueless returns why a name of a condition never gets a value, or "".
func (d *decoder) valueless(s Stage, name string) string {
	gives := func(want func(Role) bool) bool {
		return slices.ContainsFunc(s.Steps, func(p Step) bool {
			r, ok := d.roleNamed(p.Role)
			return ok && want(r)
		})
	}
	scored := func(r Role) bool { return r.Score != nil }
	judged := func(r Role) bool { return r.Verdict != nil }
	if rounds, is := ScoreGain(name); is {
		if problem := checkGain(s, rounds); problem != "" {
			return problem
		}
		name = "score"
	}
	switch name {
	case "score":
		if !gives(scored) {
			return "and no role step of the stage has one; write score: {find: ..., range: ...} in the role that does"
		}
	case "verdict":
		if !gives(judged) {
			return "and no role step of the stage has one; write verdict: {find: ...} in the role that does"
		}
	default:
		return d.valuelessStep(s, name)
	}
	return ""
}

func (d *decoder) valuelessStep(s Stage, name string) string {
	known := []string{"score", "verdict"}
	for _, p := range s.Steps {
		r, isRole := d.roleNamed(p.Role)
		valued := p.Run != "" || isRole && (r.Score != nil || r.Verdict != nil)
		switch {
		case p.As == name && valued:
			return ""
		case p.As == name:
			return "a step without a score, a verdict or an exit code; give its role a score or a verdict, or name " +
				"another step"
		case p.As != "":
			known = append(known, p.As)
		}
	}
	return "which no step of the stage is called; " + strings.TrimSpace(suggest(name, known))
}

func (d *decoder) roleNamed(name string) (Role, bool) {
	i := slices.IndexFunc(d.def.Roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return d.def.Roles[i], true
}
