package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// Scene is the content of the screen: a run at one moment.
type Scene struct {
	State      run.State
	Figures    view.Figures
	StatusText string
	Status     run.Status
	Task       string
	Output     Output
	Outputs    []Output  // of all running calls
	Question   *Question // open question
	Why        string    // why it does not continue, and what to do
	Now        time.Time
	Zone       *time.Location // of the time until which it waits; nil: UTC
}

// Output is the end of the output of a running agent.
type Output struct {
	Call  string // id
	Who   string
	Doing string // the tool that runs, the model requests and the tokens until now
	Lines []string
	Why   string // why there is none
}

// Question is the open question of a run.
type Question struct {
	run.Question
	About []string // the end of the judged files
}

// header returns the title, the id and the start (TM-02).
func (t theme) header(s Scene, width int) []string {
	title := cmp.Or(s.State.Wording.Words().Title, strings.ToUpper(strings.ReplaceAll(s.State.Pipeline, "-", " ")))
	if s.Task != "" && s.Task != s.State.Pipeline {
		title += t.dim.Render("  " + run.OneLine(s.Task))
	}
	second := fmt.Sprintf("Run: %.8s  │  Started: %s", s.State.RunID, minute(s.State.StartedAt))
	if s.State.Epoch > 1 {
		second += fmt.Sprintf("  │  Epoch %d", s.State.Epoch)
	}
	if s.State.Generation > 0 {
		second += "  │  " + run.Plural(s.State.Generation, "revert")
	}
	return []string{
		ends(" "+t.strong.Render(cut(title, width-lipgloss.Width(t.status(s))-3)), t.status(s)+" ", width),
		fit(t.dim.Render(" "+second), width),
	}
}

// status formats the status with its symbol.
func (t theme) status(s Scene) string {
	switch s.Status.Color() {
	case run.ColorLive:
		return t.good.Render("▶ " + s.Status.Words())
	case run.ColorPaused, run.ColorAsks:
		return t.warn.Render("‖ " + s.Status.Words())
	case run.ColorDone:
		if s.State.NotApproved() {
			return t.warn.Render("! " + s.Status.Words() + ", not approved")
		}
		return t.good.Render("✓ " + s.Status.Words())
	}
	return t.bad.Render("✗ " + s.Status.Words())
}

func minute(ts string) string {
	m, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return "–"
	}
	return m.Format("2006-01-02 15:04 UTC")
}

// panels returns the parts of the screen for a run, the most important first.
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
	switch s.Status.Color() {
	case run.ColorDone:
		tint = t.good
	case run.ColorBad:
		tint = t.bad
	}
	short := "Waits"
	if s.Status.Closed() {
		short = "Result"
	}
	add(wait, panel{
		title: waitTitle(s), short: short, lines: func(w int) []string { return t.wait(s, w) }, tint: &tint,
		wide: true,
	})
	lanes := s.State.Lanes
	add(lanes != nil, panel{
		title: "Lanes", lines: func(w int) []string { return t.lanes(s, w) },
	})
	add(lanes == nil && (len(f.InFlight) > 0 || s.Status == run.Running), panel{
		title: currentTitle(f), short: "Current", lines: func(w int) []string { return t.current(s, w) },
	})
	add(len(s.State.Projects) > 0, panel{
		title: "Projects", lines: func(w int) []string { return t.projects(s.State, w) },
	})
	add(f.Cycle != nil, panel{title: cycleTitle(f), short: view.Title(f.Words.Round),
		lines: func(w int) []string { return t.cycle(f, w) }})
	begun := s.State.RunID != ""
	add(begun, panel{title: "Timing", lines: func(w int) []string { return t.timing(f, w) }})
	add(begun, panel{title: "Cost", lines: func(w int) []string { return t.cost(f, w) }})
	add(begun, panel{right: true, title: "Quality", lines: func(w int) []string { return t.quality(f, w) }})
	add(len(f.Sets) > 0, panel{
		right: true, title: setsTitle(f), short: setsTitle(f),
		lines: func(w int) []string { return t.sets(nearby(f.Sets), w) },
	})
	add(len(f.Sets) == 0 && len(f.Stages) > 0, panel{
		right: true, title: "Stages", lines: func(w int) []string { return t.stages(f.Stages, w) },
	})
	add(len(f.Sets) > 0 && len(f.Last) > 0, panel{
		right: true, title: lastTitle(f), short: "Last", lines: func(w int) []string { return t.last(f, w) },
	})
	add(len(f.Sets) == 0 && len(f.Settled) > 0, panel{
		right: true, title: "Last steps", short: "Last", lines: func(w int) []string { return t.settled(f, w) },
	})
	add(s.Status == run.Running, panel{
		right: true, title: outputTitle(s.Output), short: "Output",
		lines: func(w int) []string { return t.output(s.Output, w) },
		grows: true,
	})
	return out
}

