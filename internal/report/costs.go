package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// most is the maximum number of bars or points in a chart; more are merged.
const most = 240

// money is the cost of the run with its breakdowns.
type money struct {
	Total, Sunk, Cap float64
	Unknown          int    // calls that Total lacks
	Before           string // what an adopted conversation had cost; empty: the run adopted none
	Time             *Chart
	Parts            []part
}

// part is one breakdown.
type part struct {
	Name  string
	Rows  []costRow
	Chart *Chart // nil: fewer than two rows
}

type costRow struct {
	Name          string
	Passes        int
	Input, Output int64
	USD           float64
	Unknown       int // calls that USD lacks
	Share         int // percent of the total
}

// depths are the counts of the verifiers.
type depths struct {
	Names []string
	Rows  []depthRow
}

type depthRow struct {
	Pass   int
	Title  string
	Counts []string
}

func (v *page) draw(s source) {
	v.Money = breakdown(s)
	v.Depths = depthTable(newest(v, tallied(s.found), s.opt.Rows, "count of a verifier"))
	charts := []struct {
		to   **Chart
		from *drawing
	}{
		{&v.Money.Time, spendDrawing(s)}, {&v.Scores, scoreDrawing(s.book, s.words())},
		{&v.Depth, depthDrawing(v.Depths, tallied(s.found))}, {&v.Durations, durationDrawing(s)},
	}
	for i := range v.Money.Parts {
		charts = append(charts, struct {
			to   **Chart
			from *drawing
		}{&v.Money.Parts[i].Chart, partDrawing(v.Money.Parts[i])})
	}
	for _, c := range charts {
		if c.from != nil {
			*c.to = c.from.chart()
		}
	}
}

// breakdown returns the cost in state.json by role, set and cycle.
func breakdown(s source) money {
	c := s.book.Cost
	all := s.found.Spend
	m := money{Total: all.USD, Unknown: all.Unknown, Sunk: all.Sunk, Cap: all.CapUSD}
	if s.found.Adopted != nil {
		m.Before = s.found.Adopted.CostText()
	}
	cycles := map[string]rundir.RoleCost{}
	for n, r := range c.ByPACycle {
		cycles[s.words().Round+" "+n] = r
	}
	for _, p := range []struct {
		name string
		rows map[string]rundir.RoleCost
	}{{"role", c.ByRole}, {s.words().Round, cycles}, {"set", c.BySubset}} {
		if rows := costRows(p.rows, c.TotalEstimatedCostUSD); len(rows) > 0 {
			m.Parts = append(m.Parts, part{Name: p.name, Rows: rows})
		}
	}
	return m
}

func costRows(by map[string]rundir.RoleCost, total float64) []costRow {
	var rows []costRow
	for _, name := range slices.SortedFunc(maps.Keys(by), byNumber) {
		r := by[name]
		row := costRow{Name: name, Passes: r.PassCount, Input: r.InputTokens, Output: r.OutputTokens, USD: r.CostUSD,
			Unknown: r.UnknownCalls}
		if total > 0 {
			row.Share = int(100*r.CostUSD/total + 0.5)
		}
		rows = append(rows, row)
	}
	return rows
}

// byNumber sorts S10 after S9.
func byNumber(a, b string) int {
	head := func(s string) (string, int) {
		i := len(s)
		for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
			i--
		}
		n, _ := strconv.Atoi(s[i:])
		return s[:i], n
	}
	ha, na := head(a)
	hb, nb := head(b)
	return cmp.Or(cmp.Compare(ha, hb), cmp.Compare(na, nb), cmp.Compare(a, b))
}

func partDrawing(p part) *drawing {
	if len(p.Rows) < 2 || len(p.Rows) > most {
		return nil
	}
	d := &drawing{title: "Cost by " + p.Name, y: axisUSD}
	b := bars{name: "", ink: 1}
	for _, r := range p.Rows {
		d.names, b.values = append(d.names, r.Name), append(b.values, r.USD)
	}
	if !slices.ContainsFunc(b.values, func(usd float64) bool { return usd != 0 }) {
		return nil
	}
	if len(p.Rows) > 24 {
		d.names = nil
	}
	d.bars = []bars{b}
	return d
}

func axisUSD(v float64) string {
	if v != math.Trunc(v) {
		return view.USD(v)
	}
	return fmt.Sprintf("$%.0f", v)
}

// axisTime formats milliseconds.
func axisTime(ms float64) string {
	if ms == 0 {
		return "0"
	}
	return seconds(int64(ms + 0.5))
}

// spendDrawing draws the total cost over time, with the budget.
func spendDrawing(s source) *drawing {
	points := thin(s.found.History.Costs)
	if len(points) < 2 || points[len(points)-1].USD == 0 {
		return nil
	}
	from, to := when(points[0].At), when(points[len(points)-1].At)
	if begun := when(s.found.StartedAt); !begun.IsZero() && begun.Before(from) {
		from = begun
	}
	spent := line{name: "spent", ink: 1, step: true, points: []point{{}}}
	for _, p := range points {
		spent.points = append(spent.points, point{X: when(p.At).Sub(from).Seconds(), Y: p.USD})
	}
	d := &drawing{title: "Cost over time", y: axisUSD, lines: []line{spent}}
	d.x = func(v float64) string { return axisTime(v * 1000) }
	if p := s.figures.Cost.Projected; p != nil && !s.state.Status.Closed() && *p < 5*s.found.Spend.USD {
		points := []point{{X: 0, Y: *p}, {X: to.Sub(from).Seconds(), Y: *p}}
		d.lines = append(d.lines, line{name: "projected", ink: 4, dashed: true, points: points})
	}
	if allowed := budgetLine(s, from, to.Sub(from).Seconds()); len(allowed.points) > 1 {
		d.lines = append(d.lines, allowed)
	}
	return d
}

