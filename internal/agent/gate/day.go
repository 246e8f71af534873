package gate

import (
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
)

// Budget is what all runs of a host may use on one day. Zero means no bound.
type Budget struct {
	USD    float64 `json:"usd,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	Calls  int     `json:"calls,omitempty"`
}

// Set reports whether there is a bound.
func (b Budget) Set() bool { return b != Budget{} }

// Day is what the calls of a day in the gate's time zone use.
type Day struct {
	From, Until time.Time // until the next midnight
	Zone        string
	Known       run.Totals // of calls that have ended; an unknown cost counts as what is known of it
	Held        Budget     // what more was reserved for the unknown costs, which count as that
	Reserved    Budget     // by calls that have not ended
	Unread      string     // why more calls may exist; empty: all are counted
}

// Left returns what the budget leaves beside what is used and reserved.
func (d Day) Left(b Budget) Budget {
	return Budget{
		USD:    run.Cents(max(0, b.USD-d.Known.USD-d.Held.USD-d.Reserved.USD)),
		Tokens: max(0, b.Tokens-d.Known.Tokens.Sum()-d.Held.Tokens-d.Reserved.Tokens),
		Calls:  max(0, b.Calls-d.Known.Calls-d.Reserved.Calls),
	}
}

// covers reports whether the budget covers a call.
func (d Day) covers(b, call Budget) bool {
	left := d.Left(b)
	return (b.USD <= 0 || left.USD > 0 && call.USD <= left.USD) &&
		(b.Tokens <= 0 || left.Tokens > 0 && call.Tokens <= left.Tokens) && (b.Calls <= 0 || left.Calls > 0)
}

// Spent reports whether no call is left.
func (d Day) Spent(b Budget) bool { return !d.covers(b, Budget{}) }

// Text describes the use of a budget: $3.20 of $10.00, 12 of 40 calls; $0.50 and 1 call are reserved.
func (d Day) Text(b Budget) string {
	var all, reserved []string
	add := func(set bool, format string, args ...any) {
		if set {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(b.USD > 0, "%s of $%.2f", run.CostText(run.Cents(d.Known.USD+d.Held.USD), d.Known.Unknown), b.USD)
	add(b.Tokens > 0, "%d of %d tokens", d.Known.Tokens.Sum()+d.Held.Tokens, b.Tokens)
	add(b.Calls > 0, "%d of %s", d.Known.Calls, run.Plural(b.Calls, "call"))
	if d.Reserved.Calls > 0 {
		if b.USD > 0 {
			reserved = append(reserved, fmt.Sprintf("$%.2f", d.Reserved.USD))
		}
		if b.Tokens > 0 {
			reserved = append(reserved, fmt.Sprintf("%d tokens", d.Reserved.Tokens))
		}
		reserved = append(reserved, "by "+run.Plural(d.Reserved.Calls, "running call"))
		all = append(all, "reserved: "+strings.Join(reserved, " "))
	}
	if d.Unread != "" {
		return "at least " + strings.Join(all, ", ")
	}
	return strings.Join(all, ", ")
}

// quarter is the form of keys of sums: all time zones begin their days at a quarter of an hour.
const quarter = "2006-01-02T15:04"

// sum is what the calls of a quarter of an hour have cost.
type sum struct {
	run.Totals
	Held Budget `json:"held,omitzero"`
}

// count adds a part of the cost of a call; nil: no model was asked.
func (x *tx) count(c Call, spend *run.Spend) {
	at, err := time.Parse(run.TimeFormat, c.At)
	if err != nil || spend == nil {
		return
	}
	key := at.UTC().Truncate(15 * time.Minute).Format(quarter)
	s, ok := get[sum](x, sumRows, key)
	if !ok {
		x.prune()
	}
	s.Add(*spend)
	if spend.UnknownCalls() > 0 && len(c.Parts) == 0 { // no less than what was reserved
		s.Held.USD = run.Cents(s.Held.USD + max(0, c.USD-spend.USD))
		s.Held.Tokens += max(0, c.Tokens-spend.Tokens.Sum())
	}
	x.put(sumRows, key, s)
	if spend.Known != run.CostExact {
		return
	}
	for _, key := range meansOf(c) {
		m, _ := get[mean](x, meanRows, key)
		m.add(*spend, 0)
		x.put(meanRows, key, m)
	}
}

// mean is what the last calls of a role needed.
type mean struct {
	N       float64 `json:"n"`
	USD     float64 `json:"usd,omitempty"`
	Tokens  float64 `json:"tokens,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

// meanOf is the number of calls after which the earlier half counts half.
const meanOf = 100

func (m *mean) add(s run.Spend, took time.Duration) {
	if m.N >= meanOf {
		*m = mean{m.N / 2, m.USD / 2, m.Tokens / 2, m.Seconds / 2}
	}
	*m = mean{m.N + 1, m.USD + s.USD, m.Tokens + float64(s.Tokens.Sum()), m.Seconds + took.Seconds()}
}

// allCalls is the key of the mean duration of calls.
const allCalls = "/"

// meansOf are the keys of the means of a call: of its role in its pipeline, and in all pipelines.
func meansOf(c Call) []string { return []string{c.Pipeline + "/" + c.Role, "/" + c.Role} }

// needs sets what a call reserves, if calls of its role have ended.
func (x *tx) needs(c *Call) bool {
	for _, key := range meansOf(*c) {
		if m, ok := get[mean](x, meanRows, key); ok && m.N > 0 {
			c.USD, c.Tokens = run.Cents(m.USD/m.N), int64(m.Tokens/m.N)
			return true
		}
	}
	return false
}

// duration returns the mean duration of calls; of none it is short, so that calls ask soon.
func (x *tx) duration() time.Duration {
	m, _ := get[mean](x, meanRows, allCalls)
	if m.N == 0 {
		return soonest
	}
	return time.Duration(m.Seconds / m.N * float64(time.Second))
}

// Today returns what the calls of today use.
func (g *Gate) Today() (d Day, err error) {
	err = g.view(func(x *tx) { d = x.today() })
	return d, err
}

func (x *tx) today() Day {
	zone := x.g.opt.Zone
	year, month, day := x.now.In(zone).Date()
	d := Day{From: time.Date(year, month, day, 0, 0, 0, 0, zone), Until: time.Date(year, month, day+1, 0, 0, 0, 0, zone),
		Zone: zone.String()}
	if zone == time.Local {
		d.Zone = x.now.Local().Format("MST")
	}
	for _, e := range list[sum](x, sumRows, d.From.UTC().Format(quarter)) {
		d.Known.Merge(e.row.Totals)
		d.Held.USD, d.Held.Tokens = run.Cents(d.Held.USD+e.row.Held.USD), d.Held.Tokens+e.row.Held.Tokens
	}
	for _, e := range list[Call](x, callRows, "") {
		switch c := e.row; {
		case c.At < run.Time(d.From):
		case c.Lost:
			d.Known.Add(run.Spend{Known: run.CostUnknown})
			d.Held.USD, d.Held.Tokens = run.Cents(d.Held.USD+c.USD), d.Held.Tokens+c.Tokens
		case c.open():
			d.Reserved.Calls++
			d.Reserved.USD, d.Reserved.Tokens = run.Cents(d.Reserved.USD+c.USD), d.Reserved.Tokens+c.Tokens
		}
	}
	for _, e := range list[known](x, storeRows, "") {
		if e.row.Read == "" {
			d.Unread = fmt.Sprintf("the calls of the store %s are not counted yet: %s", e.key, e.row.Problem)
		}
	}
	return d
}

// cover sets what a call reserves, and refuses it if the budget of the day does not cover that. busy: what it needs is
// known when another call has ended.
func (x *tx) cover(n *Need, calls []entry[Call]) (no *Refusal, busy bool) {
	b := x.g.opt.PerDay
	if !b.Set() {
		return nil, false
	}
	if n.USD, n.Tokens = n.Most.USD, n.Most.Tokens; !x.needs(&n.Call) {
		n.Unknown = n.Most == Budget{}
	}
	d := x.today()
	limit := run.Limit{Kind: run.LimitBudgetDay, Reset: run.Time(d.Until)}
	if need := (Budget{USD: n.USD, Tokens: n.Tokens}); !d.covers(b, need) {
		return &Refusal{limit, d.short(b, need)}, false
	}
	if b.USD > 0 && d.Unread != "" {
		limit.Again = run.Time(x.now.Add(retryStore))
		return &Refusal{limit, "the budget of the day waits: " + d.Unread}, false
	}
	if !n.Unknown || b.USD == 0 && b.Tokens == 0 {
		return nil, false
	}
	for _, e := range calls {
		c := e.row
		if c.Unknown && c.runs() && c.Pipeline == n.Pipeline && c.Role == n.Role {
			return nil, true
		}
	}
	return nil, false
}

// short describes why the budget does not cover a call.
func (d Day) short(b, call Budget) string {
	text := "the budget of the day does not cover the call: " + d.Text(b)
	left := d.Left(b)
	switch {
	case b.USD > 0 && call.USD > left.USD:
		text += fmt.Sprintf("; it needs about $%.2f", call.USD)
	case b.Tokens > 0 && call.Tokens > left.Tokens:
		text += fmt.Sprintf("; it needs about %d tokens", call.Tokens)
	}
	return text
}
