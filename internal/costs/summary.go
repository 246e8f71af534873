package costs

import (
	"cmp"
	"slices"
	"time"

	"github.com/passbook-run/passbook/run"
)

// Groups of a summary.
const (
	ByDay      = "day"
	ByModel    = "model"
	ByAccount  = "account"
	ByPipeline = "pipeline"
)

// Groups returns the names of all groups.
func Groups() []string { return []string{ByDay, ByModel, ByAccount, ByPipeline} }

// Line sums calls. Costs that are exact, lower bounds and unknown are kept apart.
type Line struct {
	Name         string     `json:"name"`
	Calls        int        `json:"calls"`
	Tokens       run.Tokens `json:"tokens"`
	USD          float64    `json:"cost_usd"` // exact_usd and at_least_usd
	ExactUSD     float64    `json:"exact_usd"`
	AtLeastUSD   float64    `json:"at_least_usd"`
	AtLeastCalls int        `json:"at_least_calls"` // whose cost is known in part
	UnknownCalls int        `json:"unknown_calls"`  // without a known cost
	EstimatedUSD float64    `json:"estimated_usd"`  // the part of cost_usd that no agent reported

	totals run.Totals
}

// Summary is what the calls of a host cost since a time.
type Summary struct {
	Since   string   `json:"since"`
	Zone    string   `json:"time_zone"`
	By      string   `json:"by"`
	Rows    []Line   `json:"rows"`
	Total   Line     `json:"total"`
	Running Running  `json:"running"` // not settled, and not in the rows
	Damage  []Damage `json:"damage"`
}

// Running are calls that are not settled, with what they reserved.
type Running struct {
	Calls  int     `json:"calls"`
	USD    float64 `json:"reserved_usd"`
	Tokens int64   `json:"reserved_tokens"`
}

// Summarize sums the calls that were reserved since a time, by one of [Groups]. Damage is part of the summary.
func (l *Ledger) Summarize(since time.Time, by string) (Summary, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := Summary{Since: run.Time(since), Zone: zoneName(l.opt.Zone), By: by, Rows: []Line{}, Damage: []Damage{},
		Total: Line{Name: "total"}}
	all, err := l.records(since)
	if err != nil {
		return out, err
	}
	for _, r := range all {
		if r.open() {
			out.Running.Calls++
			out.Running.USD, out.Running.Tokens = run.Cents(out.Running.USD+r.USD), out.Running.Tokens+r.Tokens
			continue
		}
		for _, s := range r.spends() {
			out.Rows = add(out.Rows, l.group(r, s, by), s)
			out.Total.add(s)
		}
	}
	slices.SortStableFunc(out.Rows, func(a, b Line) int {
		if by == ByDay {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(a.Name, b.Name))
	})
	return out, l.addDamage(&out, since)
}

func (l *Ledger) addDamage(out *Summary, since time.Time) error {
	names, err := l.names(since)
	if err != nil {
		return err
	}
	for _, name := range names {
		d, err := l.load(name)
		if err != nil {
			return err
		}
		out.Damage = append(out.Damage, d.damage...)
		if d.damaged() {
			out.Damage = append(out.Damage, Damage{Day: name, File: l.path(name), Lines: d.lost, Open: true})
		}
	}
	return nil
}

// group returns the name of a call's line.
func (l *Ledger) group(r *record, s run.Spend, by string) string {
	const none = "(unknown)"
	switch by {
	case ByModel:
		return cmp.Or(s.Model, none)
	case ByPipeline:
		return cmp.Or(r.Pipeline, none)
	case ByAccount:
		return cmp.Or(r.Account.Name, none)
	}
	return r.At.In(l.opt.Zone).Format(time.DateOnly)
}

func add(rows []Line, name string, s run.Spend) []Line {
	at := slices.IndexFunc(rows, func(l Line) bool { return l.Name == name })
	if at < 0 {
		at = len(rows)
		rows = append(rows, Line{Name: name})
	}
	rows[at].add(s)
	return rows
}

func (l *Line) add(s run.Spend) {
	l.totals.Add(s)
	l.Calls, l.Tokens, l.USD, l.EstimatedUSD = l.totals.Calls, l.totals.Tokens, l.totals.USD, l.totals.EstimatedUSD
	switch s.Known {
	case run.CostAtLeast:
		l.AtLeastUSD, l.AtLeastCalls = run.Cents(l.AtLeastUSD+s.USD), l.AtLeastCalls+1
	case run.CostUnknown:
	default:
		l.ExactUSD = run.Cents(l.ExactUSD + s.USD)
	}
	l.AtLeastCalls = min(l.AtLeastCalls, l.totals.Unknown)
	l.UnknownCalls = l.totals.Unknown - l.AtLeastCalls
}
