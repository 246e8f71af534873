package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) status() *cobra.Command {
	var dir string
	var asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "status [RUN]", Short: "Where a run stands, from its directory alone",
		Long: "Where a run stands, as its directory says. No server is asked or needed.\n\n" + exitCodesHelp,
	}, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		d, err := operate.Find(a.settings.StateDir, named(args, dir))
		if err != nil {
			return err
		}
		book, meta, err := read(d)
		if err != nil {
			return err
		}
		if asJSON {
			enc := json.NewEncoder(a.out)
			enc.SetIndent("", "  ")
			return enc.Encode(meta.State)
		}
		a.printStatus(d, book, meta, time.Now())
		return nil
	}
	return cmd
}

func read(d rundir.Dir) (rundir.PipelineState, rundir.Meta, error) {
	claim, err := d.Claim()
	if err != nil {
		return rundir.PipelineState{}, rundir.Meta{}, err
	}
	meta, err := d.Meta()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rundir.PipelineState{}, meta, fmt.Errorf("run %s has not written anything yet: %s is not there; a worker writes it (starter server status)", claim.RunID, rundir.MetaFile)
	case err != nil:
		return rundir.PipelineState{}, meta, fmt.Errorf("%w; the run's next event writes it again", err)
	}
	book, err := d.State()
	return book, meta, err
}

// printStatus is requirement 002 §9.1.
func (a *app) printStatus(d rundir.Dir, b rundir.PipelineState, m rundir.Meta, now time.Time) {
	s := m.State
	fmt.Fprintf(a.out, "Pipeline Status\n═══════════════\n")
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.out, "%-12s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	row("Run ID", "%s", b.RunID)
	row("Pipeline", "%s", s.Pipeline)
	row("Status", "%s", s.Status)
	row("Phase", "%s%s", strings.ToUpper(b.CurrentPhase), reason(b.PhaseReason))
	row("Started", "%s", minute(b.StartedAt))
	row("Last save", "%s (%s ago)", minute(b.LastSavedAt), age(b.LastSavedAt, now))
	fmt.Fprintln(a.out)
	row("Progress", "%d/%d corpus passes (%d%%)  +  %d PA cycles", b.LastCompletedCorpusPass, b.TotalCorpusPasses, percent(b), b.CompletedPACycles)
	if b.CurrentSubsetID != nil {
		row("Subset", "%s", *b.CurrentSubsetID)
	}
	row("Cost", "%s%s", usd(s.Total()), ofBudget(s))
	if b.LastPAScore != nil {
		row("Score", "%.1f%s", *b.LastPAScore, target(b))
	}
	a.lastPasses(b)
	row("Checkpoints", "%s", checkpointWords(b.Checkpoints))
	recovered := 0
	for _, e := range b.ErrorHistory {
		if e.Recovered {
			recovered++
		}
	}
	row("Errors", "%d recovered, %d unrecovered", recovered, len(b.ErrorHistory)-recovered)
	if next := nextCommand(d, s); next != "" {
		fmt.Fprintf(a.out, "\nNext: %s\n", next)
	}
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

func percent(b rundir.PipelineState) int {
	if b.TotalCorpusPasses == 0 {
		return 0
	}
	return (200*b.LastCompletedCorpusPass + b.TotalCorpusPasses) / (2 * b.TotalCorpusPasses)
}

func ofBudget(s run.State) string {
	if s.Budget.CapUSD <= 0 {
		return ""
	}
	return fmt.Sprintf(" / %s (%.0f%%)", usd(s.Budget.CapUSD), 100*s.Total()/s.Budget.CapUSD)
}

func target(b rundir.PipelineState) string {
	if b.PAScoreThreshold == nil {
		return ""
	}
	if *b.LastPAScore < *b.PAScoreThreshold && b.CurrentPhase == "complete" {
		return fmt.Sprintf(" — threshold not met (%.1f of %.1f)", *b.LastPAScore, *b.PAScoreThreshold)
	}
	return fmt.Sprintf(" (target %.1f)", *b.PAScoreThreshold)
}

func (a *app) lastPasses(b rundir.PipelineState) {
	var all []rundir.PassRecord
	for _, r := range b.PassRecords {
		all = append(all, r)
	}
	slices.SortFunc(all, func(x, y rundir.PassRecord) int { return x.GlobalPassNumber - y.GlobalPassNumber })
	if len(all) == 0 {
		return
	}
	all = all[max(0, len(all)-3):]
	fmt.Fprintf(a.out, "\nLast %d passes:\n", len(all))
	for _, r := range all {
		verdict := "PASS"
		if !r.ValidationPassed {
			verdict = "FAIL"
		}
		fmt.Fprintf(a.out, "  %2d: %s/%d%s %-9s %4.0fs  %s  %s\n", r.GlobalPassNumber, r.SubsetID, r.SubsetPassNumber, r.Rotation, title(r.AgentRole),
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

func checkpointWords(c []rundir.CheckpointRecord) string {
	switch len(c) {
	case 0:
		return "none"
	case 1:
		return "1 (" + c[0].ID + ")"
	}
	return fmt.Sprintf("%d (%s through %s)", len(c), c[0].ID, c[len(c)-1].ID)
}

// nextCommand is what to type next.
func nextCommand(d rundir.Dir, s run.State) string {
	switch {
	case s.Status == run.Paused && s.Reason == run.BudgetThreshold:
		return fmt.Sprintf("%s budget %s --usd N, then %s resume %s", program(), d.Root, program(), d.Root)
	case s.Status == run.Paused && s.Reason == run.ConsecutiveFailures:
		return "mend the cause, then " + program() + " resume --force " + d.Root
	case s.Status == run.Paused:
		return program() + " resume " + d.Root
	}
	return ""
}
