package watch

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/figures"
	"github.com/passbook-run/passbook/run"
)

// Scene is everything that is on the screen: a run at one moment.
type Scene struct {
	State    run.State
	Figures  figures.Figures
	Standing string // where it stands, in words
	Status   run.Status
	Task     string
	Output   Output
	Question *Question // that is open or undecided
	Why      string    // it rests: what for, and what to do
	Now      time.Time
}

// Output is the end of what a running agent has said.
type Output struct {
	Who   string
	Lines []string
	Why   string // there is none
}

// Question is what a run waits for.
type Question struct {
	run.Question
	About   []string // the end of what is judged
	Choices []Choice
}

// Choice is one answer.
type Choice struct {
	Action, Meaning string
	Words           bool // it needs some
}

// header is the title, the id and the start (TM-02).
func (t theme) header(s Scene, width int) []string {
	title := strings.ToUpper(strings.ReplaceAll(s.State.Pipeline, "-", " "))
	if s.State.RunID == "" && s.State.Seq > 0 {
		return []string{
			ends(" "+t.strong.Render(cut(run.OneLine(s.Task), width-lipgloss.Width(t.status(s))-3)), t.status(s)+" ", width),
			fit(t.dim.Render(fmt.Sprintf(" Recorded by another program │ %d events", s.State.Seq)), width),
		}
	}
	if s.Task != "" && s.Task != s.State.Pipeline {
		title += t.dim.Render("  " + run.OneLine(s.Task))
	}
	second := fmt.Sprintf("Run %.8s │ Started %s", s.State.RunID, minute(s.State.StartedAt))
	if s.State.Epoch > 1 {
		second += fmt.Sprintf(" │ Epoch %d", s.State.Epoch)
	}
	if s.State.Generation > 0 {
		second += fmt.Sprintf(" │ %d times gone back", s.State.Generation)
	}
	return []string{
		ends(" "+t.strong.Render(cut(title, width-lipgloss.Width(t.status(s))-3)), t.status(s)+" ", width),
		fit(t.dim.Render(" "+second), width),
	}
}

// status is the status with its sign.
func (t theme) status(s Scene) string {
	switch s.Status.Class() {
	case run.Live:
		return t.good.Render("▶ " + string(s.Status))
	case run.OperatorPause:
		return t.warn.Render("‖ " + string(s.Status))
	}
	if s.Status == run.Done {
		return t.good.Render("✓ done")
	}
	return t.bad.Render("✗ " + string(s.Status))
}

func minute(ts string) string {
	m, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return "–"
	}
	return m.Format("2006-01-02 15:04 UTC")
}

// panels are the parts of the screen that make sense for a run, the most important first.
func (t theme) panels(s Scene) []panel {
	out := []panel{{title: "Progress", lines: func(w int) []string { return t.progress(s, w) }}}
	add := func(ok bool, p panel) {
		if ok {
			out = append(out, p)
		}
	}
	f := s.Figures
	wait := s.Question != nil || s.Why != ""
	tint := t.warn
	switch {
	case s.Status == run.Done:
		tint = t.good
	case s.Status.Closed():
		tint = t.bad
	}
	add(wait, panel{title: waitTitle(s), short: "Waits", lines: func(w int) []string { return t.wait(s, w) }, tint: &tint, wide: true})
	add(len(f.Flights) > 0 || s.Status == run.Running, panel{title: currentTitle(f), short: "Current", lines: func(w int) []string { return t.current(s, w) }})
	add(f.Cycle != nil, panel{title: cycleTitle(f), short: "Cycle", lines: func(w int) []string { return t.cycle(f, w) }})
	ours := s.State.RunID != "" // otherwise another program recorded it, and not this
	add(ours, panel{title: "Timing", lines: func(w int) []string { return t.timing(f, w) }})
	add(ours, panel{title: "Cost", lines: func(w int) []string { return t.cost(f, w) }})
	add(ours, panel{title: "Quality", lines: func(w int) []string { return t.quality(f, w) }})
	add(len(f.Sets) > 0, panel{title: setsTitle(f.Sets), short: "Subsets", lines: func(w int) []string { return t.sets(nearby(f.Sets), w) }})
	add(len(f.Sets) == 0 && len(f.Stages) > 0, panel{title: "Stages", lines: func(w int) []string { return t.stages(f.Stages, w) }})
	add(len(f.Sets) > 0 && len(f.Last) > 0, panel{title: "Last passes", short: "Last", lines: func(w int) []string { return t.last(f, w) }})
	add(len(f.Sets) == 0 && len(f.Settled) > 0, panel{title: "Last steps", short: "Last", lines: func(w int) []string { return t.settled(f, w) }})
	add(s.Status == run.Running, panel{title: outputTitle(s.Output), short: "Output", lines: func(w int) []string { return t.output(s.Output, w) }, grows: true})
	return out
}

