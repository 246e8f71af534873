package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) status() *cobra.Command {
	var dir string
	var asJSON, verbose bool
	cmd := a.target(&cobra.Command{
		Use: "status [RUN]", Short: "Where a run stands, from its directory",
		Long: `Where a run stands, as its directory says, beside what Temporal says of its workflow if a server can be reached; none is started, none is needed.
A run that its events leave open and whose workflow has ended is shown as interrupted.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "more: epoch, calls that are out, journal, store, last errors")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		s, err := a.look(cmd.Context(), d)
		if err != nil {
			return err
		}
		if asJSON {
			if err := a.json(s.report()); err != nil {
				return err
			}
			return s.undecided()
		}
		a.printStatus(s, time.Now())
		if verbose {
			if err := a.printMore(s); err != nil {
				return err
			}
		}
		if s.now.Why != nil || s.lost != nil || unrepaired(s.now.Damage) {
			return quiet(exitAttention)
		}
		return s.undecided()
	}
	return cmd
}

// undecided is the exit code of a run that was interrupted and left a question open.
func (s sight) undecided() error {
	if _, open := s.now.State.Asks(); open && s.claim.RunID != "" && s.stands.Status == run.Interrupted {
		return quiet(exitOperator)
	}
	return nil
}

// printStatus is requirement 002 §9.1.
func (a *app) printStatus(s sight, now time.Time) {
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
	row("Status", "%s", standingWords(s.stands))
	if h := s.stands.Held; h != nil {
		row("Held up", "%s", h.Cause)
	}
	if n := s.stands.NoWorker; n != nil {
		row("Worker", "none: %s", noWorkerWords(*n))
	}
	if s.stands.Status == s.stands.Recorded {
		row("Phase", "%s%s", strings.ToUpper(sum.CurrentPhase), reason(sum.PhaseReason))
	}
	row("Started", "%s", minute(st.StartedAt))
	if w := s.now.Meta.Workspace; w != nil {
		row("Workspace", "%s of %s%s", s.dir.Path(rundir.WorkspaceDir), w.Source, ifSaid(", branch ", w.Branch))
	}
	if d := st.Delivery; d != nil && d.Delivered {
		row("Delivered", "to %s %s%s", d.To, d.Target, ifSaid(", commit ", d.Commit))
	} else if d != nil {
		row("Delivered", "nothing: %s", d.Message)
	}
	if q, open := st.Asks(); open {
		row("Waits for", "%s (%s)", q.Words(), strings.Join(q.Actions, ", "))
	}
	row("Last save", "%s (%s ago)", minute(st.TS), age(st.TS, now))
	fmt.Fprintln(a.out)
	row("Progress", "%d/%d corpus passes (%d%%)  +  %d PA cycles", st.Passes.LastSettled, st.Passes.Total, percent(st), st.Rounds)
	if st.Set != "" {
		row("Subset", "%s", st.Set)
	}
	row("Cost", "%s%s", usd(st.Total()), ofBudget(st))
	if st.Score != nil {
		row("Score", "%.1f%s", *st.Score, target(st, sum))
	}
	a.lastPasses(sum.LastPasses)
	row("Checkpoints", "%s", checkpointWords(sum))
	row("Errors", "%d recovered, %d unrecovered", sum.Recovered, sum.Unrecovered)
	if p := st.Problem; p != nil {
		row("Last error", "%s %s: %s — %s", minute(p.TS), p.Context, p.Category, p.Message)
	}
	if st.Refused > 0 {
		row("Refused", "%d messages that could not be acted on (starter logs %s)", st.Refused, shell.Quote(s.dir.Root))
	}
	if s.now.Lag > 0 {
		row("Journal", "%d events are not folded into %s yet", s.now.Lag, rundir.MetaFile)
	}
	if s.lost != nil {
		row("Damage", "%v", s.lost)
	} else if s.now.Why != nil {
		row("Damage", "%v; what is shown is folded from %s", s.now.Why, rundir.EventsFile)
	}
	for _, d := range s.now.Damage {
		row("Damage", "%s", d)
	}
	a.printNext(nextCommands(s))
}

// printForeign is what can be said of a run that another program recorded: what its events come to.
func (a *app) printForeign(s sight) {
	st, shot := s.now.State, s.now.Snapshot
	a.row("Directory", "%s (recorded by another program)", s.dir.Root)
	if st.Task != "" {
		a.row("Task", "%s", st.Task)
	}
	a.row("Status", "%s%s", s.stands.Status, reason(text(st.Reason)))
	a.row("Started", "%s", st.StartedAt)
	a.row("Last event", "%s (%d events)", st.TS, shot.Seq)
	for _, list := range []struct {
		name   string
		phases []string
	}{{"Phases", shot.SeenPhases}, {"Completed", shot.CompletedPhases}, {"Failed", shot.FailedPhases}, {"Hand-offs", shot.SeenHandoffIDs}} {
		if len(list.phases) > 0 {
			a.row(list.name, "%s", strings.Join(list.phases, ", "))
		}
	}
	waits := []run.Status{run.AwaitingPhaseHandoff, run.AwaitingHumanReview, run.Failed, run.Interrupted}
	if shot.ActiveHandoffID != nil && slices.Contains(waits, s.stands.Status) {
		a.row("Undecided", "%s", *shot.ActiveHandoffID)
	}
	a.printProjects(s.projects)
}

// printProjects is where the projects of a run across projects stand.
func (a *app) printProjects(p *run.CrossParent) {
	if p == nil {
		return
	}
	a.row("Projects", "%s", strings.ReplaceAll(string(p.Class), "_", " "))
	for _, c := range p.Children {
		a.row("  "+c.Alias, "%s%s", cmp.Or(c.Status, "no record"), ifSaid(", blocks the release: ", c.Blocker))
	}
}

// text is a text that may be missing.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// printNext says what to type next.
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

// standingWords says both axes where they differ, and what is not known.
func standingWords(s run.Standing) string {
	switch {
	case s.Status != s.Recorded:
		return fmt.Sprintf("%s (recorded: %s; %s)", s.Status, s.Recorded, s.Detail)
	case s.Live != "" && s.Live != s.Recorded && s.Recorded.Class() == run.Live:
		return fmt.Sprintf("%s (as recorded; its workflow says %s, and the directory follows when it can be written)", s.Status, s.Live)
	case s.NoWorker != nil:
		return fmt.Sprintf("%s (waits for a worker)", s.Status)
	case s.Liveness == run.LiveUnknown && !s.Status.Closed():
		return fmt.Sprintf("%s (as recorded; whether it is alive is unknown: %s)", s.Status, s.Detail)
	}
	return string(s.Status)
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
	return short(now.Sub(t))
}

// short writes a duration as 4h 23m, 4m 32s or 42s (requirement 002 §7.3).
func short(d time.Duration) string {
	d = max(0, d)
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	case d >= time.Minute:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}

func percent(s run.State) int {
	if s.Passes.Total == 0 {
		return 0
	}
	return (200*s.Passes.LastSettled + s.Passes.Total) / (2 * s.Passes.Total)
}

func ofBudget(s run.State) string {
	if s.Budget.CapUSD <= 0 {
		return ""
	}
	return fmt.Sprintf(" / %s (%.0f%%)", usd(s.Budget.CapUSD), 100*s.Total()/s.Budget.CapUSD)
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

func (a *app) lastPasses(all []rundir.PassRecord) {
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
		fmt.Fprintf(a.out, "  %2d: %s%-9s %4.0fs  %s  %s\n", r.GlobalPassNumber, place, title(r.AgentRole),
			float64(r.DurationMS)/1000, usd(r.Tokens.EstimatedCostUSD), verdict)
	}
	fmt.Fprintln(a.out)
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
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

// ifSaid is a text behind its introduction, or nothing.
func ifSaid(intro, text string) string {
	if text == "" {
		return ""
	}
	return intro + text
}