// progress shows phase, progress bar and position in the plan.
func (t theme) progress(s Scene, w int) []string {
	p := s.Figures.Progress
	phase := strings.ToUpper(p.Stage)
	if phase == "" {
		phase = strings.ToUpper(s.State.Phase)
	}
	switch {
	case s.Status == run.Done:
		phase = "COMPLETE"
	case s.Status == run.WaitingLimit:
		phase = strings.TrimSpace(phase + t.warn.Render("  waits"))
	case s.Status.Class() == run.OperatorPause:
		phase = strings.TrimSpace(phase + t.warn.Render("  paused: "+reasonOf(s)))
	}
	out := []string{t.name("Phase") + phase}
	if text := s.State.LimitText(run.Clock{Now: s.Now, Zone: s.Zone}); text != "" && s.Status == run.WaitingLimit {
		if rest := s.State.Limited.Rest(s.Now); rest > 0 {
			text = view.Duration(rest) + " left: " + text
		}
		out = append(out, t.name("Limit")+t.warn.Render(cut(text, w-len("Limit: "))))
	}
	if s.Status.Class() == run.Live {
		for _, d := range s.State.Damage {
			out = append(out, t.name("Damage")+t.bad.Render(cut(d.String(), w-len("Damage: "))))
		}
	}
	if p.Total > 0 {
		count := fmt.Sprintf("  %d/%d (%d%%)", p.Done, p.Total, p.Percent)
		if s.State.Wording == run.WordingStages {
			count = fmt.Sprintf("  %d of %s", p.Done, run.Plural(p.Total, "stage"))
		}
		width := max(10, min(w-placed-lipgloss.Width(count), 40))
		out = append(out, t.name("Progress")+t.bar(view.Bar(p.Percent, width), width)+count)
	}
	if p.Max > 0 && !s.Status.Closed() {
		p.Round = min(p.Round, p.Max) // after the last round its question may be open
		count := fmt.Sprintf("  %d of at most %d", p.Round, p.Max)
		if p.After != "" {
			count = "  " + p.After
		}
		width := max(10, min(w-placed-lipgloss.Width(count), 40))
		if p.Total > 0 {
			out = append(out, t.name(view.Title(s.Figures.Words.Round))+strings.TrimSpace(count))
		} else {
			out = append(out, t.name("Round")+t.bar(view.Bar(run.Percent(p.Round-1, p.Max), width), width)+count)
		}
	}
	if p.Max == 0 && s.State.Wording == run.WordingStages && !s.Status.Closed() &&
		slices.ContainsFunc(s.Figures.Stages, func(st view.Stage) bool { return st.Repeats }) {
		out = append(out, t.name(view.Title(s.Figures.Words.Round))+t.dim.Render("–"))
	}
	if p.Set == "" {
		return out
	}
	set := t.padded(view.Title(s.Figures.Words.Set), placed) + p.Set + ifSaid(" (", p.Theme, ")")
	order := t.padded(view.Title(s.Figures.Words.Order), placed) + p.Order + ifSaid(" (", p.OrderLabel, ")")
	second := max(placeColumn, lipgloss.Width(set)+2) // of both lines
	out = append(out, beside(set, t.name("Pass")+fmt.Sprintf("%d/%d", p.InSet, p.OfSet), second, w))
	if p.Order != "" {
		out = append(out, beside(order, t.name("Role")+view.Title(p.Role), second, w))
	}
	return out
}

func reasonOf(s Scene) string {
	if s.State.Reason != "" {
		return s.State.Reason
	}
	return s.Status.Words()
}

// Columns of requirement 002 §7.1: of the place in the plan and what is beside it, and of second values.
const (
	placed      = 10
	placeColumn = 49
	column      = 28
)

