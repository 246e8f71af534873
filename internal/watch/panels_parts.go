package watch

import (
	"fmt"

	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// lanes shows how many lanes are finished, and what the active ones do.
func (t theme) lanes(s Scene, w int) []string {
	l := s.State.Lanes
	ended := l.Done + l.Failed
	text := fmt.Sprintf("  %d/%d", ended, l.Count)
	width := max(10, min(w-placed-lipgloss.Width(text), 40))
	out := []string{t.name("Ended") + t.bar(view.Bar(run.Percent(ended, l.Count), width), width) + text}
	counts := l.MergedText()
	if l.Failed > 0 {
		counts += ", " + t.bad.Render(fmt.Sprintf("%d failed", l.Failed))
	}
	n := 0
	for _, one := range s.Figures.Lanes {
		if one.Waiting {
			n++
		}
	}
	if n > 0 {
		counts += ", " + t.warn.Render(fmt.Sprintf("%d waiting for an operator", n))
	}
	out = append(out, t.name("Of them")+counts)
	for _, one := range s.Figures.Lanes {
		sign, elapsed := t.accent.Render("▶"), ""
		if one.Waiting {
			sign = t.warn.Render("!")
		}
		if one.Elapsed > 0 {
			elapsed = view.Duration(one.Elapsed)
		}
		out = append(out, ends(cut(fmt.Sprintf("%s %d %s  ", sign, one.Number, one.Name)+t.dim.Render(one.Does),
			w-lipgloss.Width(elapsed)-1), elapsed, w))
	}
	return append(out, t.instructions(s.State.Instructions, w)...)
}

// projects shows the outcome of each project.
func (t theme) projects(s run.State, w int) []string {
	var out []string
	for _, p := range s.Projects {
		sign := t.dim.Render("·")
		switch {
		case p.Outcome == run.ProjectDone:
			sign = t.good.Render("✓")
		case p.Outcome.Rule().Blocks:
			sign = t.bad.Render("✗")
		case p.Outcome != run.ProjectPending:
			sign = t.accent.Render("▶")
		}
		out = append(out, cut(sign+" "+p.Alias+"  "+t.dim.Render(run.OneLine(p.Line(nil))), w))
	}
	return out
}
