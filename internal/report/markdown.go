package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// mostFiles is the maximum number of files in a list; the JSON has all.
const mostFiles = 20

// sheet writes Markdown. The first error of the writer is kept.
type sheet struct {
	to  io.Writer
	err error
}

func (p *sheet) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// row writes one row of a table, with its cells escaped.
func (p *sheet) row(cells ...string) {
	for i, c := range cells {
		cells[i] = cell(c)
	}
	p.line("| %s |", strings.Join(cells, " | "))
}

// table writes the header of a table.
func (p *sheet) table(heads ...string) {
	p.row(heads...)
	p.line("|%s", strings.Repeat("---|", len(heads)))
}

var escaper = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "\n", " ", "\r", "", "<", "&lt;", "`", "\\`", "*", "\\*", "[", "\\[",
)

// cell escapes text for a table cell.
func cell(text string) string {
	return escaper.Replace(text)
}

// Markdown writes the record of a run as a page for a pull request.
func Markdown(to io.Writer, e view.Record) error {
	p := &sheet{to: to}
	p.line("# Evidence of %s\n", cmp.Or(cell(e.RunID), "a run"))
	p.asked(e)
	p.done(e)
	p.checked(e)
	p.decided(e)
	p.spent(e)
	p.delivered(e)
	return p.err
}

func (p *sheet) asked(e view.Record) {
	p.line("## What was asked\n")
	p.table("", "")
	p.row("Task", e.Task)
	if e.Pipeline != "" {
		p.row("Pipeline", e.Pipeline+" "+shortID(e.Definition))
	}
	if e.Parent != nil {
		p.row("Follows", e.Parent.RunID+" ("+e.Parent.Mode+")")
	}
	if e.Adopted != nil {
		p.row("Continues", e.Adopted.Text())
	}
	if w := e.Workspace; w != nil {
		p.row("Works on", strings.TrimSpace(w.Source+" "+shortID(w.Base)))
		if w.Branch != "" {
			p.row("Branch", strings.TrimSpace(w.Branch+" "+shortID(w.Commit)))
		}
	}
	if a := e.Artifact; a != nil {
		first, last := cmp.Or(shortID(a.Seed), "nothing"), cmp.Or(shortID(a.Now), "nothing")
		p.row("Artifact", fmt.Sprintf("%s, from %s to %s", a.File, first, last))
	}
	p.row("Status", strings.TrimSuffix(e.History.Shown.StatusText()+", "+e.Reason, ", "))
	if text := e.History.Shown.Limit(); text != "" {
		p.row("Limit", text)
	}
	p.row("Time", span(e.StartedAt, e.FinishedAt))
	if e.Build != "" {
		p.row("Passbook", e.Build)
	}
	if e.Journal.Seq > 0 {
		p.row("Journal", fmt.Sprintf("%s, chain %.12s; not signed: anyone who can write the directory can write them",
			plural(int(e.Journal.Seq), "event"), e.Journal.Chain))
	}
	p.line("")
	if len(e.Inputs) == 0 {
		return
	}
	p.line("It had %s:\n", plural(len(e.Inputs), "file"))
	p.table("file", "bytes", "sha-256")
	for _, f := range e.Inputs[:min(mostFiles, len(e.Inputs))] {
		p.row(f.Path, fmt.Sprint(f.Size), shortID(f.Digest))
	}
	p.more(len(e.Inputs))
	p.line("")
}

func (p *sheet) more(n int) {
	if n > mostFiles {
		p.line("\nand %d more.", n-mostFiles)
	}
}

// projects lists the projects of the run. Each has its own evidence.
func (p *sheet) projects(e view.Record) {
	if len(e.Projects) == 0 {
		return
	}
	p.line("Its projects, in the order of their starts:\n")
	p.table("project", "run", "needs", "outcome", "commit")
	for _, one := range e.Projects {
		p.row(one.Alias, one.RunID, strings.Join(one.Needs, ", "), one.Line(nil), shortID(one.Commit))
	}
	p.line("")
}

func (p *sheet) done(e view.Record) {
	p.line("## What was done\n")
	p.projects(e)
	p.lanes(e)
	switch {
	case len(e.Passes) > 0:
		p.table("#", "stage", "round", "role", "outcome", "attempts", "time", "cost", "changes")
		for _, r := range e.Passes {
			p.row(r.Name(), r.Stage, fmt.Sprint(r.Round), strings.TrimSpace(r.By()+" "+r.Item), string(r.Outcome),
				fmt.Sprint(r.Attempts),
				fmt.Sprintf("%.1fs", float64(r.DurationMS)/1000), run.ShortCost(r.USD, r.Unknown), changesOf(r))
		}
	case len(e.Phases) > 0:
		p.table("phase", "round", "outcome", "ended")
		for _, r := range e.Phases {
			p.row(r.Name, fmt.Sprint(r.Round), strings.TrimSpace(r.Outcome), r.EndedAt)
		}
	default:
		p.line("Nothing yet.")
	}
	p.line("")
	if e.Reverted > 0 {
		p.line("Not listed: %s that the run went back behind.\n", plural(e.Reverted, "pass"))
	}
	p.failures(e)
	p.interventions(e)
}