// budgetLine returns the budget over time, unless it is so high that the costs would be invisible.
func budgetLine(s source, from time.Time, width float64) line {
	l := line{name: "budget", ink: 5, dashed: true, step: true}
	spent := s.found.Spend.USD
	for _, b := range s.found.History.Budgets {
		if b.USD > 5*spent {
			return line{}
		}
		x := when(b.At).Sub(from).Seconds()
		l.points = append(l.points, point{X: max(0, min(width, x)), Y: b.USD})
	}
	if n := len(l.points); n > 0 {
		l.points = append(l.points, point{X: width, Y: l.points[n-1].Y})
	}
	return l
}

// thin keeps as many points as can be distinguished, including the last.
func thin(all []view.Amount) []view.Amount {
	const enough = 600
	if len(all) <= enough {
		return all
	}
	kept := make([]view.Amount, 0, enough+1)
	for i := range enough {
		kept = append(kept, all[i*len(all)/enough])
	}
	return append(kept, all[len(all)-1])
}

// scoreDrawing draws the score of each cycle, those of its auditors, and the target.
func scoreDrawing(b rundir.PipelineState, w run.Vocabulary) *drawing {
	score := line{name: "score", ink: 1, dots: true}
	auditors := line{name: w.Judges, ink: 6, dots: true, bare: true}
	for _, c := range closedCycles(b) {
		x := float64(c.CycleNumber)
		if c.PAScore != nil {
			score.points = append(score.points, point{X: x, Y: *c.PAScore})
		}
		for _, a := range c.Auditors {
			if a.Score != nil {
				auditors.points = append(auditors.points, point{X: x, Y: *a.Score})
			}
		}
	}
	n := len(score.points)
	if n == 0 {
		return nil
	}
	d := &drawing{title: "Score of each " + w.Round, x: whole}
	if t := b.PAScoreThreshold; t != nil {
		first, last := score.points[0].X, score.points[n-1].X
		points := []point{{X: first - 0.25, Y: *t}, {X: last + 0.25, Y: *t}}
		d.lines = append(d.lines, line{name: "target", ink: 3, dashed: true, points: points})
	}
	if len(auditors.points) > 0 && n <= most {
		d.lines = append(d.lines, auditors)
	}
	d.lines = append(d.lines, score)
	return d
}

// whole formats whole numbers only.
func whole(v float64) string {
	if v != float64(int(v)) {
		return ""
	}
	return strconv.Itoa(int(v))
}

// closedCycles are the finished rounds with their scores.
func closedCycles(b rundir.PipelineState) []rundir.PACycleRecord {
	b.OpenCycle = nil
	return view.Cycles(b)
}

// tallied returns the passes of verifiers.
func tallied(e view.Record) []view.Pass {
	return passesWith(e, func(p view.Pass) bool { return len(p.Tally) > 0 })
}

func depthTable(all []view.Pass) depths {
	var t depths
	for _, one := range all {
		for _, c := range one.Tally {
			if !slices.Contains(t.Names, c.Name) {
				t.Names = append(t.Names, c.Name)
			}
		}
	}
	for _, one := range all {
		r := depthRow{Pass: one.Number, Title: one.Title}
		for _, name := range t.Names {
			text := "–"
			for _, c := range one.Tally {
				if c.Name == name && c.Count != nil {
					text = strconv.Itoa(*c.Count)
				}
			}
			r.Counts = append(r.Counts, text)
		}
		t.Rows = append(t.Rows, r)
	}
	return t
}

// depthDrawing stacks the counts of each verifier.
func depthDrawing(t depths, all []view.Pass) *drawing {
	if len(all) == 0 {
		return nil
	}
	all = all[max(0, len(all)-most):]
	d := &drawing{title: "What the verifiers counted, pass by pass", y: whole}
	for i, name := range t.Names[:min(hues, len(t.Names))] {
		b := bars{name: name, ink: []int{1, 2, 6, 4, 3, 5}[i]}
		for _, one := range all {
			v := 0.0
			for _, c := range one.Tally {
				if c.Name == name && c.Count != nil {
					v = float64(*c.Count)
				}
			}
			b.values = append(b.values, v)
		}
		d.bars = append(d.bars, b)
	}
	if len(all) <= 30 {
		for _, one := range all {
			d.names = append(d.names, strconv.Itoa(one.Number))
		}
	}
	return d
}

// durationDrawing draws a bar for each pass, by role. With very many passes each bar is the mean of several.
func durationDrawing(s source) *drawing {
	passes := s.found.Passes
	if len(passes) < 2 {
		return nil
	}
	per := (len(passes) + most - 1) / most
	d := &drawing{title: "How long each pass took", y: axisTime}
	if per > 1 {
		d.title = fmt.Sprintf("How long the passes took: each bar is the mean of %d", per)
	}
	n := (len(passes) + per - 1) / per
	at := map[string]int{}
	for i, p := range passes {
		role := cmp.Or(p.Role, "commands")
		k, there := at[role]
		if !there {
			k = min(len(d.bars), hues-1)
			if k == len(d.bars) {
				d.bars = append(d.bars, bars{name: role, ink: k + 1, values: make([]float64, n)})
			} else {
				d.bars[k].name = "others"
			}
			at[role] = k
		}
		d.bars[k].values[i/per] += float64(p.DurationMS) / float64(min(per, len(passes)-i/per*per))
	}
	return d
}
