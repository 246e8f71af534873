package costs

import (
	"context"
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

// Day is what the calls of a day in the ledger's time zone use.
type Day struct {
	From, Until time.Time // until the next midnight
	Zone        string

	USD      float64 // settled; an unknown cost counts as what was reserved for it
	Tokens   int64
	Calls    int
	Reserved Budget     // by calls that are not settled
	Unknown  int        // calls
	Known    run.Totals // an unknown cost counts as what is known of it
}

// Left returns what the budget leaves beside what is settled and reserved.
func (d Day) Left(b Budget) Budget {
	return Budget{
		USD:    run.Cents(max(0, b.USD-d.USD-d.Reserved.USD)),
		Tokens: max(0, b.Tokens-d.Tokens-d.Reserved.Tokens),
		Calls:  max(0, b.Calls-d.Calls-d.Reserved.Calls),
	}
}

// covers reports whether the budget covers a call.
func (d Day) covers(b Budget, c Call) bool {
	left := d.Left(b)
	return (b.USD <= 0 || left.USD > 0 && c.USD <= left.USD) &&
		(b.Tokens <= 0 || left.Tokens > 0 && c.Tokens <= left.Tokens) && (b.Calls <= 0 || left.Calls > 0)
}

// Spent reports whether no call is left.
func (d Day) Spent(b Budget) bool { return !d.covers(b, Call{}) }

// Text describes the use of a budget: $3.20 of $10.00, 12 of 40 calls; $0.50 and 1 call are reserved.
func (d Day) Text(b Budget) string {
	var all, reserved []string
	add := func(set bool, format string, args ...any) {
		if set {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(b.USD > 0, "%s of $%.2f", run.CostText(d.USD, d.Unknown), b.USD)
	add(b.Tokens > 0, "%d of %d tokens", d.Tokens, b.Tokens)
	add(b.Calls > 0, "%d of %s", d.Calls, run.Plural(b.Calls, "call"))
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
	return strings.Join(all, ", ")
}

// Short is why the budget of a day does not cover a call.
type Short struct {
	Budget Budget
	Day    Day
	Call   Call
}

// Text describes it: the budget of the day does not cover the call: $9.00 of $10.00; it needs about $1.50.
func (s Short) Text() string {
	text := "the budget of the day does not cover the call: " + s.Day.Text(s.Budget)
	left := s.Day.Left(s.Budget)
	switch {
	case s.Budget.USD > 0 && s.Call.USD > left.USD:
		text += fmt.Sprintf("; it needs about $%.2f", s.Call.USD)
	case s.Budget.Tokens > 0 && s.Call.Tokens > left.Tokens:
		text += fmt.Sprintf("; it needs about %d tokens", s.Call.Tokens)
	}
	return text
}

// Today returns what the calls of today use.
func (l *Ledger) Today() (Day, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.today()
}

func (l *Ledger) today() (Day, error) {
	now := l.opt.Now()
	d := Day{From: l.midnight(now, 0), Until: l.midnight(now, 1), Zone: zoneName(l.opt.Zone)}
	all, err := l.records(d.From)
	for _, r := range all {
		d.add(r)
	}
	return d, err
}

// add counts a call.
func (d *Day) add(r *record) {
	if r.open() {
		d.Reserved.Calls++
		d.Reserved.USD = run.Cents(d.Reserved.USD + r.USD)
		d.Reserved.Tokens += r.Tokens
		return
	}
	usd, tokens, unknown := 0.0, int64(0), 0
	for _, s := range r.spends() {
		d.Known.Add(s)
		usd, tokens, unknown = run.Cents(usd+s.USD), tokens+s.Tokens.Sum(), unknown+s.UnknownCalls()
	}
	if unknown > 0 { // no less than what was reserved
		usd, tokens = max(usd, r.USD), max(tokens, r.Tokens)
	}
	d.USD, d.Tokens, d.Calls, d.Unknown = run.Cents(d.USD+usd), d.Tokens+tokens, d.Known.Calls, d.Known.Unknown
}

// meanOf is how long settled calls count in the mean of their role.
const meanOf = 7 * 24 * time.Hour

// Needs sets what a call reserves: the mean of the settled calls of its role in its pipeline, or else of its role in
// all pipelines, or else the given maximum of one call. Without any it is unknown.
func (l *Ledger) needs(c *Call, most Budget) error {
	all, err := l.records(l.opt.Now().Add(-meanOf))
	if err != nil {
		return err
	}
	for _, pipeline := range []string{c.Pipeline, ""} {
		var usd float64
		var tokens, n int64
		for _, r := range all {
			if r.Role != c.Role || pipeline != "" && r.Pipeline != pipeline {
				continue
			}
			for _, s := range r.spends() {
				if s.Known == run.CostExact {
					usd, tokens, n = usd+s.USD, tokens+s.Tokens.Sum(), n+1
				}
			}
		}
		if n > 0 {
			c.USD, c.Tokens = run.Cents(usd/float64(n)), tokens/n
			return nil
		}
	}
	c.USD, c.Tokens = most.USD, most.Tokens
	c.Unknown = most == Budget{}
	return nil
}

// ErrBusy reports that another call of the same role is running whose cost is not known: when it is settled, it is
// known what a call needs.
var ErrBusy = fmt.Errorf("another call of the same role is running, and what it needs is unknown")

// Terms are what a call must keep to.
type Terms struct {
	PerDay  Budget
	PerCall Budget // what one call may use
	AtOnce  AtOnce
	First   bool   // an operator asks for the call before those that wait for their turn
	Server  string // whose workers wake the run when it is the turn of its call
}

// Reserve reserves a call, or returns why it may not be made: it has to wait for its turn (*Full), or the budget of the
// day does not cover it (*Short). Without bounds it only records the call.
func (l *Ledger) Reserve(ctx context.Context, c Call, t Terms) (full *Full, short *Short, err error) {
	err = l.locked(ctx, func() error {
		d, err := l.whole(ctx, nameOf(l.opt.Now()), c.Store)
		if err != nil {
			return err
		}
		if r := d.byKey[c.key()]; r != nil && r.open() && r.Worker == c.Worker {
			return nil // an earlier attempt has reserved it
		}
		if full, err = l.turn(ctx, c, t); full != nil || err != nil {
			return err
		}
		if t.PerDay.Set() {
			if short, err = l.cover(ctx, &c, t.PerDay, t.PerCall); short != nil || err != nil {
				return err
			}
		}
		return l.add(d, row{At: run.Time(l.opt.Now()), Kind: kindReserved, Call: &c})
	})
	return full, short, err
}

// cover sets what a call reserves, and checks that the budget covers it. Before it refuses a call, it settles those
// that have ended.
func (l *Ledger) cover(ctx context.Context, c *Call, b, most Budget) (*Short, error) {
	from := l.midnight(l.opt.Now(), 0)
	if _, err := l.whole(ctx, nameOf(from), c.Store); err != nil {
		return nil, err
	}
	for looked := false; ; looked = true {
		if err := l.needs(c, most); err != nil {
			return nil, err
		}
		day, err := l.today()
		if err != nil {
			return nil, err
		}
		busy := c.Unknown && (b.USD > 0 || b.Tokens > 0) && l.running(*c, from)
		switch {
		case !busy && day.covers(b, *c):
			return nil, nil
		case !looked:
			if err := l.settleOpen(ctx, from); err != nil {
				return nil, err
			}
		case !day.covers(b, *c):
			return &Short{Budget: b, Day: day, Call: *c}, nil
		default:
			return nil, ErrBusy
		}
	}
}

// running reports whether a call of the same role is open whose need is not known.
func (l *Ledger) running(c Call, since time.Time) bool {
	all, err := l.records(since)
	if err != nil {
		return true
	}
	for _, r := range all {
		if r.open() && r.Unknown && r.Pipeline == c.Pipeline && r.Role == c.Role {
			return true
		}
	}
	return false
}
