package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) status() *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use: "status [RUN]", Short: "Show the status of a run from its directory",
		Long: `Show the status of a run as its directory records it, and the status of its workflow if Temporal can be
reached. No server is needed, and none is started. A run whose events leave it open, and whose workflow has ended, is
shown as interrupted.`,
	}
	asJSON := jsonFlag(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false,
		"also show epoch, running calls, journal, store and last errors")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		s, err := a.inspect(ctx, d)
		if err != nil {
			return err
		}
		if *asJSON {
			if err := a.json(s.report()); err != nil {
				return err
			}
			return s.attention()
		}
		a.printStatus(s, time.Now())
		if verbose {
			if err := a.printMore(s); err != nil {
				return err
			}
		}
		return s.attention()
	})
}

// attention returns the exit code of a damaged run, and of an interrupted one with an open question.
func (s inspection) attention() error {
	if _, open := s.now.State.Asks(); open && s.claim.RunID != "" && s.effective.Status == run.Interrupted {
		return quiet(exitOperator)
	}
	if s.now.Why != nil || s.lost != nil || unrepaired(s.now.Damage) {
		return quiet(exitAttention)
	}
	return nil
}

// notApproved is said behind the status of a finished run whose last loop did not meet its condition.
func (s inspection) notApproved() string {
	if s.effective.Status == run.Done && s.now.State.NotApproved() {
		return ", not approved"
	}
	return ""
}

// advise prints what to do about the error that paused a run.
func (a *app) advise(s inspection) {
	if s.effective.Status == run.Paused && s.now.State.StoppedBy() != "" {
		a.row("Advice", "%s", s.now.State.Advice())
	}
}

// printStatus prints the status of a run (requirement 002 §9.1).
func (a *app) printStatus(s inspection, now time.Time) {
	if s.claim.RunID == "" {
		a.printForeign(s)
		return
	}
	fmt.Fprintf(a.out, "Pipeline Status\n═══════════════\n")
	row := a.row
	st, sum := s.now.State, s.now.Meta.Summary
	row("Run ID", "%s", s.claim.RunID)
	row("Pipeline", "%s", st.Pipeline)
	if st.Task != st.Pipeline {
		row("Task", "%s", run.OneLine(st.Task))
	}
	if p := s.now.Meta.Parent; p != nil {
		row("Follows up", "%s (%s)", p.RunID, p.Mode)
	}
	row("Status", "%s%s", describeStatus(s.effective), s.notApproved())
	if st.NotApproved() {
		row("Unmet", "%s", st.Unmet)
	}
	if text := waiting(s, now); text != "" {
		row("Limit", "%s", text)
	}
	if h := s.effective.Held; h != nil {
		row("Held up", "%s", h.Cause)
	}
	if n := s.effective.NoWorker; n != nil {
		row("Worker", "none: %s", noWorkerWords(*n))
	}
	a.optional("Server", a.insecure())
	if s.effective.Status == s.effective.Recorded {
		row("Phase", "%s%s", strings.ToUpper(sum.CurrentPhase), reason(sum.PhaseReason))
	}
	row("Started", "%s", minute(st.StartedAt))
	if w := s.now.Meta.Workspace; w != nil {
		row("Workspace", "%s of %s%s", s.dir.Path(layout.WorkspaceDir), w.Source, prefixed(", branch ", w.Branch))
	}
	if d := st.Delivery; d != nil && d.Delivered {
		row("Delivered", "to %s %s%s", d.To, d.Target, prefixed(", commit ", d.Commit))
	} else if d != nil {
		row("Delivered", "nothing: %s", d.Message)
	}
	a.waiting(st)
	row("Last save", "%s (%s ago)", minute(st.TS), age(st.TS, now))
	fmt.Fprintln(a.out)
	row("Progress", "%s", st.Progress())
	a.printRunning(s, now)
	a.optional(figures.Title(st.Wording.Words().Set), st.SetText())
	row("Cost", "%s%s%s", st.CostText(), ofBudget(st), otherBudgets(st, now))
	a.optional("Today", a.dayText(st))
	if st.Score != nil {
		row("Score", "%.1f%s", *st.Score, target(st, sum))
	}
	if st.Wording != run.WordingStages { // numbered passes are not what its work is counted in
		a.lastPasses(st, sum.LastPasses)
	}
	row("Checkpoints", "%s", checkpointWords(sum))
	row("Errors", "%d recovered, %d unrecovered", sum.Recovered, sum.Unrecovered)
	if p := st.Problem; p != nil {
		row("Last error", "%s %s: %s — %s", minute(p.TS), p.Context, p.Category, p.Message)
	}
	a.advise(s)
	if st.Refused > 0 {
		row("Refused", "%d messages that were not accepted (starter logs %s)", st.Refused, shell.Quote(s.dir.Root))
	}
	if s.now.Lag > 0 {
		row("Journal", "%d events are not folded into %s yet", s.now.Lag, layout.MetaFile)
	}
	if s.lost != nil {
		row("Damage", "%v", s.lost)
	} else if s.now.Why != nil {
		row("Damage", "%v; what is shown is folded from %s", s.now.Why, layout.EventsFile)
	}
	for _, d := range s.now.Damage {
		row("Damage", "%s", d)
	}
	a.printNext(nextCommands(s))
}

