package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// Need is a call that is to be made.
type Need struct {
	Call
	Most   Budget        // what one call may use; zero: unknown
	AtOnce int           // maximum number of calls of its pipeline at once; 0: no bound
	Now    bool          // an operator asks for it, whether or not its account is shut, and before those that wait
	Retry  time.Duration // until others ask again if it is the first one after a reset
	Dir    string        // its scratch directory
	Reply  string        // format of its replies
}

// Refusal is why a call is not made now.
type Refusal struct {
	Limit run.Limit // with the time to ask again, or the reset that it waits for
	Text  string
}

// ErrBusy reports that another call of the same role is running whose cost is not known: when it has ended, it is
// known what a call needs.
var ErrBusy = errors.New("another call of the same role is running, and what it needs is unknown")

// Acquire reserves a call, or returns why it may not be made now. Rows of calls whose supervisor has ended are settled
// first.
func (g *Gate) Acquire(ctx context.Context, n Need) (no *Refusal, err error) {
	busy := false
	for again := false; ; again = true {
		var lacks missing
		err := g.update(ctx, func(x *tx) {
			if lacks = x.missing(n.Store); again || lacks.none() {
				no, busy = x.acquire(n)
			}
		})
		if err == nil && busy {
			err = ErrBusy
		}
		if err != nil || again || lacks.none() {
			return no, err
		}
		if err := g.learn(ctx, lacks); err != nil {
			return nil, err
		}
	}
}

// acquire decides, and writes the decision.
func (x *tx) acquire(n Need) (no *Refusal, busy bool) {
	calls := list[Call](x, callRows, "")
	if own, ok := get[Call](x, callRows, n.key()); ok && own.open() && (own.Worker == n.Worker || own.Holder.Alive()) {
		if own.Holder != n.Holder && !own.Holder.Alive() {
			own.Holder = n.Holder
			x.put(callRows, n.key(), own)
		}
		return nil, false // an earlier attempt has reserved it
	}
	first, no := x.answers(n.ID, n.Account.ID, n.Now)
	if no != nil {
		return no, false
	}
	w := x.waiting(n)
	if no := x.turn(w, calls, n.Now); no != nil {
		return no, false
	}
	if no, busy := x.cover(&n, calls); no != nil || busy {
		return no, busy
	}
	n.At = x.at()
	x.put(callRows, n.key(), n.Call)
	if w.key != "" {
		x.delete(waitingRows, w.key)
	}
	if first {
		shut, _ := get[Shut](x, accountRows, n.Account.ID)
		shut.First = &First{Call: n.ID, Worker: n.Worker, Holder: n.Holder, At: x.at(), Dir: n.Dir, Reply: n.Reply,
			RetryMS: n.Retry.Milliseconds()}
		x.put(accountRows, n.Account.ID, shut)
	}
	return nil, false
}

// Release removes the row of a delivery that this process could not claim.
func (g *Gate) Release(ctx context.Context, c Call) error {
	return g.update(ctx, func(x *tx) {
		if own, ok := get[Call](x, callRows, c.key()); ok && own.open() && own.Holder == c.Holder {
			x.delete(callRows, c.key())
		}
	})
}

// Ask returns when a call that was refused asks again; zero: now, because of the cause. It reserves nothing, but keeps
// the place of a call that waits for one.
func (g *Gate) Ask(ctx context.Context, refused run.Limit) (at time.Time, cause run.LimitCause,
	err error) {
	err = g.update(ctx, func(x *tx) {
		at, cause = time.Time{}, run.LimitTimer
		var no *Refusal
		switch refused.Kind {
		case run.LimitAtOnce:
			w := x.ticket(refused.AccountID)
			if w.key == "" {
				return
			}
			if no, cause = x.turn(w, list[Call](x, callRows, ""), false), run.LimitTurn; no == nil {
				w.Asked, w.Again = x.at(), run.Time(x.now.Add(soonest))
				x.put(waitingRows, w.key, w)
			}
		case run.LimitPlan:
			first := false
			if first, no = x.answers("", refused.AccountID, false); first {
				cause = run.LimitProbe
			} else {
				cause = run.LimitAccount
			}
		}
		if no == nil {
			return
		}
		if t, err := time.Parse(run.TimeFormat, no.Limit.Again); err == nil {
			at = t
		} else {
			cause = run.LimitTimer // the call finds out about another reset
		}
	})
	return at, cause, err
}

// missing is what the file lacks.
type missing struct {
	ended  []Call   // calls that have ended, and whose costs are not known
	stores []string // whose calls are not part of the file
}

func (m missing) none() bool { return len(m.ended)+len(m.stores) == 0 }

// retryStore is how long a store that could not be read is left alone.
const retryStore = time.Minute

// known is the row of a store.
type known struct {
	Read    string `json:"read,omitempty"` // when its calls became part of the file
	Tried   string `json:"tried,omitempty"`
	Problem string `json:"problem,omitempty"` // why it could not be read then
}

// missing lists what is to be learned before a call is reserved. Without bounds it does not matter what was.
func (x *tx) missing(url string) (m missing) {
	bounds := x.g.opt.AtOnce
	if !x.g.opt.PerDay.Set() && bounds.Host+bounds.Account+len(bounds.Accounts) == 0 {
		return m
	}
	if _, ok := get[known](x, storeRows, url); !ok && url != "" {
		x.put(storeRows, url, known{})
	}
	for _, e := range list[known](x, storeRows, "") {
		if e.row.Read == "" && (e.row.Tried == "" || x.since(e.row.Tried) >= retryStore) {
			m.stores = append(m.stores, e.key)
		}
	}
	for _, e := range list[Call](x, callRows, "") {
		if e.row.open() && !e.row.Holder.Alive() {
			m.ended = append(m.ended, e.row)
		}
	}
	return m
}

// learn reads from the stores what the file lacks. Of a store that cannot be read, nothing is learned.
func (g *Gate) learn(ctx context.Context, m missing) error {
	var found []seen
	var gone []Call
	for _, c := range m.ended {
		all, err := g.see(ctx, c.Store, c.ID)
		if err != nil {
			continue // it counts as reserved
		}
		found = append(found, all...)
		if !slices.ContainsFunc(all, func(s seen) bool { return s.Delivery == c.Delivery && s.host == g.host }) {
			gone = append(gone, c)
		}
	}
	stores := map[string]known{}
	for _, url := range m.stores {
		all, err := g.seeAll(ctx, url)
		at := run.Time(g.opt.Now())
		if err != nil {
			stores[url] = known{Tried: at, Problem: err.Error()}
			continue
		}
		stores[url], found = known{Read: at}, append(found, all...)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return g.update(ctx, func(x *tx) {
		for _, s := range found {
			x.record(s)
		}
		for _, c := range gone { // it was never claimed on this host
			if now, ok := get[Call](x, callRows, c.key()); ok && now.open() && now.Holder == c.Holder {
				x.delete(callRows, c.key())
			}
		}
		for url, k := range stores {
			x.put(storeRows, url, k)
		}
	})
}

func (g *Gate) open(ctx context.Context, url string) (*store.Store, error) {
	if g.opt.Open == nil || url == "" {
		return nil, fmt.Errorf("read the calls of the store %s: no store is open", url)
	}
	return g.opt.Open(ctx, url)
}