// name is the name of a value.
func (t theme) name(s string) string { return t.padded(s, 0) }

// padded is a name before values that are aligned.
func (t theme) padded(s string, width int) string {
	return t.dim.Render(fmt.Sprintf("%-*s", width, s+": "))
}

func ifSaid(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

func currentTitle(f view.Figures) string {
	if len(f.InFlight) > 1 {
		return fmt.Sprintf("Current: %d calls", len(f.InFlight))
	}
	if len(f.InFlight) == 1 && f.InFlight[0].Command != "" {
		return "Current command"
	}
	return "Current Pass"
}

// current shows the running calls, their time and their inputs.
func (t theme) current(s Scene, w int) []string {
	f := s.Figures
	if len(f.InFlight) == 0 {
		return []string{t.dim.Render(between(f)), ""} // as high as a call, so that the next panels keep their place
	}
	if len(f.InFlight) > 1 {
		var out []string
		for _, fl := range f.InFlight {
			who := view.Title(nameOf(fl)) + attempt(fl)
			out = append(out, ends(who, t.accent.Render("running ")+view.Duration(fl.Elapsed), w))
		}
		return out
	}
	fl := f.InFlight[0]
	head := view.Title(nameOf(fl))
	if fl.Number > 0 && s.State.Wording != run.WordingStages {
		order := ifSaid(" "+view.Title(f.Words.Order)+" ", fl.Order, "")
		who := strings.TrimSpace(fl.Set + order + " " + view.Title(fl.Role))
		head = fmt.Sprintf("Pass %d/%d │ %s", fl.Number, f.Progress.Total, who)
	}
	elapsed := fmt.Sprintf("(%s elapsed)", view.Duration(fl.Elapsed))
	out := []string{head + attempt(fl), t.name("Status") + t.accent.Render("Running... ") + elapsed}
	switch {
	case fl.Command != "":
		out = append(out, t.name("Command")+run.OneLine(fl.Command))
	case len(fl.Files) > 0:
		out = append(out, t.name("Files")+strings.Join(fl.Files, " → "))
	}
	return append(out, t.instructions(s.State.Instructions, w)...)
}

// instructions lists the instructions that no prompt has contained yet.
func (t theme) instructions(all []run.Instruction, w int) []string {
	var out []string
	for _, i := range all {
		if len(i.Uses) == 0 {
			out = append(out, fit(t.name("Operator")+t.warn.Render("» ")+run.OneLine(i.Text)+" ("+i.Words()+")", w))
		}
	}
	return out
}

// between describes the work between calls.
func between(f view.Figures) string {
	if f.Cycle != nil {
		for _, step := range f.Cycle.Steps {
			if step.At == view.StepRunning {
				return step.Name + " ▶"
			}
		}
	}
	return "No call is running: the next is being prepared, or waits for its attempt or for a free worker."
}

func nameOf(f view.InFlightCall) string {
	if f.Member != "" {
		return f.Member
	}
	return f.Role
}

func attempt(f view.InFlightCall) string {
	if f.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", f.Attempt)
}

func (t theme) timing(f view.Figures, w int) []string {
	g := f.Timing
	of := func(d *time.Duration) string {
		if d == nil {
			return t.dim.Render("–")
		}
		return view.Duration(*d)
	}
	elapsed := view.Duration(g.Elapsed)
	if g.Paused >= time.Minute {
		elapsed += t.dim.Render(" + " + view.Duration(g.Paused) + " paused")
	}
	left := t.dim.Render("–")
	if g.Remaining != nil {
		left = "~" + view.Duration(*g.Remaining) + t.dim.Render(" (est)")
	}
	set := ""
	if len(f.Sets) > 0 {
		set = t.name("Avg/subset") + of(g.MeanSet)
	}
	const aligned = 12
	return []string{
		beside(t.padded("Elapsed", aligned)+elapsed, t.name("Avg/pass")+of(g.Mean), column, w),
		beside(t.padded("Remaining", aligned)+left, set, column, w),
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// setsShown is the maximum number of sets.
const setsShown = 21

// nearby returns the sets around the current one, if there are too many.
func nearby(sets []view.Set) []view.Set {
	at := 0
	for i, s := range sets {
		if s.Done > 0 {
			at = i
		}
	}
	from := max(0, min(at-setsShown/2, len(sets)-setsShown))
	return sets[from:min(len(sets), from+setsShown)]
}

func setsTitle(f view.Figures) string {
	name, sets := view.Title(f.Words.Set)+" Progress", f.Sets
	if len(sets) <= setsShown {
		return name
	}
	done := 0
	for _, s := range sets {
		if s.Done == s.Total {
			done++
		}
	}
	return fmt.Sprintf("%s: %d of %d done", name, done, len(sets))
}

// sets shows the grid of sets: S1 ████████ done (TM-10).
func (t theme) sets(sets []view.Set, w int) []string {
	idWidth, wordWidth := 0, len("done")
	for _, s := range sets {
		idWidth = max(idWidth, lipgloss.Width(cut(s.ID, 12)))
		wordWidth = max(wordWidth, len(fmt.Sprintf("%d/%d", s.Done, s.Total)))
	}
	const between = "  │  "
	cell := idWidth + 1 + 8 + 1 + wordWidth
	perRow := max(1, (w+lipgloss.Width(between))/(cell+lipgloss.Width(between)))
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
		row += fit(cut(s.ID, 12), idWidth) + " " + t.bar(s.Steps(8), 8) + " " + fit(word, wordWidth)
		if i%perRow < perRow-1 {
			row += t.frame.Render(between)
		}
		if i%perRow == perRow-1 || i == len(sets)-1 {
			out, row = append(out, row), ""
		}
	}
	return out
}

// stages shows the progress of a run without sets.
func (t theme) stages(stages []view.Stage, w int) []string {
	var out []string
	for _, s := range stages {
		sign, rounds := t.dim.Render("·"), ""
		switch {
		case s.Unmet != "":
			sign = t.warn.Render("!")
		case s.Finished:
			sign = t.good.Render("✓")
		case s.Current:
			sign = t.accent.Render("▶")
		}
		switch {
		case s.Repeats && s.Current:
			rounds = s.RoundText()
		case s.Repeats && !s.Finished:
			rounds = fmt.Sprintf("at most %s", count(s.Max, "round", "rounds"))
		case s.Unmet != "":
			rounds = fmt.Sprintf("%s without %s", count(s.Rounds, "round", "rounds"), s.Unmet)
		case s.Repeats && s.Rounds > 0:
			rounds = count(s.Rounds, "round", "rounds")
		}
		out = append(out, pair(sign+" "+s.Title, t.dim.Render(rounds), w))
	}
	return out
}

// lastPasses are the last three passes, the running ones among them.
func lastPasses(f view.Figures) (settled []view.Numbered, running []view.InFlightCall) {
	for _, fl := range f.InFlight {
		if fl.Number > 0 {
			running = append(running, fl)
		}
	}
	const shown = 3
	return f.Last[max(0, len(f.Last)-max(0, shown-len(running))):], running
}

func lastTitle(f view.Figures) string {
	settled, running := lastPasses(f)
	return "Last " + count(len(settled)+len(running), "pass", "passes")
}

// last shows the last and the running passes (TM-11): 33: S5/1A Builder  166s  $1.18  PASS.
func (t theme) last(f view.Figures, _ int) []string {
	settled, running := lastPasses(f)
	longest := len("S5/2A Verifier")
	for _, p := range settled {
		longest = max(longest, lipgloss.Width(p.Name()))
	}
	var out []string
	for _, p := range settled {
		verdict := t.good.Render("PASS")
		if !p.ValidationPassed {
			verdict = t.bad.Render("FAIL")
		}
		extra := ""
		if p.RetryCount > 0 {
			extra += t.warn.Render("  " + count(p.RetryCount, "retry", "retries"))
		}
		if p.Checkpoint != "" {
			extra += t.dim.Render("  ← " + p.Checkpoint)
		}
		out = append(out, fmt.Sprintf("%3d: %-*s %3.0fs  %5s  %s%s", p.GlobalPassNumber, longest, p.Name(),
			float64(p.DurationMS)/1000, run.CostPhrase(p.Tokens.EstimatedCostUSD, p.Tokens.UnknownCalls), verdict, extra))
	}
	for _, fl := range running {
		name := view.PlaceName(fl.Set, f.Progress.InSet, fl.Order, fl.Role)
		out = append(out, fmt.Sprintf("%3d: %-*s %s", fl.Number, longest, name, t.accent.Render("...running...")))
	}
	return out
}
