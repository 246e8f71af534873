package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// table collects rows.
type table []Row

func (t *table) row(name, format string, args ...any) {
	*t = append(*t, Row{name, fmt.Sprintf(format, args...)})
}

// optional adds a row unless its value is empty.
func (t *table) optional(name, value string) {
	if value != "" {
		*t = append(*t, Row{name, value})
	}
}

// Received is what a directory proves whose run this machine has not recorded.
const Received = "not recorded on this machine: its files prove no author, whatever they contain"

// Identity is which run this is, and its state, in rows.
func (r Run) Identity() []Row {
	var t table
	s, sum := r.Now.State, r.Now.Meta.Summary
	t.row("Run ID", "%s", r.Claim.RunID)
	t.row("Pipeline", "%s", cmp.Or(s.Pipeline, r.Claim.Pipeline))
	if s.Task != s.Pipeline {
		t.row("Task", "%s", run.OneLine(s.Task))
	}
	if r.Received {
		t.row("Origin", Received)
	}
	if p := r.Now.Meta.Parent; p != nil {
		t.row("Follows up", "%s (%s)", p.RunID, p.Mode)
	}
	if a := s.Adopted; a != nil {
		t.row("Adopted", "%s", a.Text())
		t.row("Cost before", "%s", a.CostText())
	}
	t.row("Status", "%s", r.Described())
	if s.NotApproved() {
		t.row("Unmet", "%s", s.Unmet)
	}
	t.optional("Limit", r.Limit())
	if h := r.Effective.Held; h != nil {
		t.row("Blocked", "%s", h.Cause)
	}
	if n := r.Effective.NoWorker; n != nil {
		t.row("Worker", "none: %s", NoWorker(*n))
		if n.Version != nil || n.Polls != nil {
			t.row("Fix", "%s", n.Fix(r.Claim.RunID, ""))
		}
	}
	if s.TS == "" { // no event yet
		return t
	}
	if r.Effective.Status == r.Effective.Recorded {
		t.row("Phase", "%s", phase(s, sum))
	}
	t.row("Started", "%s", Minute(s.StartedAt))
	if w := r.Now.Meta.Workspace; w != nil {
		d := rundir.At(r.Directory)
		place := d.Path(rundir.WorkspaceDir)
		if _, err := d.Lstat(rundir.WorkspaceDir); err != nil && s.Delivery != nil && s.Delivery.Delivered {
			place = "removed after the delivery"
		}
		t.row("Workspace", "%s of %s%s", place, w.Source, prefixed(", branch ", w.Branch))
	}
	t.optional("Result", Result(rundir.At(r.Directory), s))
	for _, f := range s.GuardFacts() {
		t.row(f.Name, "%s", f.Text)
	}
	t = append(t, Waiting(s)...)
	t.row("Last save", "%s (%s ago)", Minute(s.TS), age(s.TS, r.Clock.Now))
	return t
}

// phase is the phase as requirement 002 names it. An end by an operator is no failure, although state.json has no other
// phase for it.
func phase(s run.State, sum rundir.Summary) string {
	word, reason := sum.CurrentPhase, value(sum.PhaseReason)
	if s.Status == run.Halted || s.Status == run.Cancelled {
		word = string(s.Status)
	}
	if reason == word {
		reason = ""
	}
	return strings.ToUpper(word) + bracketed(reason)
}

// Described is the status as [Describe] describes it, with the status as the disk has it, and that the work of a finished
// run is not approved.
func (r Run) Described() string {
	s := r.Effective.Status
	return s.Named() + strings.TrimPrefix(Describe(r.Effective), s.Words()) + strings.TrimPrefix(r.StatusText(), string(s))
}

// Waiting is the open question, and the instructions that wait for a prompt.
func Waiting(s run.State) []Row {
	var t table
	if q, open := s.Asks(); open {
		t.row("Waits for", "%s (%s)", q.Line(), strings.Join(q.Actions, ", "))
	}
	for _, i := range s.Pending() {
		t.row("Instruction", "%s (%s)", i.Text, i.Words())
	}
	return t
}

// Work is how far the run is, what its calls do and what they cost, in rows.
func (r Run) Work() []Row {
	s, sum := r.Now.State, r.Now.Meta.Summary
	if s.TS == "" {
		return []Row{{"Progress", "not begun"}}
	}
	t := table{{"Progress", s.Progress()}}
	t = append(t, r.Calls...)
	t.optional(Title(s.Wording.Words().Set), s.SetText())
	t.row("Cost", "%s%s%s", s.CostText(), ofBudget(s), otherBudgets(s, r.Clock))
	t.optional("Today", r.Today)
	if s.Score != nil {
		t.row("Score", "%.1f%s", *s.Score, target(s, sum))
	}
	return t
}

