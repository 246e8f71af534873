package pages

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/markdown"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// functions are those of the templates, besides those of the report.
func (s *site) functions() template.FuncMap {
	return template.FuncMap{
		"asset": s.asset, "ago": func(ts string) string { return ago(ts, s.now()) },
		"until": func(ts string) string { return until(ts, s.now()) }, "words": words, "label": label, "id": shortID,
		"runpath": runPath, "needsFeedback": run.NeedsFeedback, "class": report.StatusClass, "status": statusText,
		"money": run.ShortCost, "score": func(v float64) string { return fmt.Sprintf("%.1f", v) },
		"number": number, "hides": func(action string) bool { return action == run.ActionHalt }, "line": run.OneLine,
		"plural": run.Plural, "passes": passes, "verdict": verdictClass,
		"nowtime":  func() string { return s.now().UTC().Format("15:04:05 MST") },
		"markdown": markdown.HTML, "heading": report.Heading, "dict": dict, "tabs": func() []tab { return tabs },
		"policies": func() []policyChoice { return policies }, "plus": func(a, b int) int { return a + b },
		"limit": limit,
	}
}

// dict makes the argument of a template from names and values.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// tab is a page about a run.
type tab struct{ Name, Title, Path string }

var tabs = []tab{
	{"overview", "Overview", ""}, {"changes", "Changes", "/changes"}, {"cost", "Cost and quality", "/cost"},
	{"checkpoints", "Checkpoints", "/checkpoints"}, {"pictures", "Pictures", "/pictures"},
	{"history", "History", "/history"}, {"log", "Log", "/log"},
}

// policyChoice is what a replay may do with side effects.
type policyChoice struct {
	Value, Name, Means string
	Default            bool
}

var policies = []policyChoice{
	{run.UseRecorded, "Use recorded results", "a call is made only if no answer to the same question is recorded", true},
	{run.RequireHuman, "Ask before each call", "you decide whether a recorded result is used or the call is made", false},
	{run.Reexecute, "Execute again", "calls and commands are made again, and paid for", false},
}

// words are the words of an identifier.
func words(name any) string { return strings.ReplaceAll(fmt.Sprint(name), "_", " ") }

// label is the name of an action on a button: retry_feedback is "Retry with feedback".
func label(action string) string {
	return view.Title(run.ActionWords(action))
}

// verdictClass is the CSS class of a verdict.
func verdictClass(j *run.Judged) string {
	f := j.Findings
	switch {
	case j.Approved != nil && *j.Approved:
		return "good"
	case j.Approved != nil, f != nil && (f.Blockers > 0 || f.ShipReady != nil && !*f.ShipReady):
		return "bad"
	}
	return ""
}

// ago is how long ago a time was.
func ago(ts string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, ts)
	if err != nil {
		return ts
	}
	if d := now.Sub(t); d >= time.Second {
		return coarse(d) + " ago"
	}
	return "now"
}

// until is how long it takes until a time.
func until(ts string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, ts)
	switch {
	case err != nil:
		return ts
	case now.After(t):
		return "now"
	}
	return "in " + coarse(t.Sub(now))
}

// coarse is a duration in its largest unit.
func coarse(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if n := int(d / unit.size); n > 0 {
			return fmt.Sprintf("%d %s", n, unit.name)
		}
	}
	return fmt.Sprintf("%d s", int(d/time.Second))
}

// number writes a number with separators of thousands.
func number(n int64) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// limit is a limit of a budget, as a form shows it.
func limit(v any) string {
	if text := fmt.Sprint(v); text != "0" {
		return text
	}
	return "none"
}

// passes counts passes.
func passes(n int) string {
	if n == 1 {
		return "1 pass"
	}
	return fmt.Sprintf("%d passes", n)
}

// progress is how far a listed run is.
func progress(r operations.Row) string {
	switch {
	case r.Progress != "": // "2/3 r4"
		stages, round, ok := strings.Cut(r.Progress, " r")
		if ok {
			round = ", round " + round
		}
		return "stage " + stages + round
	case r.Passes > 0:
		return fmt.Sprintf("%d/%d passes", r.Settled, r.Passes)
	case r.Rounds > 0:
		return run.Plural(r.Rounds, "round")
	}
	return ""
}

// roundsText counts the rounds of a stage.
func roundsText(f view.Stage) string {
	if now := f.RoundText(); now != "" {
		return now
	}
	text := run.Plural(f.Rounds, "round")
	if f.Max > 0 {
		text += fmt.Sprintf(" of at most %d", f.Max)
	}
	if f.Unmet != "" {
		text += ", ended without " + f.Unmet
	}
	return text
}

// cutText shortens a text for a page.
func cutText(text string, most int) (cut string, more int) {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= most {
		return text, 0
	}
	end := most
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end], len(text) - end
}

// newestFirst sorts rows by their start.
func newestFirst(rows []operations.Row) {
	slices.SortFunc(rows, func(a, b operations.Row) int {
		if a.StartedAt != b.StartedAt {
			return strings.Compare(b.StartedAt, a.StartedAt)
		}
		return strings.Compare(a.RunID, b.RunID)
	})
}
