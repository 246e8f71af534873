package watch

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

func (t theme) cost(f view.Figures, w int) []string {
	c := f.Cost
	total := run.CostText(c.Total, c.Unknown)
	if c.Estimated > 0 {
		total += t.dim.Render(" (" + view.USD(c.Estimated) + " estimated)")
	}
	budget := t.dim.Render("none")
	if c.Budget > 0 {
		used := fmt.Sprintf(" (%d%% used)", c.Percent)
		style := t.good
		switch {
		case c.Total >= c.Budget:
			style = t.bad
		case c.Warn > 0 && c.Total >= c.Warn:
			style = t.warn
		}
		budget = view.USD(c.Budget) + style.Render(used)
	}
	var roles []string
	for _, r := range c.Roles {
		roles = append(roles, roleName(f, r.Role)+": "+run.ShortCost(r.USD, r.Unknown))
	}
	mean, projected := t.dim.Render("–"), t.dim.Render("–")
	if c.Mean != nil {
		mean = view.USD(*c.Mean)
	}
	if c.Projected != nil {
		projected = view.USD(*c.Projected)
		if *c.Projected >= 10 { // cents of an estimate say nothing
			projected = fmt.Sprintf("$%.0f", *c.Projected)
		}
		if *c.Projected > c.Total {
			projected += t.dim.Render(" (projected)")
		}
	}
	out := append([]string{beside(t.name("Total")+total, t.name("Budget")+budget, column, w)}, joined(roles, "  ", w)...)
	return append(out, beside(t.name("Avg/pass")+mean, t.name("Est. total")+projected, column, w))
}

// joined puts as many parts into each line as fit.
func joined(parts []string, between string, w int) []string {
	var out []string
	for _, p := range parts {
		if n := len(out) - 1; n >= 0 && lipgloss.Width(out[n]+between+p) <= w {
			out[n] += between + p
		} else {
			out = append(out, p)
		}
	}
	return out
}

// roleName names a row of the costs.
func roleName(f view.Figures, name string) string {
	switch {
	case name != f.Words.OneRole:
		return view.Title(name)
	case len(f.Sets) == 0:
		return "In loops"
	}
	return strings.ToUpper(name)
}

func (t theme) quality(f view.Figures, w int) []string {
	q := f.Quality
	passed := fmt.Sprintf("%d/%d passed", q.Passed, q.Judged)
	if q.Passed < q.Judged {
		passed = t.bad.Render(passed)
	}
	warnings := count(q.Warnings, "warning", "warnings")
	if q.Warnings > 0 {
		warnings = t.warn.Render(warnings)
	}
	const aligned = 13
	first, second := "", ""
	if len(q.Notes) > 0 {
		first = t.padded(cut(view.Title(q.Notes[0].Name), aligned-2), aligned) + count(q.Notes[0].Entries, "entry", "entries")
	}
	if len(q.Notes) > 1 {
		second = t.name(cut(view.Title(q.Notes[1].Name), aligned-2)) + count(q.Notes[1].Entries, "entry", "entries")
	}
	var out []string
	if f.Words.OneRole != "" && (q.Judged > 0 || f.Progress.Total > 0) {
		out = append(out, beside(t.padded("Validation", aligned)+passed, warnings, column, w))
	}
	if first != "" {
		out = append(out, beside(first, second, column, w))
	}
	retries := fmt.Sprint(q.Retries)
	if q.Unrecovered > 0 {
		retries += t.bad.Render(fmt.Sprintf("  %d unrecovered", q.Unrecovered))
	}
	if f.Words.OneRole == "" { // numbered passes are not what its work is counted in
		return append(out, beside(t.padded("Warnings", aligned)+fmt.Sprint(q.Warnings), t.name("Retries")+retries, column, w))
	}
	return append(out, beside(t.padded("No-modify", aligned)+count(q.Unmodified, "pass", "passes"), t.name("Retries")+retries,
		column, w))
}
