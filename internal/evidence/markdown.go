package evidence

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
)

// most is the maximum number of files in a list; the JSON has all.
const most = 20

// page writes Markdown. The first error of the writer is kept.
type page struct {
	to  io.Writer
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// row writes one row of a table, with its cells escaped.
func (p *page) row(cells ...string) {
	for i, c := range cells {
		cells[i] = cell(c)
	}
	p.line("| %s |", strings.Join(cells, " | "))
}

// table writes the header of a table.
func (p *page) table(heads ...string) {
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

// Markdown writes the evidence as a page for a pull request.
func (e Evidence) Markdown(to io.Writer) error {
	p := &page{to: to}
	p.line("# Evidence of %s\n", cmp.Or(cell(e.RunID), "a run"))
	e.asked(p)
	e.done(p)
	e.checked(p)
	e.decided(p)
	e.spent(p)
	e.delivered(p)
	return p.err
}

func (e Evidence) asked(p *page) {
	p.line("## What was asked\n")
	p.table("", "")
	p.row("Task", e.Task)
	if e.Pipeline != "" {
		p.row("Pipeline", e.Pipeline+" "+short(e.Definition))
	}
	if e.Parent != nil {
		p.row("Follows", e.Parent.RunID+" ("+e.Parent.Mode+")")
	}
	if e.Adopted != nil {
		p.row("Continues", e.Adopted.Text())
	}
	if w := e.Workspace; w != nil {
		p.row("Works on", strings.TrimSpace(w.Source+" "+short(w.Base)))
		if w.Branch != "" {
			p.row("Branch", strings.TrimSpace(w.Branch+" "+short(w.Commit)))
		}
	}
	if a := e.Artifact; a != nil {
		first, last := cmp.Or(short(a.Seed), "nothing"), cmp.Or(short(a.Now), "nothing")
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
			count(int(e.Journal.Seq), "event"), e.Journal.Chain))
	}
	p.line("")
	if len(e.Inputs) == 0 {
		return
	}
	p.line("It had %s:\n", count(len(e.Inputs), "file"))
	p.table("file", "bytes", "sha-256")
	for _, f := range e.Inputs[:min(most, len(e.Inputs))] {
		p.row(f.Path, fmt.Sprint(f.Size), short(f.Digest))
	}
	p.more(len(e.Inputs))
	p.line("")
}

func (p *page) more(n int) {
	if n > most {
		p.line("\nand %d more.", n-most)
	}
}

// projects lists the projects of the run. Each has its own evidence.
func (e Evidence) projects(p *page) {
	if len(e.Projects) == 0 {
		return
	}
	p.line("Its projects, in the order of their starts:\n")
	p.table("project", "run", "needs", "outcome", "commit")
	for _, one := range e.Projects {
		p.row(one.Alias, one.RunID, strings.Join(one.Needs, ", "), one.Line(nil), short(one.Commit))
	}
	p.line("")
}

