package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// Pass is one completed call or command.
type Pass struct {
	Seq     int64
	Stage   string // its name
	Round   int
	Name    string // of the role, the member or the step
	OK      bool
	Outcome string // the error that ended it
	Verdict string
	Cost    string
}

// rowKind is what a row of the list is about.
type rowKind string

const (
	questionRow rowKind = "question"
	waitRow     rowKind = "wait" // why it does not continue, or what it has made
	stageRow    rowKind = "stage"
	roundRow    rowKind = "round"
	passRow     rowKind = "pass"
	callRow     rowKind = "call" // that runs
	laneRow     rowKind = "lane"
	changesRow  rowKind = "changes"
	logRow      rowKind = "log"
)

// grows reports whether the end of its text is of interest.
func (k rowKind) grows() bool { return k == callRow || k == logRow }

// sign is the mark before a row.
type sign string

const (
	signNone    sign = " "
	signDone    sign = "✓"
	signFailed  sign = "✗"
	signWaits   sign = "!"
	signRuns    sign = "▶"
	signPending sign = "·"
)

func (t theme) mark(s sign) string {
	return map[sign]lipgloss.Style{signDone: t.good, signFailed: t.bad, signWaits: t.warn, signRuns: t.accent, signPending: t.dim}[s].
		Render(string(s))
}

// row is one row of the list.
type row struct {
	kind  rowKind
	key   string // the same at each reading
	sign  sign
	title string
	note  string
	depth int
	seq   int64  // of a pass
	call  string // that runs
	at    int    // index of a stage or lane in the figures
}

// FilterValue implements list.Item.
func (r row) FilterValue() string { return r.title }

// rowsOf returns the rows of a scene: what needs the user first, then the stages with their rounds and passes.
func rowsOf(s Scene, passes []Pass) []row {
	var out []row
	if q := s.Question; q != nil {
		out = append(out, row{kind: questionRow, key: "question " + q.ID, sign: signWaits, title: "Your answer"})
	} else if s.Why != "" || s.Status.Closed() {
		out = append(out, row{kind: waitRow, key: "wait", sign: statusSign(s), title: waitTitle(s)})
	}
	rest := passes
	for i, st := range s.Figures.Stages {
		var own []Pass
		n := slices.IndexFunc(rest, func(p Pass) bool { return p.Stage != st.Name })
		if n < 0 {
			n = len(rest)
		}
		own, rest = rest[:n], rest[n:]
		out = append(out, stageRowOf(i, st))
		out = append(out, passRows(own, st.Repeats)...)
		if st.Current {
			out = append(out, runningRows(s)...)
		}
	}
	if len(s.Figures.Stages) == 0 {
		out = append(append(out, passRows(rest, false)...), runningRows(s)...)
	} else { // of stages that the plan no longer has, or that were run again after a revert
		out = append(out, passRows(rest, false)...)
	}
	return append(out, row{kind: changesRow, key: "changes", sign: signNone, title: "Changes"},
		row{kind: logRow, key: "log", sign: signNone, title: "Log"})
}

func statusSign(s Scene) sign {
	switch s.Status.Color() {
	case run.ColorDone:
		if s.State.NotApproved() {
			return signWaits
		}
		return signDone
	case run.ColorBad:
		return signFailed
	case run.ColorLive:
		return signRuns
	}
	return signWaits
}

func stageRowOf(i int, st view.Stage) row {
	r := row{kind: stageRow, key: fmt.Sprint("stage ", i), sign: signPending, title: st.Title, at: i}
	switch {
	case st.Unmet != "":
		r.sign = signWaits
	case st.Finished:
		r.sign = signDone
	case st.Current:
		r.sign = signRuns
	}
	if st.Repeats && st.Rounds > 0 {
		r.note = count(st.Rounds, "round", "rounds")
	}
	return r
}

// passRows are the rows of the passes of a stage.
func passRows(passes []Pass, repeats bool) (out []row) {
	round, depth := 0, 1
	for _, p := range passes {
		if repeats && p.Round != round {
			round, depth = p.Round, 2
			out = append(out, row{kind: roundRow, key: fmt.Sprintf("round %s %d %d", p.Stage, round, p.Seq), sign: signNone,
				title: fmt.Sprintf("Round %d", round), depth: 1, seq: p.Seq})
		}
		r := row{kind: passRow, key: fmt.Sprint("pass ", p.Seq), sign: signDone, title: p.Name, note: cmp.Or(p.Verdict, p.Cost),
			depth: depth, seq: p.Seq}
		if !p.OK {
			r.sign, r.note = signFailed, p.Outcome
		}
		out = append(out, r)
	}
	return out
}

// runningRows are the rows of running calls and of lanes.
func runningRows(s Scene) (out []row) {
	if s.State.Lanes != nil {
		for i, l := range s.Figures.Lanes {
			r := row{kind: laneRow, key: fmt.Sprint("lane ", l.Number), sign: signRuns, depth: 1, at: i,
				title: fmt.Sprintf("%d %s", l.Number, l.Name), note: l.Does}
			if l.Waiting {
				r.sign = signWaits
			}
			out = append(out, r)
		}
		return out
	}
	for _, f := range s.Figures.InFlight {
		out = append(out, row{kind: callRow, key: "call " + f.Call, sign: signRuns, title: f.Name(), note: view.Duration(f.Elapsed),
			depth: 1, call: f.Call})
	}
	return out
}

