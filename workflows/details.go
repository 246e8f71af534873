package workflows

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Details returns what the Web UI shows of a run, as Markdown: status, progress, cost, what it waits for, the
// operations that are available, and the commands to run next.
func Details(s run.State, in contract.Input) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s%s\n\n", s.Pipeline, s.StatusText(s.Status), parenthesized(s.Reason))
	b.WriteString(figures(s))
	for _, p := range s.Projects {
		text := strings.ReplaceAll(run.OneLine(p.Line(nil)), "$", "USD ")
		fmt.Fprintf(&b, "- project **%s**, workflow `%s`: %s\n", p.Alias, p.RunID, text)
	}
	b.WriteString(lanesText(s))
	for _, f := range s.InFlight {
		fmt.Fprintf(&b, "- running: **%s** %s, attempt %d, since %s\n", f.Step, strings.TrimSpace(f.Role+" "+f.Member),
			f.Attempt, f.StartedAt)
	}
	if text := s.LimitText(run.Clock{}); text != "" {
		fmt.Fprintf(&b, "- **%s**\n", text)
	}
	for _, i := range s.Pending() {
		fmt.Fprintf(&b, "- instruction (%s): %s\n", i.Words(), run.OneLine(i.Text))
	}
	if f := s.Failure; f != nil {
		fmt.Fprintf(&b, "- failed: **%s** %s\n", f.Step, run.OneLine(f.Text(s.Wording)))
	}
	if p := s.Problem; p != nil {
		attempt := ""
		if p.Attempt > 0 {
			attempt = fmt.Sprintf(" in attempt %d", p.Attempt)
		}
		fmt.Fprintf(&b, "- last error, %s: **%s** %s%s: %s\n", p.TS, p.Context, p.Category, attempt,
			run.OneLine(p.Message))
	}
	if s.Checkpoint != nil && s.Status != run.Done {
		pass := ""
		if s.Checkpoint.AtPass > 0 {
			pass = fmt.Sprintf(", pass %d", s.Checkpoint.AtPass)
		}
		fmt.Fprintf(&b, "- continues from checkpoint %s%s\n", s.Checkpoint.ID, pass)
	}
	fmt.Fprintf(&b, "- available actions: %s\n", operations(s.Available(s.Status)))
	fmt.Fprintf(&b, "- directory `%s`\n\n", in.Target.Dir)
	fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", nextSteps(s), strings.Join(commands(s, in), "\n"))
	return b.String()
}

// lanesText lists the active lanes.
func lanesText(s run.State) string {
	if s.Lanes == nil {
		return ""
	}
	text := "- " + s.Lanes.Text() + ", " + s.Lanes.MergedText() + "\n"
	for _, l := range s.Lanes.Active {
		text += fmt.Sprintf("- lane %d, **%s**: workflow `%s`\n", l.Index+1, run.OneLine(l.Name),
			l.ChildRunID(s.RunID, s.Lanes.Stage))
	}
	for _, l := range s.Lanes.Asked {
		now := s.LaneNow(l, nil, 0)
		text += fmt.Sprintf("- lane %d, **%s**: %s\n", now.Number, now.Name, now.Does)
	}
	return text
}

