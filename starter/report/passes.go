package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/starter/evidence"
)

// group is a round of a stage, with its passes.
type group struct {
	Title string
	Note  string
	Bad   bool
	Open  bool
	Rows  []row
}

// row is one pass.
type row struct {
	Name, Role, Result, Changes string
	At                          string
	DurationMS                  int64
	Attempts                    int
	Outcome                     string
	Bad                         bool
	USD                         float64
}

// groups sorts the passes by round. Of more than the page shows the last are kept.
func (v *view) groups(s source) []group {
	passes := newest(v, s.found.Passes, s.opt.Rows, "pass")
	var all []group
	last := ""
	for _, p := range passes {
		set := s.story.set[p.Seq].Set
		if key := fmt.Sprint(p.Stage, "\x00", p.Round, "\x00", set); key != last || len(all) == 0 {
			all, last = append(all, group{Title: s.title(p, set)}), key
		}
		g := &all[len(all)-1]
		r := rowOf(p)
		g.Rows, g.Bad = append(g.Rows, r), g.Bad || r.Bad
	}
	for i := range all {
		all[i].sum()
		all[i].Open = all[i].Bad || i == len(all)-1
	}
	return all
}

// title names a round as people do: a set with its theme, a cycle with its number.
func (s source) title(p evidence.Pass, set string) string {
	if set != "" {
		for _, one := range s.figures.Sets {
			if one.ID == set && one.Theme != "" {
				return set + " · " + one.Theme
			}
		}
		return set
	}
	stage := s.story.stages[p.Stage]
	name := cmp.Or(stage.title, p.Stage, "Passes")
	if stage.repeats {
		return fmt.Sprintf("%s · cycle %d", name, p.Round)
	}
	return name
}

// times says which round it is, but for the first.
func times(round int) string {
	if round < 1 {
		return ""
	}
	return fmt.Sprintf("· round %d", round)
}

// sum says what the passes of a group come to.
func (g *group) sum() {
	var ms int64
	cost, retries := 0.0, 0
	for _, r := range g.Rows {
		ms += r.DurationMS
		cost += r.USD
		retries += max(0, r.Attempts-1)
	}
	parts := []string{plural(len(g.Rows), "pass"), seconds(ms), usd(cost)}
	if retries > 0 {
		parts = append(parts, plural(retries, "retry"))
	}
	g.Note = strings.Join(parts, " · ")
}

func rowOf(p evidence.Pass) row {
	r := row{
		Name: p.Step, Role: cmp.Or(p.Member, p.Role, p.Title), At: p.StartedAt, DurationMS: p.DurationMS, Attempts: p.Attempts, Outcome: p.Outcome, USD: p.USD,
		Bad: p.Outcome != "ok" || !p.Checks.Passed && len(p.Checks.Checks) > 0 || p.Value == "failed",
	}
	if p.Number > 0 {
		r.Name = fmt.Sprint(p.Number)
	}
	r.Result = result(p)
	switch {
	case p.Changed > 0:
		r.Changes = plural(p.Changed, "file")
	case p.Modified && p.Commit == "":
		r.Changes = "artifact"
	}
	return r
}

// result is what was checked of a pass, and what it judged itself.
func result(p evidence.Pass) string {
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
	passed := 0
	for _, c := range p.Checks.Checks {
		if c.Passed {
			passed++
		} else {
			parts = append(parts, strings.TrimSuffix(c.Name+": "+c.Detail, ": "))
		}
	}
	if n := len(p.Checks.Checks); n > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d checks", passed, n))
	}
	parts = append(parts, p.Checks.Warnings...)
	if p.Reused {
		parts = append(parts, "reused")
	}
	return strings.Join(parts, ", ")
}