// progress is phase, bar, and where in the plan the run stands.
func (t theme) progress(s Scene, w int) []string {
	p := s.Figures.Progress
	phase := strings.ToUpper(p.Stage)
	if phase == "" {
		phase = strings.ToUpper(s.State.Phase)
	}
	switch {
	case s.Status == run.Done:
		phase = "COMPLETE"
	case s.Status.Class() == run.OperatorPause:
		phase = strings.TrimSpace(phase + t.warn.Render("  paused: "+reasonOf(s)))
	}
	out := []string{t.name("Phase") + phase}
	if s.Status.Class() == run.Live {
		for _, d := range s.State.Damage {
			out = append(out, t.name("Damage")+t.bad.Render(cut(d.String(), w-label)))
		}
	}
	if p.Total > 0 {
		count := fmt.Sprintf("  %d/%d (%d%%)", p.Done, p.Total, p.Percent)
		width := max(10, min(w-label-lipgloss.Width(count), 100))
		out = append(out, t.name("Progress")+t.bar(figures.Bar(p.Percent, width), width)+count)
	}
	if p.Max > 0 && !s.Status.Closed() {
		count := fmt.Sprintf("  %d of at most %d", p.Round, p.Max)
		width := max(10, min(w-label-lipgloss.Width(count), 40))
		if p.Total > 0 {
			out = append(out, t.name("Cycle")+strings.TrimSpace(count))
		} else {
			out = append(out, t.name("Round")+t.bar(figures.Bar(figures.Percent(p.Round-1, p.Max), width), width)+count)
		}
	}
	if p.Set == "" {
		return out
	}
	set, order := t.name("Subset")+p.Set+ifSaid(" (", p.Theme, ")"), t.name("Rotation")+p.Order+ifSaid(" (", p.OrderLabel, ")")
	room := lipgloss.Width(set) // both second columns begin at the same place
	out = append(out, pair(set, t.dim.Render("Pass  ")+fmt.Sprintf("%d/%d", p.InSet, p.OfSet), w))
	if p.Order != "" {
		out = append(out, pair(fit(order, room), t.dim.Render("Role  ")+figures.Title(p.Role), w))
	}
	return out
}

func reasonOf(s Scene) string {
	if s.State.Reason != "" {
		return s.State.Reason
	}
	return strings.ReplaceAll(string(s.Status), "_", " ")
}

// label is how wide the names of values are.
const label = 11

func (t theme) name(s string) string { return t.dim.Render(fmt.Sprintf("%-*s", label, s)) }

