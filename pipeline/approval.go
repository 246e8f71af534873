package pipeline

import (
	"slices"
	"strings"
)

// approved is the verdict that approves work where no condition names another one.
const approved = "approved"

// Approval gives the condition that a verdict of a role must meet to approve the work, such as verdict == done. It is what `until` of the step's stage
// requires of the verdict, else what its quality gate requires, else what another stage requires of the same role: the nearest before it, then the
// nearest behind it. Empty: no condition names a verdict, so it must be "approved".
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
			at = i + 1 // those before it were looked at
		}
		if at < len(p.Stages) {
			if c := p.approvalOf(p.Stages[at], role); c != "" {
				return c
			}
		}
	}
	return ""
}

// approvalOf is what a stage requires of the verdicts of a role.
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

// verdictNames are the names by which conditions know the verdict of a step. A step whose role also gives a score is known by that.
func (p *Plan) verdictNames(step PlanStep, role string) []string {
	if r, ok := p.Role(role); ok && r.Score != nil {
		return []string{"verdict"}
	}
	return []string{"verdict", step.As}
}

// approval is what the conditions of a stage require of values with these names.
func (s PlanStage) approval(names ...string) string {
	if s.Repeat != nil {
		if c := onlyAbout(s.Repeat.Until, names); c != "" {
			return c
		}
	}
	return onlyAbout(s.Gate, names)
}

// onlyAbout leaves of a condition what it requires of values with these names, and calls them verdict.
func onlyAbout(condition string, names []string) string {
	u, err := ParseUntil(condition)
	if err != nil {
		return "" // empty, or reported when the definition was read
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

// quoted is a value as a condition may have it.
func quoted(value string) string {
	switch {
	case untilValue.MatchString(value) && value[0] != '"' && value[0] != '\'':
		return value
	case strings.Contains(value, `"`):
		return "'" + value + "'"
	}
	return `"` + value + `"`
}

// Approves reports whether a verdict meets a condition of [Plan.Approval]. Without a condition only "approved" does, in capitals or not. No verdict,
// and "rejected", never approve.
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

// JudgedFrom reports whether a step of a stage, from this one on, asks a role for a verdict.
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
