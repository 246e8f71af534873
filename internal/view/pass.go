package view

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Name is the number of the pass, or its step.
func (p Pass) Name() string { return passName(p.Number, p.Step) }

func passName(number int, step string) string {
	if number > 0 {
		return fmt.Sprint(number)
	}
	return step
}

// By is the member or the role, or the title of a command.
func (p Pass) By() string { return cmp.Or(p.Member, p.Role, p.Title) }

// Judgement is what the pass returned besides its work: a value, a verdict, a score.
func (p Pass) Judgement() []string {
	var parts []string
	if p.Value != "" {
		parts = append(parts, p.Value)
	}
	if p.Verdict != "" && p.Verdict != p.Value {
		parts = append(parts, p.Verdict)
	}
	if p.Score != nil {
		parts = append(parts, fmt.Sprintf("score %.1f", *p.Score))
	}
	return parts
}

// FailedChecks are the failed checks of the pass with what they found.
func (p Pass) FailedChecks() []string {
	var all []string
	for _, c := range p.Checks.Checks {
		if !c.Passed {
			all = append(all, strings.TrimSuffix(c.Name+": "+c.Detail, ": "))
		}
	}
	return all
}

// Result is the judgement of the pass and the result of its checks.
func (p Pass) Result() string {
	parts := append(p.Judgement(), p.FailedChecks()...)
	if passed, all := p.Checks.Count(); all > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d checks", passed, all))
	}
	parts = append(parts, p.Checks.Warnings...)
	if p.Reused {
		parts = append(parts, "reused")
	}
	return strings.Join(parts, ", ")
}

// Bad reports whether the pass failed, or found something.
func (p Pass) Bad() bool {
	return p.Outcome != run.CategoryOK || !p.Checks.Passed && len(p.Checks.Checks) > 0 || p.Value == "failed"
}

// Changes is what the pass changed: 2 files, or artifact.
func (p Pass) Changes() string {
	switch {
	case p.Changed > 0:
		return run.Plural(p.Changed, "file")
	case p.Modified && p.Commit == "":
		return "artifact"
	}
	return ""
}

// Name is the number of the pass, or its step.
func (f Failure) Name() string { return passName(f.Number, f.Step) }
