package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"

	"gonum.org/v1/plot/plotter"

	"github.com/passbook-run/passbook/figures"
	"github.com/passbook-run/passbook/rundir"
)

// most is how many bars or points a chart shows; more of them are put together.
const most = 240

// money is what the run has cost, by this and that.
type money struct {
	Total, Sunk, Cap float64
	Time             *Chart
	Parts            []part
}

// part is one breakdown.
type part struct {
	Name  string
	Rows  []costRow
	Chart *Chart // nil: one row, or none
}

type costRow struct {
	Name          string
	Passes        int
	Input, Output int64
	USD           float64
	Share         int // percent of the whole
}

// cycle is one round of the repeated stage with its scores.
type cycle struct {
	rundir.PACycleRecord
	Target *float64
}

// depths is what the verifiers counted.
type depths struct {
	Names []string
	Rows  []depthRow
}

type depthRow struct {
	Pass   int
	Title  string
	Counts []string
}

func (v *view) draw(s source) error {
	var err error
	v.Money = breakdown(s)
	v.Depths = depthTable(newest(v, s.story.tallies, s.opt.Rows, "count of a verifier"))
	charts := []struct {
		to   **Chart
		from *drawing
	}{{&v.Money.Time, spendDrawing(s)}, {&v.Scores, scoreDrawing(s.book)}, {&v.Depth, depthDrawing(v.Depths, s.story.tallies)}, {&v.Durations, durationDrawing(s)}}
	for i := range v.Money.Parts {
		charts = append(charts, struct {
			to   **Chart
			from *drawing
		}{&v.Money.Parts[i].Chart, partDrawing(v.Money.Parts[i])})
	}
	for _, c := range charts {
		if c.from == nil {
			continue
		}
		if *c.to, err = c.from.chart(); err != nil {
			return err
		}
	}
	return nil
}

// breakdown is the cost of state.json, by role, set and cycle.
func breakdown(s source) money {
	c := s.book.Cost
	m := money{Total: s.found.Spend.USD, Sunk: s.found.Spend.Sunk, Cap: s.found.Spend.CapUSD}
	cycles := map[string]rundir.RoleCost{}
	for n, r := range c.ByPACycle {
		cycles["cycle "+n] = r
	}
	for _, p := range []struct {
		name string
		rows map[string]rundir.RoleCost
	}{{"role", c.ByRole}, {"cycle", cycles}, {"set", c.BySubset}} {
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
		row := costRow{Name: name, Passes: r.PassCount, Input: r.InputTokens, Output: r.OutputTokens, USD: r.CostUSD}
		if total > 0 {
			row.Share = int(100*r.CostUSD/total + 0.5)
		}
		rows = append(rows, row)
	}
	return rows
}

// byNumber puts S10 behind S9.
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
	if len(p.Rows) > 24 {
		d.names = nil
	}
	d.bars = []bars{b}
	return d
}

func axisUSD(v float64) string {
	if v != math.Trunc(v) {
		return figures.USD(v)
	}
	return fmt.Sprintf("$%.0f", v)
}

// spendDrawing is the sum of the costs over time, with the budget.
func spendDrawing(s source) *drawing {
	points := thin(s.story.spent)
	if len(points) < 2 {
		return nil
	}
	from, to := points[0].at, points[len(points)-1].at
	if begun := when(s.found.StartedAt); !begun.IsZero() && begun.Before(from) {
		from = begun
	}
	spent := line{name: "spent", ink: 1, step: true, points: plotter.XYs{{}}}
	for _, p := range points {
		spent.points = append(spent.points, plotter.XY{X: p.at.Sub(from).Seconds(), Y: p.total})
	}
	d := &drawing{title: "Cost over time", y: axisUSD, lines: []line{spent}, x: func(v float64) string { return seconds(int64(v * 1000)) }}
	if p := s.figures.Cost.Projected; p != nil && !s.state.Status.Closed() && *p < 5*s.found.Spend.USD {
		d.lines = append(d.lines, line{name: "projected", ink: 4, dashed: true, points: plotter.XYs{{X: 0, Y: *p}, {X: to.Sub(from).Seconds(), Y: *p}}})
	}
	if allowed := budgetLine(s, from.Unix(), to.Sub(from).Seconds(), from.Nanosecond()); len(allowed.points) > 1 {
		d.lines = append(d.lines, allowed)
	}
	return d
}