func (e Evidence) done(p *page) {
	p.line("## What was done\n")
	e.projects(p)
	e.lanes(p)
	switch {
	case len(e.Passes) > 0:
		p.table("#", "stage", "round", "role", "outcome", "attempts", "time", "cost", "changes")
		for _, r := range e.Passes {
			p.row(name(r.Number, r.Step), r.Stage, fmt.Sprint(r.Round), r.who(), string(r.Outcome),
				fmt.Sprint(r.Attempts),
				seconds(r.DurationMS), run.ShortCost(r.USD, r.Unknown), r.changes())
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
		p.line("Not listed: %s that the run went back behind.\n", count(e.Reverted, "pass"))
	}
	e.failures(p)
	e.interventions(p)
}

// cost returns what the attempt cost.
func (f Failure) cost() string {
	switch {
	case f.CostKnown == run.CostUnknown:
		return run.ShortCost(f.USD, 1)
	}
	return usd(f.USD)
}

// name returns the number of a pass, or its step.
func name(number int, step string) string {
	if number > 0 {
		return fmt.Sprint(number)
	}
	return step
}

// who returns the role, or the title of a command.
func (r Pass) who() string {
	return strings.TrimSpace(cmp.Or(r.Member, r.Role, r.Title) + " " + r.Item)
}

func (r Pass) changes() string {
	switch {
	case r.Changed > 0:
		return strings.TrimSpace(count(r.Changed, "file") + " " + short(r.Commit))
	case r.Modified:
		return "artifact"
	}
	return ""
}

func (e Evidence) failures(p *page) {
	if len(e.Failures) == 0 {
		return
	}
	p.line("Attempts that failed:\n")
	p.table("#", "round", "role", "attempt", "why", "cost")
	for _, f := range e.Failures {
		p.row(name(f.Number, f.Step), fmt.Sprint(f.Round), strings.TrimSpace(cmp.Or(f.Member, f.Role)+" "+f.Item),
			fmt.Sprint(f.Attempt),
			string(f.Category)+": "+f.Message, f.cost())
	}
	p.line("")
}

func (e Evidence) interventions(p *page) {
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

func (e Evidence) checked(p *page) {
	p.line("## What was checked\n")
	var rows [][]string
	for _, r := range e.Passes {
		if result := r.result(); result != "" {
			row := []string{name(r.Number, r.Step), fmt.Sprint(r.Round), r.who(), result,
				strings.Join(r.findings(), "; ")}
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
		p.line("- %s", s.words())
	}
	if len(e.Scores) > 0 {
		p.line("")
	}
}

// result summarizes the checks of a pass and its own judgement.
func (r Pass) result() string {
	var parts []string
	if r.Value != "" {
		parts = append(parts, r.Value)
	}
	if r.Verdict != "" && r.Verdict != r.Value {
		parts = append(parts, r.Verdict)
	}
	if r.Score != nil {
		parts = append(parts, fmt.Sprintf("score %.1f", *r.Score))
	}
	if n := len(r.Checks.Checks); n > 0 {
		passed := 0
		for _, c := range r.Checks.Checks {
			if c.Passed {
				passed++
			}
		}
		parts = append(parts, fmt.Sprintf("%d of %s passed", passed, count(n, "check")))
	}
	return strings.Join(parts, ", ")
}

func (r Pass) findings() []string {
	var all []string
	for _, c := range r.Checks.Checks {
		if !c.Passed {
			all = append(all, strings.TrimSuffix(c.Name+": "+c.Detail, ": "))
		}
	}
	if found := r.Findings.Text(); found != "" {
		all = append(all, found)
	}
	return append(all, r.Checks.Warnings...)
}

func (s Score) words() string {
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

func (e Evidence) decided(p *page) {
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

func (e Evidence) spent(p *page) {
	p.line("## What was spent\n")
	s := e.Spend
	text := run.CostText(s.USD, s.Unknown)
	if s.CapUSD > 0 {
		text += " of " + usd(s.CapUSD)
	}
	if s.Sunk > 0 {
		text += ", of it " + usd(s.Sunk) + " on passes that the run went back behind"
	}
	if n := len(e.Projects); n > 0 {
		text += ", of it " + usd(run.State{Projects: e.Projects}.ProjectsUSD()) + " in its " + count(n, "project")
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

func (e Evidence) delivered(p *page) {
	p.line("## Delivery\n")
	switch d := e.Delivery; {
	case d == nil && len(e.Projects) > 0:
		p.line("To all projects or to none: see the outcomes of the projects.")
	case d == nil:
		p.line("None.")
	case d.Delivered:
		target := strings.TrimSpace(d.Target + " " + short(d.Commit))
		p.line("%s delivered to %s %s, at %s. The work: %s.", count(d.Files, "file"), cell(d.To), cell(target), d.At, cell(d.Fresh))
	default:
		p.line("Nothing was delivered: %s", cell(cmp.Or(d.Message, "there is nothing to deliver")))
	}
	if e.Damaged > 0 {
		p.line("\n%s of the journal cannot be read.", count(e.Damaged, "line"))
	}
}

// short returns the beginning of a digest or commit.
func short(id string) string { return id[:min(12, len(id))] }

func usd(v float64) string { return fmt.Sprintf("$%.2f", v) }

func seconds(ms int64) string { return fmt.Sprintf("%.1fs", float64(ms)/1000) }

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

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
