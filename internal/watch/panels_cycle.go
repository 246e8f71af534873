package watch

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// settledShown is the maximum number of completed steps.
const settledShown = 5

// settled shows the last completed steps of a run without sets: turns, commands, reviews.
func (t theme) settled(f view.Figures, w int) []string {
	var out []string
	for _, s := range f.Settled[max(0, len(f.Settled)-settledShown):] {
		out = append(out, t.settledLine(s, w))
	}
	return out
}

func (t theme) settledLine(s view.Settled, w int) string {
	who := s.Role
	switch {
	case s.As != "" && s.Value != "" && s.Role == "command":
		who = s.As
	case s.Member != "":
		who = s.Member
	}
	if s.Failed {
		return t.bad.Render("✗ ") + fit(view.Title(who), 14) + " " +
			strings.TrimSpace(run.OneLine(s.Item)+" "+t.bad.Render(string(s.Outcome))+" "+run.OneLine(s.Message))
	}
	sign := t.good.Render("✓ ")
	if s.Outcome != run.CategoryOK || s.Value == "failed" || s.Verdict == "rejected" {
		sign = t.bad.Render("✗ ")
	}
	var lines []string
	for _, word := range []string{verdictOf(s), changedOf(s), t.tampered(s)} {
		if word != "" {
			lines = append(lines, word)
		}
	}
	if s.Outcome != run.CategoryOK {
		lines = append(lines, string(s.Outcome))
	}
	if s.Number == 0 && s.Round > 0 && s.Item == "" {
		lines = append([]string{t.dim.Render(fmt.Sprintf("round %d", s.Round))}, lines...)
	}
	if s.Item != "" {
		lines = append([]string{run.OneLine(s.Item)}, lines...)
	}
	left := sign + fit(view.Title(who), 14) + " " + strings.Join(lines, ", ")
	return ends(left, fmt.Sprintf("%s  %12s", view.Duration(time.Duration(s.DurationMS)*time.Millisecond), run.CostPhrase(s.USD, s.Unknown)), w)
}

func verdictOf(s view.Settled) string {
	switch {
	case s.Verdict != "":
		return s.Verdict
	case s.Score != nil:
		return fmt.Sprintf("score %.1f", *s.Score)
	}
	return s.Value
}

func changedOf(s view.Settled) string {
	if s.Changed == 0 {
		return ""
	}
	return count(s.Changed, "file changed", "files changed")
}

// tampered shows that protected files were restored.
func (t theme) tampered(s view.Settled) string {
	if s.Tampered == nil {
		return ""
	}
	return t.warn.Render(fmt.Sprintf("tampered: %d restored", s.Tampered.Files()))
}

func cycleTitle(f view.Figures) string {
	if f.Cycle == nil || f.Cycle.Stage == "" {
		return view.Title(f.Words.Round) + "s"
	}
	return f.Cycle.Stage
}

// cycle shows the current cycle (requirement 002 §7.2, TM-12).
func (t theme) cycle(f view.Figures, w int) []string {
	c := f.Cycle
	score := t.dim.Render("no score yet")
	switch {
	case c.Score != nil && c.Previous != nil:
		score = fmt.Sprintf("%.1f → %.1f", *c.Previous, *c.Score)
	case c.Score != nil:
		score = fmt.Sprintf("%.1f", *c.Score)
	case c.Previous != nil:
		score = fmt.Sprintf("%.1f → ?", *c.Previous)
	}
	if c.Met {
		score = t.good.Render(score + " ✓")
	}
	if c.Target != nil {
		score += t.dim.Render(fmt.Sprintf(" (target: %.1f)", *c.Target))
	}
	count := fmt.Sprintf("%d/%d", c.Number, c.Max)
	if c.Number > c.Max {
		count = run.RoundOf(c.Number, c.Max)
	}
	number := t.name(view.Title(f.Words.Round)) + count
	const scoreColumn = 22
	out := []string{beside(number, t.name(scoreName(c))+score, scoreColumn, w)}
	out = append(out, t.trend(f.Trend, c.Max, c.Target)...)
	if len(c.Steps) > 0 {
		var steps []string
		for _, s := range c.Steps {
			steps = append(steps, s.Name+" "+t.sign(s.At))
		}
		out = append(out, t.name(fmt.Sprintf("%s %d", view.Title(f.Words.Round), c.Number))+" "+strings.Join(steps, "  "))
	}
	var scores []string
	for _, a := range c.Auditors {
		if a.Score != nil {
			scores = append(scores, fmt.Sprintf("%s: %.1f", a.Name, *a.Score))
		}
	}
	if len(scores) > 0 {
		judges := view.Title(strings.TrimSuffix(f.Words.Judges, "s"))
		out = append(out, t.name(judges+" scores")+" "+strings.Join(scores, "  "))
	}
	if c.Score != nil {
		of := ""
		if c.MaxScore > 0 {
			of = fmt.Sprintf("/%g", c.MaxScore)
		}
		out = append(out, t.name(strings.TrimSpace(view.Title(c.Judge)+" "+c.Name))+fmt.Sprintf("%.1f%s", *c.Score, of))
	}
	return out
}