// important is the row that is shown until the user selects another one: a question, a running call, or what ended.
func important(rows []row) int {
	for _, kind := range []rowKind{questionRow, waitRow, callRow, laneRow} {
		if at := slices.IndexFunc(rows, func(r row) bool { return r.kind == kind }); at >= 0 {
			return at
		}
	}
	for at := len(rows) - 1; at >= 0; at-- {
		if rows[at].kind == passRow {
			return at
		}
	}
	return 0
}

// line is the line of status: what is done, its task, progress, time and cost.
func (t theme) line(s Scene, w int) string {
	var right []string
	if p := s.Figures.Progress; p.Total > 0 {
		right = append(right, fmt.Sprintf("%d/%s", p.Done, run.Plural(p.Total, "stage")))
	}
	if s.State.RunID != "" {
		right = append(right, view.Duration(s.Figures.Timing.Elapsed), s.State.CostWords())
	}
	end := strings.Join(right, "  ")
	begin := " " + t.status(s) + "  "
	task := run.OneLine(cmp.Or(s.Task, s.State.Pipeline))
	return ends(begin+t.strong.Render(cut(task, max(0, w-lipgloss.Width(begin)-lipgloss.Width(end)-3))), end+" ", w)
}

// detail returns the lines of the selected row.
func (t theme) detail(s Scene, l *tool, r row, w int) []string {
	switch r.kind {
	case questionRow, waitRow:
		return t.wait(s, w)
	case stageRow:
		out := t.stages(s.Figures.Stages[r.at:r.at+1], w)
		if s.Figures.Stages[r.at].Current {
			out = append(append(out, ""), t.current(s, w)...)
		}
		return out
	case roundRow:
		return t.round(l.passes, r, w)
	case laneRow:
		return t.lanes(s, w)
	case callRow:
		return t.call(s, r, w)
	case passRow, changesRow, logRow:
		return t.sections(l, r, w)
	}
	return nil
}

// round lists what the passes of a round came to.
func (t theme) round(passes []Pass, r row, w int) []string {
	out := []string{t.strong.Render(r.title), ""}
	first := slices.IndexFunc(passes, func(p Pass) bool { return p.Seq == r.seq })
	for _, p := range passes[max(0, first):] {
		if p.Stage != passes[first].Stage || p.Round != passes[first].Round {
			break
		}
		one := passRows([]Pass{p}, false)[0]
		out = append(out, ends(t.mark(one.sign)+" "+terminal.Safe(one.title+"  ")+t.dim.Render(terminal.Safe(cmp.Or(p.Verdict, p.Outcome))),
			t.dim.Render(p.Cost), w))
	}
	return out
}

// call shows the output of a running call.
func (t theme) call(s Scene, r row, w int) []string {
	at := slices.IndexFunc(s.Figures.InFlight, func(f view.InFlightCall) bool { return f.Call == r.call })
	if at < 0 {
		return nil
	}
	f := s.Figures.InFlight[at]
	head := view.Title(f.Name()) + attempt(f) + t.dim.Render("  running "+view.Duration(f.Elapsed))
	out := []string{cut(head, w)}
	if f.Command != "" {
		out = append(out, t.dim.Render(cut(run.OneLine(f.Command), w)))
	}
	out = append(append(out, t.instructions(s.State.Instructions, w)...), "")
	i := slices.IndexFunc(s.Outputs, func(o Output) bool { return o.Call == r.call })
	if i < 0 {
		return append(out, t.dim.Render("Nothing yet."))
	}
	o := s.Outputs[i]
	for _, line := range o.Lines {
		out = append(out, folded(line, w)...)
	}
	if len(o.Lines) == 0 {
		out = append(out, t.dim.Render(o.Why))
	}
	if o.Doing != "" {
		out = append(out, t.dim.Render(cut(o.Doing, w)))
	}
	return out
}

// sections shows the texts of a row.
func (t theme) sections(l *tool, r row, w int) (out []string) {
	all, known := l.text(r)
	if !known {
		return []string{t.dim.Render("Reading…")}
	}
	for _, one := range safeTexts(all) {
		if one.Title != "" {
			if len(out) > 0 {
				out = append(out, "")
			}
			out = append(out, t.strong.Render(cut(one.Title, w)))
		}
		for line := range strings.SplitSeq(strings.TrimRight(one.Text, "\n"), "\n") {
			ink := lipgloss.NewStyle()
			switch {
			case !one.Patch:
			case strings.HasPrefix(line, "+"):
				ink = t.good
			case strings.HasPrefix(line, "-"):
				ink = t.bad
			case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "diff "):
				ink = t.accent
			}
			for _, part := range folded(line, w) {
				out = append(out, ink.Render(part))
			}
		}
	}
	return out
}

// folded breaks a line that is too long.
func folded(line string, w int) []string {
	line = strings.ReplaceAll(line, "\t", "    ")
	return strings.Split(lipgloss.Wrap(line, max(10, w), " "), "\n")
}