// operations lists operations: "pause, cancel", or "none".
func operations(all []run.Operation) string {
	var names []string
	for _, op := range all {
		names = append(names, string(op))
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

func parenthesized(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// figures is a table of one row. The progress of a pipeline of stages names the stage. Only some loops have a score.
func figures(s run.State) string {
	names, values := []string{"progress", "cost"}, []string{progress(s), cost(s)}
	if s.Wording != run.WordingStages || s.Score != nil {
		names, values = append(names, "score"), append(values, score(s))
	}
	if s.Wording != run.WordingStages {
		names, values = append(names, "stage"), append(values, stage(s))
	}
	row := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	return row(names) + "|" + strings.Repeat("---|", len(names)) + "\n" + row(values) + "\n"
}

func progress(s run.State) string {
	if s.Wording == run.WordingStages {
		return s.Progress()
	}
	text := fmt.Sprintf("pass %d of %d", s.Passes.LastSettled, s.Passes.Total)
	if s.Rounds > 0 {
		text += fmt.Sprintf("; rounds finished: %d", s.Rounds)
	}
	return text
}

// cost writes amounts without the dollar sign, which begins a formula in the Web UI's Markdown.
func cost(s run.State) string {
	text := strings.ReplaceAll(run.ShortCost(s.Total(), s.UnknownCalls()), "$", "")
	if s.Budget.CapUSD > 0 {
		text += fmt.Sprintf(" of %.2f USD (%.0f%%)", s.Budget.CapUSD, 100*s.Total()/s.Budget.CapUSD)
	} else if text != string(run.CostUnknown) {
		text += " USD"
	}
	for _, u := range s.BudgetUses("") {
		if u.Name != run.BudgetUSD {
			text += ", " + u.Text
		}
	}
	if n := s.UnknownCalls(); n > 0 && s.Total() > 0 {
		text += ", " + run.Plural(n, "call") + " not fully known"
	}
	return text
}

func score(s run.State) string {
	if s.Score == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", *s.Score)
}

func stage(s run.State) string {
	text := s.Phase
	if s.Set != "" {
		text += ", " + s.Set
	}
	if s.Round > 1 {
		text += fmt.Sprintf(", round %d", s.Round)
	}
	return text
}

// nextSteps describes what the run waits for and what to do.
func nextSteps(s run.State) string {
	q, undecided := s.Asks()
	switch {
	case s.Status == run.Paused && s.Reason == run.ConsecutiveFailures:
		return "Fix the cause of the failures, then resume with force and a reason:"
	case undecided && s.Status.Closed():
		return "The run ended with an open question. Decide it to continue the run:"
	case undecided:
		return fmt.Sprintf("**%s** Waiting for a decision (%s)%s:", q.Words(), strings.Join(q.Actions, ", "), expiry(q)) +
			questionFacts(s, q)
	}
	return run.Means(s.Status, s.Reason) + " " + s.NextStep()
}

// questionFacts lists what a question is about. A dollar sign begins a formula in the Web UI.
func questionFacts(s run.State, q run.Question) string {
	text := ""
	for _, f := range s.Facts(q) {
		text += "\n- " + strings.ToLower(f.Name) + ": " + f.Text
	}
	return strings.ReplaceAll("\n"+text, "$", "")
}

// expiry describes what happens without an answer.
func expiry(q run.Question) string {
	if q.ExpiresAt == "" {
		return ""
	}
	return fmt.Sprintf(" until %s, then %s", q.ExpiresAt, q.OnExpiry)
}

// nextCommands returns the commands for a run whose workflow is open or has just ended.
func nextCommands(s run.State, in contract.Input) []run.Command {
	at := run.Situation{EffectiveStatus: run.NewEffectiveStatus(s.Status, run.LiveOpen, ""), Dir: in.Target.Dir}
	if s.Status.Closed() {
		at.EffectiveStatus = run.NewEffectiveStatus(s.Status, run.LiveClosed, "")
	}
	return run.NextCommands(s, at)
}

// useServer lets the temporal CLI reach the embedded server from any terminal; with another server it does nothing.
const useServer = "eval \"`starter server env`\"" // a dollar sign begins a formula in the Web UI

// commands returns what to run next, with starter and with the Temporal CLI.
func commands(s run.State, in contract.Input) []string {
	all := nextCommands(s, in)
	texts := shell.Script("starter", all)
	if temporal := shell.Temporal(shell.Update, in.Target.RunID, all); len(temporal) > 0 {
		texts = append(append(texts, useServer), temporal...)
	}
	if _, asks := run.Offers(all, run.Decide); asks {
		texts = append(texts, shell.Temporal(shell.Signal, in.Target.RunID, all)...)
	}
	return texts
}