// printForeign prints the status of a run that another program recorded: the state that its events fold into.
func (a *app) printForeign(s inspection) {
	st, shot := s.now.State, s.now.Snapshot
	a.row("Directory", "%s (recorded by another program)", s.dir.Root)
	if st.Task != "" {
		a.row("Task", "%s", st.Task)
	}
	a.row("Status", "%s%s", s.effective.Status, reason(text(st.Reason)))
	a.row("Started", "%s", st.StartedAt)
	a.row("Last event", "%s (%d events)", st.TS, shot.Seq)
	for _, list := range []struct {
		name   string
		phases []string
	}{
		{"Phases", shot.SeenPhases}, {"Completed", shot.CompletedPhases}, {"Failed", shot.FailedPhases},
		{"Hand-offs", shot.SeenHandoffIDs},
	} {
		if len(list.phases) > 0 {
			a.row(list.name, "%s", strings.Join(list.phases, ", "))
		}
	}
	waits := []run.Status{run.AwaitingPhaseHandoff, run.AwaitingHumanReview, run.Failed, run.Interrupted}
	if shot.ActiveHandoffID != nil && slices.Contains(waits, s.effective.Status) {
		a.row("Undecided", "%s", *shot.ActiveHandoffID)
	}
	a.printProjects(s.projects)
}

// printProjects prints the projects of a run across projects.
func (a *app) printProjects(p *run.CrossParent) {
	if p == nil {
		return
	}
	a.row("Projects", "%s", strings.ReplaceAll(string(p.Class), "_", " "))
	for _, c := range p.Children {
		a.row("  "+c.Alias, "%s%s", cmp.Or(c.Status, "no record"), prefixed(", blocks the release: ", c.Blocker))
	}
}

// text returns a pointer to s; nil if s is empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// printNext prints the next commands.
func (a *app) printNext(commands []string) {
	for i, next := range commands {
		if i == 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "Next: %s\n", next)
	}
}

// row prints one named value.
func (a *app) row(name, format string, args ...any) {
	fmt.Fprintf(a.out, "%-12s %s\n", name+":", run.OneLine(fmt.Sprintf(format, args...)))
}

// optional prints one named value that may be empty.
func (a *app) optional(name, value string) {
	if value != "" {
		a.row(name, "%s", value)
	}
}

// describeStatus describes a status: as recorded and as Temporal reports it, where these differ.
func describeStatus(s run.EffectiveStatus) string {
	switch {
	case s.Status != s.Recorded:
		return fmt.Sprintf("%s (recorded: %s; %s)", s.Status, s.Recorded, s.Detail)
	case s.Live != "" && s.Live != s.Recorded && s.Recorded.Class() == run.Live:
		return fmt.Sprintf("%s (as recorded; its workflow is %s, and the directory follows when it can be written)",
			s.Status, s.Live)
	case s.NoWorker != nil:
		return fmt.Sprintf("%s (waits for a worker)", s.Status)
	case s.Liveness == run.LiveUnknown && !s.Status.Closed():
		return fmt.Sprintf("%s (as recorded; whether it is alive is unknown: %s)", s.Status, s.Detail)
	}
	return string(s.Status)
}

// waiting describes the wait for a limit; empty: the run does not wait for one.
func waiting(s inspection, now time.Time) string {
	if s.effective.Status != run.WaitingLimit {
		return ""
	}
	st := s.now.State
	return st.LimitText(clock(now)) + countdown(st.Limited, now)
}

func reason(r *string) string {
	if r == nil {
		return ""
	}
	return " (" + *r + ")"
}

func minute(ts string) string {
	t, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return ts
	}
	return t.Format("2006-01-02 15:04 UTC")
}

func age(ts string, now time.Time) string {
	t, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return "?"
	}
	return figures.Duration(now.Sub(t))
}

func ofBudget(s run.State) string {
	if s.Budget.CapUSD <= 0 {
		return ""
	}
	return fmt.Sprintf(" / %s (%.0f%%)", usd(s.Budget.CapUSD), 100*s.Total()/s.Budget.CapUSD)
}

// otherBudgets lists the budgets besides that in USD, with what is used.
func otherBudgets(s run.State, now time.Time) string {
	var text strings.Builder
	for _, u := range s.BudgetUses(run.Time(now)) {
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

func (a *app) lastPasses(s run.State, all []rundir.PassRecord) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(a.out, "\nLast %d passes:\n", len(all))
	for _, r := range all {
		verdict := "PASS"
		if !r.ValidationPassed {
			verdict = "FAIL"
		}
		place := ""
		if r.SubsetID != "" {
			place = fmt.Sprintf("%s/%d%s ", r.SubsetID, r.SubsetPassNumber, r.Rotation)
		}
		fmt.Fprintf(a.out, "  %2d: %s%-9s %4.0fs  %s  %s%s\n", r.GlobalPassNumber, place, figures.Title(r.AgentRole),
			float64(r.DurationMS)/1000, run.ShortCost(r.Tokens.EstimatedCostUSD, r.Tokens.UnknownCalls), verdict,
			completedSet(s, r))
	}
	fmt.Fprintln(a.out)
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

func checkpointWords(s rundir.Summary) string {
	switch s.Checkpoints {
	case 0:
		return "none"
	case 1:
		return "1 (" + *s.FirstCheckpoint + ")"
	}
	return fmt.Sprintf("%d (%s through %s)", s.Checkpoints, *s.FirstCheckpoint, *s.LastCheckpoint)
}

// prefixed returns text after its introduction; empty if text is empty.
func prefixed(intro, text string) string {
	if text == "" {
		return ""
	}
	return intro + text
}