// LastPasses are lines about the last numbered passes.
func (r Run) LastPasses() []string {
	s, all := r.Now.State, r.Now.Meta.Summary.LastPasses
	if s.Wording == run.WordingStages { // numbered passes are not what its work is counted in
		return nil
	}
	var out []string
	for _, p := range all {
		verdict := "PASS"
		if !p.ValidationPassed {
			verdict = "FAIL"
		}
		place := ""
		if p.SubsetID != "" {
			place = fmt.Sprintf("%s/%d%s ", p.SubsetID, p.SubsetPassNumber, p.Rotation)
		}
		out = append(out, fmt.Sprintf("%2d: %s%-9s %3.0fs  %s  %s%s", p.GlobalPassNumber, place,
			Title(p.AgentRole), float64(p.DurationMS)/1000,
			run.CostPhrase(p.Tokens.EstimatedCostUSD, p.Tokens.UnknownCalls), verdict, completedSet(s, p)))
	}
	return out
}

// completedSet marks the last pass of a set.
func completedSet(s run.State, r rundir.PassRecord) string {
	made := func(c run.CheckpointRef) bool {
		return c.AtPass == r.GlobalPassNumber && !strings.HasPrefix(c.ID, "cp-PAUSE-")
	}
	if r.SubsetID == "" || !slices.ContainsFunc(s.Checkpoints, made) {
		return ""
	}
	return "  ← " + s.Wording.Words().Set + " complete, checkpoint created"
}

// Health is checkpoints, errors and damage, in rows.
func (r Run) Health() []Row {
	var t table
	s, sum := r.Now.State, r.Now.Meta.Summary
	t.row("Checkpoints", "%s", checkpoints(sum))
	t.row("Errors", "%d recovered, %d unrecovered", sum.Recovered, sum.Unrecovered)
	if p := s.Problem; p != nil {
		t.row("Last error", "%s %s: %s — %s", Minute(p.TS), p.Context, p.Category, p.Message)
	}
	t.optional("Advice", r.Advice())
	if s.Refused > 0 {
		t.row("Refused", "%d messages that were not accepted (starter logs %s)", s.Refused, shell.Quote(r.Directory))
	}
	if r.Now.Lag > 0 {
		t.row("Journal", "%d events are not folded into %s yet", r.Now.Lag, rundir.MetaFile)
	}
	if r.Lost != nil {
		t.row("Damage", "%v", r.Lost)
	} else if r.Now.Why != nil {
		t.row("Damage", "%v; what is shown is folded from %s", r.Now.Why, rundir.EventsFile)
	}
	for _, d := range r.Now.Damage {
		t.row("Damage", "%s", d)
	}
	return t
}

// ProjectRows is what the projects of a run do and cost, in rows; none for a run without projects.
func (r Run) ProjectRows() []Row {
	if len(r.Members) == 0 {
		return nil
	}
	t := table{{"Projects", r.Now.State.ProjectsDone()}}
	for _, p := range r.Members {
		t.row("  "+p.Alias, "%s", p.Line())
	}
	return t
}

// Projects is the state of a run across projects, in rows; none for any other run.
func Projects(p *run.CrossParent) []Row {
	if p == nil {
		return nil
	}
	t := table{{"Projects", strings.ReplaceAll(string(p.Class), "_", " ")}}
	for _, c := range p.Children {
		t.row("  "+c.Alias, "%s%s", cmp.Or(c.Status, "no record"), prefixed(", blocks the release: ", c.Blocker))
	}
	return t
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func ofBudget(s run.State) string {
	if s.Budget.CapUSD <= 0 {
		return ""
	}
	return fmt.Sprintf(" / %s (%.0f%%)", USD(s.Budget.CapUSD), 100*s.Total()/s.Budget.CapUSD)
}

// Budgets are the budgets of a run with what is used, in rows.
func (r Run) Budgets() []Row {
	s := r.Now.State
	var t table
	t.row("Cost", "%s%s%s", s.CostText(), cmp.Or(ofBudget(s), ", no budget in USD"), otherBudgets(s, r.Clock))
	t.optional("Today", r.Today)
	return t
}

// otherBudgets lists the budgets besides that in USD, with what is used.
func otherBudgets(s run.State, c run.Clock) string {
	var text strings.Builder
	for _, u := range s.BudgetUses(run.Time(c.Now)) {
		if u.Name != run.BudgetUSD {
			text.WriteString(", " + u.Text)
		}
	}
	return text.String()
}

func target(s run.State, sum rundir.Summary) string {
	if sum.Threshold == nil {
		return ""
	}
	if *s.Score < *sum.Threshold && s.Status == run.Done {
		return fmt.Sprintf(" — threshold not met (%.1f of %.1f)", *s.Score, *sum.Threshold)
	}
	return fmt.Sprintf(" (target %.1f)", *sum.Threshold)
}

func checkpoints(s rundir.Summary) string {
	switch s.Checkpoints {
	case 0:
		return "none"
	case 1:
		return "1 (" + *s.FirstCheckpoint + ")"
	}
	return fmt.Sprintf("%d (%s through %s)", s.Checkpoints, *s.FirstCheckpoint, *s.LastCheckpoint)
}
