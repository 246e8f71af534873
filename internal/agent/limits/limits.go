// Package limits finds out why a model provider did not answer a call, and until when it will not: one table for each
// provider, after what its command line really reports.
//
// It is pure. It judges the error report, what was printed instead of a result, and the standard error of a failed
// call, never the text of an answer.
package limits

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
)

// Kind is why a provider did not answer.
type Kind = run.LimitKind

// Kinds. The zero value means that the provider gave no known one.
const (
	Login       = run.LimitLogin
	Model       = run.LimitModel
	Credit      = run.LimitCredit
	Plan        = run.LimitPlan
	Rate        = run.LimitRate
	Overload    = run.LimitOverload
	Output      = run.LimitOutput
	Unreachable = run.LimitUnreachable
)

// Limit is why a provider did not answer a call.
type Limit struct {
	Kind  Kind
	Until time.Time // when it answers again, UTC, to the second; zero: unknown
	Text  string    // the line that shows it; empty: a status or code
}

// Report is what a program reported about a failed call.
type Report struct {
	Program string          // claude, codex or gemini; else any
	Code    string          // its own word for the error
	HTTP    int             // status of the provider's refusal; 0: unknown
	Event   json.RawMessage // the last limit that it reported while it ran
	Text    string          // of the error
	Printed string          // on standard output instead of a result
	Stderr  string
	Exit    int // exit code of the program
}

// Limit returns the cause of a failed call, or the zero value. The error report decides, without a cause in it what
// was printed, and then standard error. Times without a date or zone are the next after observed, in zone.
func (r Report) Limit(observed time.Time, zone *time.Location) Limit {
	rules := r.rules()
	found := match(rules, r.signs())
	for _, text := range []string{r.Printed, r.Stderr} {
		if found.Kind == "" {
			found = match(rules, printedSigns(text))
		}
	}
	event, rejected := r.event()
	if rejected && found.Kind == Rate {
		found.Kind = Plan
	}
	if !found.Kind.Passes() {
		return found.Limit
	}
	reset := clock{observed: observed, zone: zone}
	found.Until = reset.first(
		func() time.Time { return reset.unix(event) },
		func() time.Time { return reset.document(found.document) },
		func() time.Time { return reset.text(found.Text) },
		func() time.Time { return reset.text(found.all) },
	)
	return found.Limit
}

// rules returns the tables that apply to the program.
func (r Report) rules() []rule {
	rules := slices.Concat(claudeRules, codexRules, geminiRules)
	switch r.Program {
	case "claude":
		rules = claudeRules
	case "codex":
		rules = codexRules
	case "gemini":
		rules = geminiRules
	}
	return append(slices.Clone(rules), generalRules...)
}

// event returns the reset time of the provider's last report, in seconds since 1970, and whether it refused.
func (r Report) event() (resets float64, rejected bool) {
	var e struct {
		Status string  `json:"status"`
		Resets float64 `json:"resetsAt"`
	}
	if json.Unmarshal(r.Event, &e) != nil || e.Status != "rejected" {
		return 0, false
	}
	return e.Resets, true
}

// full is the share of a window from which no call is started: its calls would be cut off.
const full = 0.98

// Full returns when the fullest window of an account resets, if its program reports that it is used up; zero: it is not,
// or the account pays for what exceeds it.
func Full(event json.RawMessage) time.Time {
	type window struct {
		Used   float64 `json:"utilization"`
		Resets float64 `json:"resetsAt"`
	}
	var e struct {
		window
		Overage bool              `json:"isUsingOverage"`
		Windows map[string]window `json:"unifiedWindows"`
	}
	if json.Unmarshal(event, &e) != nil || e.Overage {
		return time.Time{}
	}
	resets := 0.0
	for _, w := range append(slices.Collect(maps.Values(e.Windows)), e.window) {
		if w.Used >= full {
			resets = max(resets, w.Resets)
		}
	}
	if resets == 0 {
		return time.Time{}
	}
	return time.Unix(int64(resets), 0).UTC()
}

// signs returns what the error report shows. Its first line names what failed; what follows may quote anything.
func (r Report) signs() signs {
	text := strings.TrimSpace(r.Text)
	line, _, _ := strings.Cut(text, "\n")
	s := signs{codes: []string{r.Code}, statuses: []int{r.HTTP}, all: line}
	if r.HTTP == 0 && r.Program == "gemini" && r.Exit > 128 {
		s.statuses = []int{r.Exit + 256} // its exit code is the lower byte of the status
	}
	s.addLine(line, r.HTTP == 0)
	s.addDocument(text)
	return s
}

// maxPrinted is the number of lines at the end of an output in which a refusal is searched.
const maxPrinted = 60

// printedSigns returns what the end of an output shows: its last report of an error, with the lines that follow it.
func printedSigns(text string) signs {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-maxPrinted):]
	var s signs
	for i, line := range slices.Backward(lines) {
		n := len(s.lines) + len(s.statuses) + len(s.documents)
		s.addLine(line, true)
		if document.MatchString(line) {
			s.addDocument(strings.Join(lines[i:], "\n"))
		}
		s.all = line + "\n" + s.all
		if otherError.MatchString(line) && n == len(s.lines)+len(s.statuses)+len(s.documents) {
			break // what was printed before another error did not end the program
		}
	}
	return s
}
