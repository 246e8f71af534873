package pipeline

import (
	"slices"
	"strings"
)

// approved is the verdict that approves work where its role names no other.
const approved = "approved"

// Approval lists the verdicts of a role that approve the work.
func (r Role) Approval() []string {
	if r.Verdict != nil && len(r.Verdict.Approves) > 0 {
		return r.Verdict.Approves
	}
	return []string{approved}
}

// Approves reports whether a verdict is one of those that approve the work, in any case. An empty verdict and "rejected"
// never approve.
func Approves(words []string, verdict string) bool {
	word := strings.TrimSpace(verdict)
	if word == "" || strings.EqualFold(word, "rejected") {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(strings.TrimSpace(w), word) })
}

// JudgedFrom reports whether any step of this stage or a later one asks a role for a verdict.
func (p *Plan) JudgedFrom(stage int) bool {
	judges := func(name string) bool {
		role, ok := p.Role(name)
		return ok && role.Judges()
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