// changesOf is what a pass changed, with its commit.
func changesOf(r view.Pass) string {
	if r.Changed > 0 {
		return strings.TrimSpace(r.Changes() + " " + shortID(r.Commit))
	}
	return r.Changes()
}

func (p *sheet) failures(e view.Record) {
	if len(e.Failures) == 0 {
		return
	}
	p.line("Attempts that failed:\n")
	p.table("#", "round", "role", "attempt", "why", "cost")
	for _, f := range e.Failures {
		cost := view.USD(f.USD)
		if f.CostKnown == run.CostUnknown {
			cost = run.ShortCost(f.USD, 1)
		}
		p.row(f.Name(), fmt.Sprint(f.Round), strings.TrimSpace(cmp.Or(f.Member, f.Role)+" "+f.Item),
			fmt.Sprint(f.Attempt),
			string(f.Category)+": "+f.Message, cost)
	}
	p.line("")
}

func (p *sheet) interventions(e view.Record) {
	if len(e.Actions) == 0 {
		return
	}
	p.line("What happened to the run from outside:\n")
	p.table("when", "what", "by", "note")
	for _, a := range e.Actions {
		p.row(a.At, a.What, a.By, a.Note)
	}
	p.line("")
}

func (p *sheet) checked(e view.Record) {
	p.line("## What was checked\n")
	var rows [][]string
	for _, r := range e.Passes {
		if result := resultOf(r); result != "" {
			row := []string{r.Name(), fmt.Sprint(r.Round), strings.TrimSpace(r.By() + " " + r.Item), result,
				strings.Join(findingsOf(r), "; ")}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 && len(e.Scores) == 0 {
		p.line("Nothing.\n")
		return
	}
	if len(rows) > 0 {
		p.table("#", "round", "role", "result", "findings")
		for _, row := range rows {
			p.row(row...)
		}
		p.line("")
	}
	for _, s := range e.Scores {
		p.line("- %s", scoreWords(s))
	}
	if len(e.Scores) > 0 {
		p.line("")
	}
}

// resultOf summarizes the checks of a pass and its own judgement; its findings follow.
func resultOf(r view.Pass) string {
	parts := r.Judgement()
	if passed, all := r.Checks.Count(); all > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s passed", passed, plural(all, "check")))
	}
	return strings.Join(parts, ", ")
}

func findingsOf(r view.Pass) []string {
	all := r.FailedChecks()
	if found := r.Findings.Text(); found != "" {
		all = append(all, found)
	}
	return append(all, r.Checks.Warnings...)
}

func scoreWords(s view.Score) string {
	if s.Score == nil {
		return fmt.Sprintf("%s, round %d: none, %s", cell(s.Name), s.Round, cell(s.Why))
	}
	text := fmt.Sprintf("%s, round %d: %.1f", cell(s.Name), s.Round, *s.Score)
	if s.Threshold != nil {
		text += fmt.Sprintf(" of %.1f", *s.Threshold)
	}
	if s.Met {
		text += ", met"
	}
	return text
}

func (p *sheet) decided(e view.Record) {
	p.line("## What was decided\n")
	if len(e.Decisions) == 0 {
		p.line("No question was asked.\n")
		return
	}
	p.table("asked", "about", "why", "verdict", "changed", "cost", "decision", "by", "when", "feedback")
	for _, d := range e.Decisions {
		about := strings.TrimSpace(fmt.Sprintf("%s %s, round %d", d.Kind, d.Phase, d.Round))
		verdict, changed, cost := "", "", ""
		if j := d.Subject.Judged; j != nil {
			verdict = j.Text()
		}
		if c := d.Subject.Change; c != nil {
			changed = c.Text()
		}
		if s := d.Subject; s.USD > 0 || s.Unknown > 0 {
			cost = run.CostText(s.USD, s.Unknown)
		}
		p.row(d.RequestedAt, about, cmp.Or(d.Question, d.Trigger), verdict, changed, cost,
			cmp.Or(d.Action, "not decided"),
			d.By, d.DecidedAt, strings.TrimSpace(d.Feedback+" "+d.Note))
	}
	p.line("")
}

func (p *sheet) spent(e view.Record) {
	p.line("## What was spent\n")
	s := e.Spend
	text := run.CostText(s.USD, s.Unknown)
	if s.CapUSD > 0 {
		text += " of " + view.USD(s.CapUSD)
	}
	if s.Sunk > 0 {
		text += ", of it " + view.USD(s.Sunk) + " on passes that the run went back behind"
	}
	if n := len(e.Projects); n > 0 {
		text += ", of it " + view.USD(run.State{Projects: e.Projects}.ProjectsUSD()) + " in its " + plural(n, "project")
	}
	p.line("%s; %d tokens in, %d out, %d read from and %d written to the cache.\n",
		text, s.Tokens.Input, s.Tokens.Output, s.Tokens.CacheRead, s.Tokens.CacheWrite)
	if e.Adopted != nil {
		p.line("The conversation that it continues had cost %s.\n", e.Adopted.CostText())
	}
	if len(s.ByRole) == 0 {
		return
	}
	p.table("role", "calls", "cost")
	for _, r := range s.ByRole {
		p.row(r.Role, fmt.Sprint(r.Calls), run.ShortCost(r.USD, r.Unknown))
	}
	p.line("")
}

func (p *sheet) delivered(e view.Record) {
	p.line("## Delivery\n")
	switch d := e.Delivery; {
	case d == nil && len(e.Projects) > 0:
		p.line("To all projects or to none: see the outcomes of the projects.")
	case d == nil:
		p.line("None.")
	case d.Delivered:
		target := strings.TrimSpace(d.Target + " " + shortID(d.Commit))
		p.line("%s delivered to %s %s, at %s. The work: %s.", plural(d.Files, "file"), cell(d.To), cell(target), d.At, cell(d.Fresh))
	default:
		p.line("Nothing was delivered: %s", cell(cmp.Or(d.Message, "there is nothing to deliver")))
	}
	if e.Damaged > 0 {
		p.line("\n%s of the journal cannot be read.", plural(e.Damaged, "line"))
	}
}

// shortID returns the beginning of a digest or commit.
func shortID(id string) string { return id[:min(12, len(id))] }

// span formats a period and its length.
func span(from, to string) string {
	a, err1 := time.Parse(run.TimeFormat, from)
	b, err2 := time.Parse(run.TimeFormat, to)
	switch {
	case from == "":
		return "not started"
	case to == "":
		return "since " + from
	case err1 != nil || err2 != nil:
		return from + " to " + to
	}
	return fmt.Sprintf("%s to %s (%s)", from, to, b.Sub(a).Round(time.Second))
}

// lanes lists the lanes of the run.
func (p *sheet) lanes(e view.Record) {
	if len(e.Lanes) == 0 {
		return
	}
	p.line("%s.\n", view.LaneTotals(e.Lanes, e.History.LanesLeft))
	p.table("lane", "item", "outcome", "calls", "cost", "commit", "directory")
	for _, l := range e.Lanes {
		p.row(fmt.Sprint(l.Number), l.Item, l.Result(), fmt.Sprint(l.Calls), run.ShortCost(l.USD, l.Unknown), shortID(l.Commit),
			l.Directory())
	}
	p.line("")
}

// meaning explains the status of a row.
func meaning(r view.Effect) string {
	text := map[string]string{
		view.EffectAttempted: "begun; no result is recorded, so it may have happened", view.EffectRecorded: "done; a replay reuses its result",
		view.EffectFailed: "begun, and failed", view.EffectReused: "not done again: the recorded result was used",
		view.EffectBlocked: "not done: an operator is asked first", view.EffectSuperseded: "done, beside the accepted one",
	}[r.Status]
	switch {
	case r.Status == view.EffectBlocked && r.Decision == run.ActionApprove:
		text = "asked; approved, so it was done here"
	case r.Status == view.EffectBlocked && r.Decision == run.ActionApply && r.Step == "delivery":
		text = "asked; the changes were put into the checkout"
	case r.Status == view.EffectBlocked && r.Decision == run.ActionApply:
		text = "asked; the recorded result was to be used"
	case r.Status == view.EffectBlocked && r.Decision != "":
		text = "asked; not done"
	}
	if r.Status == view.EffectFailed && r.Class == run.EffectExternal {
		text = "begun without a usable result; it may have happened"
	}
	if r.Reverted {
		text += "; the run was reverted to an earlier point, and the effect stays"
	}
	return text
}

// EffectsMarkdown writes the ledger of effects for people.
func EffectsMarkdown(to io.Writer, l view.Effects) error {
	p := &sheet{to: to}
	p.line("# Effects of %s\n", cell(l.RunID))
	if l.Replay != "" {
		p.line("A replay of %s with the policy `%s`.\n", cell(l.Source), cell(l.Replay))
	}
	if len(l.Effects) == 0 {
		p.line("The run has done nothing yet.")
		return p.err
	}
	p.line("| event | step | round | class | call | attempt | status | meaning |")
	p.line("|---|---|---|---|---|---|---|---|")
	for _, r := range l.Effects {
		step, class, status := r.Step, r.Class, r.Status
		if r.Role != "" && r.Role != r.Step {
			step += " " + r.Role
		}
		if r.Declared {
			class += " (declared)"
		}
		if r.Decision != "" {
			status += fmt.Sprintf(", %s by %s", r.Decision, r.Decided)
		}
		p.line("| %d | %s | %d | %s | %s | %d | %s | %s |", r.Seq, cell(step), r.Round, cell(class), cell(r.Call), r.Attempt,
			cell(status), cell(meaning(r)))
	}
	return p.err
}
