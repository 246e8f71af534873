package pipeline

import (
	"slices"
	"strings"
)

// approved is the verdict that approves work when no condition names another verdict.
const approved = "approved"

// Approval returns the condition that the verdict of a role must meet to approve the work, such as verdict == done. It
// is the part of a condition that concerns this role: first in `until` of the step's stage, then in its quality gate,
// then in the conditions of the nearest earlier stage with the role, then in those of the nearest later stage. An empty
// condition means that no stage names a verdict and the verdict must be "approved".
func (p *Plan) Approval(stage int, step PlanStep, role string) string {
	if c := p.Stages[stage].approval(p.verdictNames(step, role)...); c != "" {
		return c
	}
	if c := p.approvalOf(p.Stages[stage], role); c != "" {
		return c
	}
	for i := range p.Stages {
		at := stage - 1 - i
		if at < 0 {
			at = i + 1 // earlier stages were checked above
		}
		if at < len(p.Stages) {
			if c := p.approvalOf(p.Stages[at], role); c != "" {
				return c
			}
		}
	}
	return ""
}

// approvalOf returns what a stage requires of the verdicts of a role.
func (p *Plan) approvalOf(s PlanStage, role string) string {
	var names []string
	for _, round := range s.Rounds {
		for _, step := range round.Steps {
			if step.Role == role {
				names = append(names, p.verdictNames(step, role)...)
			}
		}
	}
	return s.approval(names...)
}

// verdictNames lists the names that conditions use for the verdict of a step. If the role also has a score, the name
// in `as` means the score.
func (p *Plan) verdictNames(step PlanStep, role string) []string {
	if r, ok := p.Role(role); ok && r.Score != nil {
		return []string{"verdict"}
	}
	return []string{"verdict", step.As}
}

// approval returns what the conditions of a stage require of values with these names.
func (s PlanStage) approval(names ...string) string {
	if s.Repeat != nil {
		if c := onlyAbout(s.Repeat.Until, names); c != "" {
			return c
		}
	}
	return onlyAbout(s.Gate, names)
}

// onlyAbout keeps the part of a condition that is about values with these names, and renames them to verdict.
func onlyAbout(condition string, names []string) string {
	u, err := ParseUntil(condition)
	if err != nil {
		return "" // empty, or reported by Parse
	}
	var groups []string
	for _, group := range u.groups {
		var parts []string
		for _, c := range group {
			if slices.Contains(names, c.name) {
				parts = append(parts, "verdict "+c.op+" "+quoted(c.value))
			}
		}
		if len(parts) > 0 {
			groups = append(groups, strings.Join(parts, " and "))
		}
	}
	return strings.Join(groups, " or ")
}

// quoted writes a value in quotes as the syntax of conditions requires.
func quoted(value string) string {
	switch {
	case untilValue.MatchString(value) && value[0] != '"' && value[0] != '\'':
		return value
	case strings.Contains(value, `"`):
		return "'" + value + "'"
	}
	return `"` + value + `"`
}

// Approves reports whether a verdict meets a condition of [Plan.Approval]. An empty condition is met by "approved", in
// any case. An empty verdict and "rejected" never approve.
func Approves(condition, verdict string) bool {
	word := strings.TrimSpace(verdict)
	if word == "" || strings.EqualFold(word, "rejected") {
		return false
	}
	if condition == "" {
		return strings.EqualFold(word, approved)
	}
	u, err := ParseUntil(condition)
	if err != nil {
		return false
	}
	fails := func(c comparison) bool {
		return !c.holds(verdict) || c.op == "!=" && strings.EqualFold(word, c.value)
	}
	return slices.ContainsFunc(u.groups, func(group []comparison) bool { return !slices.ContainsFunc(group, fails) })
}

// JudgedFrom reports whether any step of this stage or a later one asks a role for a verdict.
func (p *Plan) JudgedFrom(stage int) bool {
	judges := func(name string) bool {
		role, ok := p.Role(name)
		return ok && role.Verdict != nil
	}
	for _, s := range p.Stages[min(max(stage, 0), len(p.Stages)):] {
		for _, round := range s.Rounds {
			for _, step := range round.Steps {
				if judges(step.Role) || slices.ContainsFunc(step.Members, judges) {
					return true
				}
			}
		}
	}
	return false
}
