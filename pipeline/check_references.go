package pipeline

import (
	"slices"
	"strings"
)

// checkReferences reports the roles, steps and names that stages speak of and that are not there.
func (d *decoder) checkReferences() {
	for si, s := range d.def.Stages {
		if line, dup := d.lines.steps[s.Name]; dup {
			d.problemAt(line, "as %q is the name of a stage too; choose another", s.Name)
		}
		for pi, p := range s.Steps {
			d.checkRoles(p)
			if p.See != "" {
				if _, err := d.def.seen(si, pi); err != nil {
					d.problemAt(p.Line, "%v", err)
				}
			}
		}
		d.checkConditions(s)
	}
}

func (d *decoder) checkRoles(p Step) {
	names := p.Together
	if p.Role != "" {
		names = []string{p.Role}
	}
	for i, name := range names {
		r, ok := d.roleNamed(name)
		switch {
		case !ok:
			d.problemAt(p.Line, "role %q is not one of roles; %s", name, suggest(name, d.roleNames()))
		case slices.Contains(names[:i], name):
			d.problemAt(p.Line, "role %q is in together twice; keep one", name)
		case len(p.Together) > 0 && r.Gives != "" && r.Gives != GivesReport:
			d.problemAt(p.Line, "role %q gives %s, and roles together can only give reports; make it a step of its own", name, r.Gives)
		}
	}
	if len(p.Together) == 1 {
		d.problemAt(p.Line, "together has one role; write role: %s", p.Together[0])
	}
}

// checkConditions checks that something in the stage gives each name of its conditions a value.
func (d *decoder) checkConditions(s Stage) {
	if s.Repeat != nil {
		d.checkCondition(s, "until", s.Repeat.Until, d.lines.until[s.Name])
	}
	if s.Gate != "" {
		d.checkCondition(s, "quality_gate", s.Gate, d.lines.gate[s.Name])
	}
}

func (d *decoder) checkCondition(s Stage, key, condition string, line int) {
	u, err := ParseUntil(condition)
	if err != nil {
		return // already reported
	}
	for _, n := range u.Names() {
		if problem := d.valueless(s, n); problem != "" {
			d.problemAt(line, "stage %q %s asks for %s, %s", s.Name, key, n, problem)
		}
	}
}

// valueless says why a name of a condition never gets a value, or "".
func (d *decoder) valueless(s Stage, name string) string {
	gives := func(want func(Role) bool) bool {
		return slices.ContainsFunc(s.Steps, func(p Step) bool {
			r, ok := d.roleNamed(p.Role)
			return ok && want(r)
		})
	}
	scored := func(r Role) bool { return r.Score != nil }
	judged := func(r Role) bool { return r.Verdict != nil }
	switch name {
	case "score":
		if !gives(scored) {
			return "and no role step of the stage gives one; write score: {find: ..., range: ...} in the role that does"
		}
	case "verdict":
		if !gives(judged) {
			return "and no role step of the stage gives one; write verdict: {find: ...} in the role that does"
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
			return "a step without a score, a verdict or an exit code; give its role a score or a verdict, or name another step"
		case p.As != "":
			known = append(known, p.As)
		}
	}
	return "which no step of the stage is called; " + strings.TrimSpace(suggest(name, known))
}