func ifSaid(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func currentTitle(f figures.Figures) string {
	if len(f.Flights) > 1 {
		return fmt.Sprintf("Current: %d calls", len(f.Flights))
	}
	if len(f.Flights) == 1 && f.Flights[0].Command != "" {
		return "Current command"
	}
	return "Current pass"
}

// current is what runs, for how long, and what it reads.
func (t theme) current(s Scene, w int) []string {
	f := s.Figures
	if len(f.Flights) == 0 {
		return []string{t.dim.Render(between(f))}
	}
	if len(f.Flights) > 1 {
		var out []string
		for _, fl := range f.Flights {
			out = append(out, ends(fmt.Sprintf("%s%s", figures.Title(nameOf(fl)), attempt(fl)), t.accent.Render("running ")+figures.Duration(fl.Elapsed), w))
		}
		return out
	}
	fl := f.Flights[0]
	head := figures.Title(nameOf(fl))
	if fl.Number > 0 {
		head = fmt.Sprintf("Pass %d/%d │ %s", fl.Number, f.Progress.Total, strings.TrimSpace(fl.Set+ifSaid(" Rotation ", fl.Order, "")+" "+figures.Title(fl.Role)))
	}
	out := []string{head + attempt(fl), t.name("Status") + t.accent.Render("Running... ") + fmt.Sprintf("(%s elapsed)", figures.Duration(fl.Elapsed))}
	switch {
	case fl.Command != "":
		out = append(out, t.name("Command")+run.OneLine(fl.Command))
	case len(fl.Files) > 0:
		out = append(out, t.name("Files")+strings.Join(fl.Files, " → "))
	}
	return out
}

// between is what happens while no call is out.
func between(f figures.Figures) string {
	if f.Cycle != nil {
		for _, step := range f.Cycle.Steps {
			if step.At == figures.StepRuns {
				return step.Name + " ▶"
			}
		}
	}
	return "No call is out: the next is being prepared, or waits for its attempt or for room on a worker."
}

func nameOf(f figures.Flight) string {
	if f.Member != "" {
		return f.Member
	}
	return f.Role
}

func attempt(f figures.Flight) string {
	if f.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", f.Attempt)
}

func (t theme) timing(f figures.Figures, w int) []string {
	g := f.Timing
	of := func(d *time.Duration) string {
		if d == nil {
			return t.dim.Render("–")
		}
		return figures.Duration(*d)
	}
	elapsed := figures.Duration(g.Elapsed)
	if g.Rested >= time.Minute {
		elapsed += t.dim.Render(" + " + figures.Duration(g.Rested) + " rested")
	}
	left := t.dim.Render("–")
	if g.Remaining != nil {
		left = "~" + figures.Duration(*g.Remaining) + t.dim.Render(" (est)")
	}
	set := ""
	if len(f.Sets) > 0 {
		set = t.wide("Avg/subset") + of(g.MeanSet)
	}
	return []string{
		pair(t.name("Elapsed")+elapsed, t.wide("Avg/pass")+of(g.Mean), w),
		pair(t.name("Remaining")+left, set, w),
	}
}

// wide is a name in the second column.
func (t theme) wide(s string) string { return t.dim.Render(fmt.Sprintf("%-12s", s)) }

func (t theme) cost(f figures.Figures, w int) []string {
	c := f.Cost
	total := figures.USD(c.Total)
	if c.Estimated > 0 {
		total += t.dim.Render(" (" + figures.USD(c.Estimated) + " estimated)")
	}
	budget := t.dim.Render("none")
	if c.Budget > 0 {
		used := fmt.Sprintf(" (%d%% used)", c.Percent)
		style := t.good
		switch {
		case c.Total >= c.Budget:
			style = t.bad
		case c.Warn > 0 && c.Total >= c.Warn:
			style = t.warn
		}
		budget = figures.USD(c.Budget) + style.Render(used)
	}
	var roles []string
	for _, r := range c.Roles {
		roles = append(roles, roleName(f, r.Name)+": "+figures.USD(r.USD))
	}
	mean, projected := t.dim.Render("–"), t.dim.Render("–")
	if c.Mean != nil {
		mean = figures.USD(*c.Mean)
	}
	if c.Projected != nil {
		projected = figures.USD(*c.Projected) + t.dim.Render(" (projected)")
	}
	out := []string{pair(t.name("Total")+total, t.wide("Budget")+budget, w)}
	if len(roles) > 0 {
		out = append(out, t.name("By role")+strings.Join(roles, "  "))
	}
	return append(out, pair(t.name("Avg/pass")+mean, t.wide("Est. total")+projected, w))
}

// roleName names a row of the costs. The calls of repeated stages are one row: PA in the seed's words.
func roleName(f figures.Figures, name string) string {
	switch {
	case name != "pa":
		return figures.Title(name)
	case len(f.Sets) == 0:
		return "In loops"
	}
	return "PA"
}

func (t theme) quality(f figures.Figures, w int) []string {
	q := f.Quality
	passed := fmt.Sprintf("%d/%d passed", q.Passed, q.Judged)
	if q.Passed < q.Judged {
		passed = t.bad.Render(passed)
	}
	warnings := count(q.Warnings, "warning", "warnings")
	if q.Warnings > 0 {
		warnings = t.warn.Render(warnings)
	}
	first, second := "", ""
	if len(q.Notes) > 0 {
		first = t.name(cut(figures.Title(q.Notes[0].Name), label-1)) + count(q.Notes[0].Entries, "entry", "entries")
	}
	if len(q.Notes) > 1 {
		second = t.wide(cut(figures.Title(q.Notes[1].Name), 11)) + count(q.Notes[1].Entries, "entry", "entries")
	}
	var out []string
	if q.Judged > 0 || f.Progress.Total > 0 {
		out = append(out, pair(t.name("Valid")+passed, t.wide("Warnings")+warnings, w))
	}
	if first != "" {
		out = append(out, pair(first, second, w))
	}
	retries := fmt.Sprint(q.Retries)
	if q.Unrecovered > 0 {
		retries += t.bad.Render(fmt.Sprintf("  %d unrecovered", q.Unrecovered))
	}
	return append(out, pair(t.name("No-modify")+count(q.Unmodified, "pass", "passes"), t.wide("Retries")+retries, w))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// setsShown is how many sets there is room for.
const setsShown = 21

// nearby gives the sets around the one under way, where there are too many.
func nearby(sets []figures.Set) []figures.Set {
	at := 0
	for i, s := range sets {
		if s.Done > 0 {
			at = i
		}
	}
	from := max(0, min(at-setsShown/2, len(sets)-setsShown))
	return sets[from:min(len(sets), from+setsShown)]
}

func setsTitle(sets []figures.Set) string {
	if len(sets) <= setsShown {
		return "Subsets"
	}
	done := 0
	for _, s := range sets {
		if s.Done == s.Total {
			done++
		}
	}
	return fmt.Sprintf("Subsets: %d of %d done", done, len(sets))
}

// sets is the grid of sets: S1 ████████ done (TM-10).
func (t theme) sets(sets []figures.Set, w int) []string {
	idWidth := 0
	for _, s := range sets {
		idWidth = max(idWidth, lipgloss.Width(cut(s.ID, 12)))
	}
	cell := idWidth + 1 + 8 + 1 + 5
	perRow := max(1, (w+3)/(cell+3))
	var out []string
	row := ""
	for i, s := range sets {
		word := t.dim.Render("—")
		switch {
		case s.Done == s.Total:
			word = t.good.Render("done")
		case s.Done > 0:
			word = fmt.Sprintf("%d/%d", s.Done, s.Total)
		}
		if i%perRow > 0 {
			row += t.frame.Render(" │ ")
		}
		row += fit(cut(s.ID, 12), idWidth) + " " + t.bar(s.Steps(8), 8) + " " + fit(word, 5)
		if i%perRow == perRow-1 || i == len(sets)-1 {
			out, row = append(out, row), ""
		}
	}
	return out
}

// stages is where a run without sets stands.
func (t theme) stages(stages []figures.Stage, w int) []string {
	var out []string
	for _, s := range stages {
		sign, rounds := t.dim.Render("·"), ""
		switch {
		case s.Over:
			sign = t.good.Render("✓")
		case s.Current:
			sign = t.accent.Render("▶")
		}
		switch {
		case s.Repeats && s.Current:
			rounds = fmt.Sprintf("round %d of at most %d", s.Rounds+1, s.Max)
		case s.Repeats && !s.Over:
			rounds = fmt.Sprintf("at most %s", count(s.Max, "round", "rounds"))
		}
		out = append(out, pair(sign+" "+s.Title, t.dim.Render(rounds), w))
	}
	return out
}

// last is the last passes and those that run (TM-11): 33: S5/1A Builder  166s  $1.18  PASS.
func (t theme) last(f figures.Figures, _ int) []string {
	var out []string
	for _, p := range f.Last {
		verdict := t.good.Render("PASS")
		if !p.Passed {
			verdict = t.bad.Render("FAIL")
		}
		extra := ""
		if p.Retries > 0 {
			extra += t.warn.Render("  " + count(p.Retries, "retry", "retries"))
		}
		if p.Checkpoint != "" {
			extra += t.dim.Render("  ← " + p.Checkpoint)
		}
		out = append(out, fmt.Sprintf("%3d: %-17s %5.0fs  %6s  %s%s", p.Number, passName(p.Set, p.InSet, p.Order, p.Role), p.Duration.Seconds(), figures.USD(p.USD), verdict, extra))
	}
	for _, fl := range f.Flights {
		if fl.Number > 0 {
			out = append(out, fmt.Sprintf("%3d: %-17s %s", fl.Number, passName(fl.Set, f.Progress.InSet, fl.Order, fl.Role), t.accent.Render("...running...")))
		}
	}
	return out
}

func passName(set string, inSet int, order, role string) string {
	if set == "" {
		return figures.Title(role)
	}
	return fmt.Sprintf("%s/%d%s %s", set, inSet, order, figures.Title(role))
}
