package workflows

import (
	"fmt"
	"math"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// show writes the run's current details, in Markdown, where the Web UI shows them: no event of history, and nobody needs our tools to read them.
func (e *engine) show(ctx workflow.Context) {
	text := details(e.j.state, e.in)
	if e.held.Held {
		text += fmt.Sprintf("\nA disk is full: %s. It is tried again at %s, and at once after a resume.\n", run.OneLine(e.held.Message), e.held.RetryAt)
	}
	if e.held.Waits {
		text += fmt.Sprintf("\nIt waits: %s. It is tried again at %s.\n", run.OneLine(e.held.Message), e.held.RetryAt)
	}
	workflow.SetCurrentDetails(ctx, text)
}

// details is what a person wants to know of a run at a glance: status, progress, cost, what it waits for, and what to type.
func details(s run.State, in Input) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s%s\n\n", s.Pipeline, s.Status, inBrackets(s.Reason))
	fmt.Fprintf(&b, "| progress | cost | score | stage |\n|---|---|---|---|\n| %s | %s | %s | %s |\n\n", progress(s), cost(s), score(s), stage(s))
	for _, f := range s.InFlight {
		fmt.Fprintf(&b, "- running: **%s** %s, attempt %d, since %s\n", f.Step, strings.TrimSpace(f.Role+" "+f.Member), f.Attempt, f.StartedAt)
	}
	if f := s.Failure; f != nil {
		fmt.Fprintf(&b, "- failed: **%s** in %d starts, last with %s: %s\n", f.Step, f.Starts, f.Category, f.Message)
	}
	if p := s.Problem; p != nil {
		attempt := ""
		if p.Attempt > 0 {
			attempt = fmt.Sprintf(" in attempt %d", p.Attempt)
		}
		fmt.Fprintf(&b, "- last error, %s: **%s** %s%s: %s\n", p.TS, p.Context, p.Category, attempt, run.OneLine(p.Message))
	}
	if s.Checkpoint != nil && s.Status != run.Done {
		fmt.Fprintf(&b, "- goes on from checkpoint %s, pass %d\n", s.Checkpoint.ID, s.Checkpoint.AtPass)
	}
	fmt.Fprintf(&b, "- directory `%s`\n\n", in.Target.Dir)
	fmt.Fprintf(&b, "%s\n\n```\n%s\n```\n", waitsFor(s), strings.Join(commands(s, in), "\n"))
	return b.String()
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func progress(s run.State) string {
	text := fmt.Sprintf("pass %d of %d", s.Passes.LastSettled, s.Passes.Total)
	if s.Rounds > 0 {
		text += fmt.Sprintf("; rounds through: %d", s.Rounds)
	}
	return text
}

func cost(s run.State) string {
	if s.Budget.CapUSD <= 0 {
		return fmt.Sprintf("%.2f USD", s.Total())
	}
	return fmt.Sprintf("%.2f of %.2f USD (%.0f%%)", s.Total(), s.Budget.CapUSD, 100*s.Total()/s.Budget.CapUSD)
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

// waitsFor says in a sentence what has to happen for the run to go on.
func waitsFor(s run.State) string {
	q, undecided := s.Asks()
	switch {
	case s.Status == run.Paused && s.Reason == run.BudgetThreshold:
		return "It waits for its budget to be raised, and then to be resumed:"
	case s.Status == run.Paused && s.Reason == run.ConsecutiveFailures:
		return "It waits for the cause of its failures to be fixed, and then to be resumed with force and a reason:"
	case undecided && s.Status.Closed():
		return "It is over, and a question was left undecided. Deciding it lets the run go on:"
	case undecided:
		return fmt.Sprintf("**%s** It waits for a decision (%s)%s:", q.Words(), strings.Join(q.Actions, ", "), untilWhen(q))
	case s.Status == run.Paused:
		return "It waits to be resumed:"
	case s.Status.Closed():
		return "It is over. Its directory has everything:"
	}
	return "It needs nobody. To look, or to have it rest:"
}

// untilWhen says what happens when nobody answers.
func untilWhen(q run.Question) string {
	if q.ExpiresAt == "" {
		return ""
	}
	return fmt.Sprintf(" until %s, then %s", q.ExpiresAt, q.OnExpiry)
}

// commands are what to type next, with our program and without it.
func commands(s run.State, in Input) []string {
	dir, id := shell.Quote(in.Target.Dir), shell.Quote(in.Target.RunID)
	update := func(name, input string) string {
		return fmt.Sprintf("temporal workflow update execute --workflow-id %s --name %s --input %s", id, name, shell.Quote(input))
	}
	q, undecided := s.Asks()
	switch {
	case s.Status == run.Paused && s.Reason == run.BudgetThreshold:
		usd := math.Ceil(2 * s.Budget.CapUSD)
		return []string{
			fmt.Sprintf("starter budget %s --usd %.0f && starter resume %s", dir, usd, dir),
			update(VerbBudget, fmt.Sprintf(`{"usd":%.0f}`, usd)), update(VerbResume, "{}"),
		}
	case s.Status == run.Paused && s.Reason == run.ConsecutiveFailures:
		return []string{"starter resume " + dir + " --force --reason TEXT", update(VerbResume, `{"force":true,"reason":"TEXT"}`)}
	case undecided && s.Status.Closed():
		return []string{"starter decide " + dir}
	case undecided:
		return decisions(q, dir, id)
	case s.Status == run.Paused:
		return []string{"starter resume " + dir, update(VerbResume, "{}")}
	case s.Status.Closed():
		return []string{"starter status " + dir, "starter cost-report " + dir}
	}
	return []string{"starter watch " + dir, "starter pause " + dir, update(VerbPause, "{}")}
}

// decisions are the ways to answer, with our program and without it. dir and id are typed as they are.
func decisions(h run.Question, dir, id string) []string {
	all := []string{"starter decide " + dir}
	first := ""
	for _, action := range h.Actions {
		words, input := "", fmt.Sprintf(`{"action":"%s"}`, action)
		if NeedsWords(action) {
			words, input = " --feedback TEXT", fmt.Sprintf(`{"action":"%s","feedback":"TEXT"}`, action)
		}
		all = append(all, fmt.Sprintf("starter decide %s --action %s%s", dir, shell.Quote(action), words))
		if first == "" {
			first = input
		}
	}
	return append(all,
		fmt.Sprintf("temporal workflow update execute --workflow-id %s --name %s --input %s", id, VerbDecide, shell.Quote(first)),
		fmt.Sprintf("temporal workflow signal --workflow-id %s --name %s --input %s", id, VerbDecide, shell.Quote(first)))
}
