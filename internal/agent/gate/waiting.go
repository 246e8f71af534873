package gate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// Waiting is a call that waits for a place.
type Waiting struct {
	Ticket   string `json:"ticket"` // in the limit of its run
	Call     string `json:"call"`
	Run      string `json:"run"`
	Pipeline string `json:"pipeline,omitempty"`
	Account
	AtOnce int    `json:"at_once,omitempty"` // maximum number of calls of its pipeline
	Asked  string `json:"asked"`
	Again  string `json:"again"` // when it asks again

	key string // of its row; empty: it does not wait yet
}

// How long a call waits before it asks again.
const (
	soonest = 5 * time.Second
	latest  = 5 * time.Minute
	// overdue is how much later than it said a call may ask before the calls behind it pass: two polls of the first.
	overdue = 2 * soonest
	// stays is how long a call keeps its place in the order without asking.
	stays = time.Hour
)

// ticket identifies a call that waits, in the limit of its run.
func ticket(call string) string {
	const size = 16
	return string(store.DigestOf([]byte(call)))[:size]
}

// waiting returns how a call waits.
func (x *tx) waiting(n Need) Waiting {
	id := ticket(n.ID)
	w := x.ticket(id)
	w.Ticket, w.Call, w.Run, w.Pipeline, w.Account, w.AtOnce = id, n.ID, n.Run, n.Pipeline, n.Account, n.AtOnce
	return w
}

// ticket returns the call that waits with a ticket.
func (x *tx) ticket(id string) (w Waiting) {
	for _, e := range x.waits() {
		if e.row.Ticket == id {
			w, w.key = e.row, e.key
		}
	}
	return w
}

// waits lists the calls that wait, in order.
func (x *tx) waits() []entry[Waiting] {
	if x.queue == nil {
		x.queue = list[Waiting](x, waitingRows, "")
	}
	return x.queue
}

// Waiting lists the calls that wait for a place and ask in time, in order.
func (g *Gate) Waiting() (all []Waiting, err error) {
	err = g.view(func(x *tx) {
		all = nil
		for _, e := range list[Waiting](x, waitingRows, "") {
			if x.since(e.row.Again) <= overdue {
				all = append(all, e.row)
			}
		}
	})
	return all, err
}

// turn refuses a call for which no place is free beside those that run and those that wait before it. asked: none is
// before it.
func (x *tx) turn(w Waiting, calls []entry[Call], asked bool) *Refusal {
	queue := x.waits()
	if x.bound(w) == nil && len(queue) == 0 {
		return nil
	}
	taken := places{}
	for _, c := range calls {
		if c.row.ID != w.Call && c.row.runs() {
			taken.add(c.row.Pipeline, c.row.Account.ID)
		}
	}
	var before []Waiting
	all, passed := 1, asked
	for _, e := range queue {
		passed = passed || e.key == w.key
		switch late := x.since(e.row.Again); {
		case e.key == w.key:
			continue
		case e.row.Asked > x.at(): // the clock was set back
			e.row.Asked, e.row.Again = x.at(), run.Time(x.now.Add(soonest))
			x.put(waitingRows, e.key, e.row)
		case late > stays:
			x.delete(waitingRows, e.key)
			continue
		case late > overdue:
			continue
		}
		if all++; passed {
			continue
		}
		before = append(before, e.row)
		if _, full := taken.full(x.bound(e.row)); !full {
			taken.add(e.row.Pipeline, e.row.Account.ID)
		}
	}
	b, full := taken.full(x.bound(w))
	if !full {
		return nil
	}
	place := len(before) + 1
	before = slices.DeleteFunc(before, func(o Waiting) bool { return !b.shared(o) })
	again := x.now.Add(min(max(time.Duration(len(before)/b.most)*x.duration(), soonest), latest))
	w.Asked, w.Again = x.at(), run.Time(again)
	if w.key == "" {
		w.key = x.next(queue, asked)
	}
	x.put(waitingRows, w.key, w)
	limit := run.Limit{Kind: run.LimitAtOnce, Bound: b.of, Most: b.most, AccountID: w.Ticket, Again: w.Again}
	if b.of == run.AtOnceAccount {
		limit.Account = w.Name
	}
	return &Refusal{limit, fmt.Sprintf("the call waits for its turn, as number %d of %d: %s", place, all,
		limit.AtOnce())}
}

// next returns the key of a row after all others, or before them.
func (x *tx) next(queue []entry[Waiting], first bool) string {
	n := int64(1) << 40
	if len(queue) > 0 {
		edge, by := queue[len(queue)-1].key, int64(1)
		if first {
			edge, by = queue[0].key, -1
		}
		if last, err := strconv.ParseInt(edge, 10, 64); err == nil {
			n = last + by
		}
	}
	return fmt.Sprintf("%016d", n)
}

// bound is a maximum number of calls at once.
type bound struct {
	of   run.AtOnceBound
	id   string // account or pipeline
	most int
}

// bound returns the bounds of a call.
func (x *tx) bound(w Waiting) (all []bound) {
	for _, b := range []bound{
		{run.AtOnceHost, "", x.g.opt.AtOnce.Host}, {run.AtOnceAccount, w.ID, x.g.opt.AtOnce.Of(w.Name)},
		{run.AtOncePipeline, w.Pipeline, w.AtOnce},
	} {
		if b.most > 0 {
			all = append(all, b)
		}
	}
	return all
}

// shared reports whether a bound counts another call too.
func (b bound) shared(o Waiting) bool {
	return b.of == run.AtOnceHost || b.of == run.AtOnceAccount && b.id == o.ID || b.of == run.AtOncePipeline &&
		b.id == o.Pipeline
}

// places counts calls by what bounds them.
type places map[bound]int

func (p places) add(pipeline, account string) {
	p[bound{of: run.AtOnceHost}]++
	p[bound{of: run.AtOnceAccount, id: account}]++
	p[bound{of: run.AtOncePipeline, id: pipeline}]++
}

// full returns the first bound that leaves no place.
func (p places) full(all []bound) (bound, bool) {
	for _, b := range all {
		if p[bound{of: b.of, id: b.id}] >= b.most {
			return b, true
		}
	}
	return bound{}, false
}