// budgetLine is what was allowed, as long as that is not so much that the costs could not be seen beside it.
func budgetLine(s source, from int64, width float64, nanos int) line {
	l := line{name: "budget", ink: 5, dashed: true, step: true}
	spent := s.found.Spend.USD
	for _, b := range s.story.budgets {
		if b.cap > 5*spent {
			return line{}
		}
		x := float64(b.at.Unix()-from) + float64(b.at.Nanosecond()-nanos)/1e9
		l.points = append(l.points, plotter.XY{X: max(0, min(width, x)), Y: b.cap})
	}
	if n := len(l.points); n > 0 {
		l.points = append(l.points, plotter.XY{X: width, Y: l.points[n-1].Y})
	}
	return l
}

// thin keeps as many points as can be told apart, the last among them.
func thin(all []spending) []spending {
	const enough = 600
	if len(all) <= enough {
		return all
	}
	kept := make([]spending, 0, enough+1)
	for i := range enough {
		kept = append(kept, all[i*len(all)/enough])
	}
	return append(kept, all[len(all)-1])
}

// scoreDrawing is the score of each cycle, those of its auditors, and the target.
func scoreDrawing(b rundir.PipelineState) *drawing {
	score := line{name: "score", ink: 1, dots: true}
	auditors := line{name: "auditors", ink: 6, dots: true, bare: true}
	for _, c := range cycles(b) {
		x := float64(c.CycleNumber)
		if c.PAScore != nil {
			score.points = append(score.points, plotter.XY{X: x, Y: *c.PAScore})
		}
		for _, a := range c.Auditors {
			if a.Score != nil {
				auditors.points = append(auditors.points, plotter.XY{X: x, Y: *a.Score})
			}
		}
	}
	n := len(score.points)
	if n == 0 {
		return nil
	}
	d := &drawing{title: "Score of each cycle", x: whole}
	if t := b.PAScoreThreshold; t != nil {
		first, last := score.points[0].X, score.points[n-1].X
		d.lines = append(d.lines, line{name: "target", ink: 3, dashed: true, points: plotter.XYs{{X: first - 0.25, Y: *t}, {X: last + 0.25, Y: *t}}})
	}
	if len(auditors.points) > 0 && n <= most {
		d.lines = append(d.lines, auditors)
	}
	d.lines = append(d.lines, score)
	return d
}

// whole writes whole numbers only.
func whole(v float64) string {
	if v != float64(int(v)) {
		return ""
	}
	return strconv.Itoa(int(v))
}

func cycles(b rundir.PipelineState) []cycle {
	var all []cycle
	for _, c := range b.PACycleRecords {
		all = append(all, cycle{c, b.PAScoreThreshold})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].CycleNumber < all[j].CycleNumber })
	return all
}

func depthTable(all []tally) depths {
	var t depths
	for _, one := range all {
		for _, c := range one.Counts {
			if !slices.Contains(t.Names, c.Name) {
				t.Names = append(t.Names, c.Name)
			}
		}
	}
	for _, one := range all {
		r := depthRow{Pass: one.Pass, Title: one.Title}
		for _, name := range t.Names {
			text := "–"
			for _, c := range one.Counts {
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

// depthDrawing stacks what each verifier counted.
func depthDrawing(t depths, all []tally) *drawing {
	if len(all) == 0 {
		return nil
	}
	all = all[max(0, len(all)-most):]
	d := &drawing{title: "What the verifiers counted, pass by pass", y: whole}
	for i, name := range t.Names[:min(hues, len(t.Names))] {
		b := bars{name: name, ink: []int{1, 2, 6, 4, 3, 5}[i]}
		for _, one := range all {
			v := 0.0
			for _, c := range one.Counts {
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
			d.names = append(d.names, strconv.Itoa(one.Pass))
		}
	}
	return d
}

// durationDrawing has a bar for each pass, by role. Of very many passes each bar is the mean of some.
func durationDrawing(s source) *drawing {
	passes := s.found.Passes
	if len(passes) < 2 {
		return nil
	}
	per := (len(passes) + most - 1) / most
	d := &drawing{title: "How long each pass took", y: func(v float64) string { return seconds(int64(v + 0.5)) }}
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