func scoreName(c *view.Cycle) string { return strings.TrimSpace(c.Name + " Score") }

func (t theme) sign(s view.StepState) string {
	switch s {
	case view.StepDone:
		return t.good.Render("✓")
	case view.StepRunning:
		return t.accent.Render("▶")
	case view.StepSkipped:
		return t.dim.Render("–")
	}
	return t.dim.Render("·")
}

// trend draws a point for each cycle with a score, and the scores below; if the target is not reached, then the target
// and the cycles that are left.
func (t theme) trend(points []view.Point, most int, target *float64) []string {
	const step, shown, name = 6, 8, "Score trend:  "
	if len(points) == 0 {
		return nil
	}
	if len(points) > shown {
		points = points[len(points)-shown:]
	}
	line, scores := t.dim.Render(name), strings.Repeat(" ", len(name)-1)
	for i, p := range points {
		style := t.warn
		if p.Met {
			style = t.good
		}
		line += style.Render("●")
		if i < len(points)-1 {
			line += strings.Repeat("─", step-1)
		}
		scores += fmt.Sprintf("%-*.1f", step, p.Score)
	}
	if n := min(most-points[len(points)-1].Cycle, shown-len(points)); n > 0 && !points[len(points)-1].Met {
		line += strings.Repeat("─", step-1) + t.dim.Render("○"+strings.Repeat(" ─ ─", n-1))
		if target != nil {
			scores += t.dim.Render(fmt.Sprintf("%.1f", *target))
		}
	}
	return []string{line, scores}
}

func outputTitle(o Output) string {
	if o.Who == "" {
		return "Agent's output"
	}
	return view.Title(o.Who) + "'s output"
}

func (t theme) output(o Output, w int) []string {
	if len(o.Lines) == 0 && o.Doing == "" {
		return []string{t.dim.Render(cut(o.Why, w))}
	}
	var out []string
	for _, l := range o.Lines {
		out = append(out, cut(l, w))
	}
	if o.Doing != "" { // at the end, which is shown on low screens, too
		out = append(out, t.dim.Render(cut(o.Doing, w)))
	}
	return out
}

func waitTitle(s Scene) string {
	switch {
	case s.Question != nil:
		return "It waits for your decision"
	case s.Status == run.Done:
		return "Done"
	case s.Status.Closed():
		return "Finished: " + s.Status.Words()
	case s.Status.Class() == run.Live:
		return "Blocked"
	case s.Status == run.WaitingLimit:
		return "Waits for the provider"
	}
	return "Paused"
}

// wait shows the open question or the cause of a pause, and the next commands.
func (t theme) wait(s Scene, w int) []string {
	var out []string
	if q := s.Question; q != nil {
		for _, l := range wrapped(q.Words(), w) {
			out = append(out, t.strong.Render(l))
		}
		facts := "asked " + minute(q.RequestedAt)
		if q.Kind != run.QuestionDelivery && s.State.Lanes == nil { // it is asked after all rounds, or about a lane
			facts = fmt.Sprintf("round %d, %s", max(q.Round, 1), facts)
		}
		if q.Verdict != "" {
			facts = "verdict " + q.Verdict + ", " + facts
		}
		for _, l := range wrapped(facts, w) {
			out = append(out, t.dim.Render(l))
		}
		if q.ExpiresAt != "" {
			out = append(out, t.warn.Render(fmt.Sprintf("Answer by %s; then: %s", minute(q.ExpiresAt), q.OnExpiry)))
		}
		names := make([]string, 0, len(q.Actions))
		for _, action := range q.Actions {
			names = append(names, run.ActionWords(action))
		}
		wide := 5 + longest(names)
		for i, c := range q.Choices() {
			for k, l := range wrapped(c.Meaning, w-wide) {
				left := strings.Repeat(" ", wide)
				if k == 0 {
					left = t.accent.Render(fmt.Sprintf("%d", i+1)) + fmt.Sprintf("  %-*s  ", wide-5, names[i])
				}
				out = append(out, left+t.dim.Render(l))
			}
		}
		for _, l := range q.About { // below the choices, which are always visible
			for _, l := range strings.Split(lipgloss.Wrap(l, max(10, w-2), " "), "\n") {
				out = append(out, t.frame.Render("│ ")+cut(l, w-2))
			}
		}
	}
	for _, l := range strings.Split(s.Why, "\n") {
		if l != "" {
			out = append(out, wrapped(l, w)...)
		}
	}
	return out
}

func longest(all []string) int {
	n := 0
	for _, text := range all {
		n = max(n, lipgloss.Width(text))
	}
	return n
}

// wrapped breaks a text into lines.
func wrapped(text string, w int) []string {
	return strings.Split(lipgloss.Wrap(run.OneLine(text), max(10, w), " "), "\n")
}
