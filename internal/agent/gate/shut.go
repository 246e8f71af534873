package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// Shut is an account whose provider does not answer. One that answers has no row.
type Shut struct {
	Account
	Kind  run.LimitKind `json:"kind"`
	Until string        `json:"until"`
	Since string        `json:"since"` // the first limit since it was open
	Count int           `json:"count"` // limits since it was open
	First *First        `json:"first,omitempty"`
}

// First is the call that is made first after a reset.
type First struct {
	Call   string           `json:"call"`
	Worker process.Identity `json:"worker,omitzero"`
	Holder process.Identity `json:"holder,omitzero"`
	At     string           `json:"at"`
	Dir    string           `json:"dir"`
	Reply  string           `json:"reply"`
	// how long others wait before they ask again
	RetryMS int64 `json:"retry_ms"`
}

// answerWithin is how long the first call may print nothing. Then the account counts as open.
const answerWithin = time.Minute

// answers reports whether the provider of an account answers a call, as far as it is known, or refuses the call. first:
// it is the first one after a reset.
func (x *tx) answers(call, account string, asked bool) (first bool, no *Refusal) {
	s, shut := get[Shut](x, accountRows, account)
	if !shut {
		return false, nil
	}
	limit := run.Limit{Kind: s.Kind, Reset: s.Until, Account: s.Name, AccountID: s.ID}
	other := s.First
	switch {
	case asked, other != nil && other.Call == call && call != "":
		return true, nil
	case x.at() < s.Until:
		return false, &Refusal{limit, fmt.Sprintf("account %s is shut until %s", s.Name, s.Until)}
	case other == nil:
		return true, nil
	}
	silent, runs := x.since(other.At) >= answerWithin, other.Holder.Alive()
	switch {
	case runs && (silent || x.g.opt.Answers != nil && x.g.opt.Answers(other.Dir, other.Reply)):
		x.delete(accountRows, account)
		return false, nil
	case runs || !silent && other.Worker.Alive(): // which records what became of it
		limit.Again = run.Time(x.now.Add(time.Duration(other.RetryMS) * time.Millisecond))
		return false, &Refusal{limit, fmt.Sprintf("account %s: another call is the first one after the reset at %s", s.Name,
			s.Until)}
	}
	return true, nil
}

// Limit is a limit that a call met.
type Limit struct {
	Kind  run.LimitKind
	Until time.Time // zero: unknown
	Call  string    // that met it
	// how long to wait after a number of limits whose reset is unknown
	Wait func(count int) time.Duration
}

// Close records a limit of an account, and returns what its calls wait for. Calls of the same limit share it.
func (g *Gate) Close(ctx context.Context, a Account, l Limit) (s Shut, err error) {
	err = g.update(ctx, func(x *tx) {
		var ok bool
		if s, ok = get[Shut](x, accountRows, a.ID); !ok {
			s = Shut{Account: a, Since: x.at()}
		}
		if s.Until <= x.at() { // it is another limit
			s.Count, s.First, s.Until = s.Count+1, nil, ""
		}
		until := l.Until
		if until.IsZero() && s.Until == "" {
			until = x.now.Add(l.Wait(s.Count))
		}
		if s.First != nil && s.First.Call == l.Call {
			s.First = nil
		}
		s.Kind, s.Until = l.Kind, max(s.Until, run.Time(until))
		x.put(accountRows, a.ID, s)
	})
	return s, err
}

// Opened records that the provider of an account has answered a call. It counts if that was the first one after a
// reset.
func (g *Gate) Opened(ctx context.Context, account, call string) error {
	found := false
	is := func(x *tx) bool {
		s, ok := get[Shut](x, accountRows, account)
		return ok && s.First != nil && s.First.Call == call
	}
	if err := g.view(func(x *tx) { found = is(x) }); err != nil || !found {
		return err
	}
	return g.update(ctx, func(x *tx) {
		if is(x) {
			x.delete(accountRows, account)
		}
	})
}

// Shut lists the accounts that their providers do not answer.
func (g *Gate) Shut() (all []Shut, err error) {
	err = g.view(func(x *tx) {
		all = nil
		for _, e := range list[Shut](x, accountRows, "") {
			all = append(all, e.row)
		}
	})
	return all, err
}
