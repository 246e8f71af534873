package costs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/run"
)

// A call that exceeds a number of calls at once waits in a file for its turn. Whenever a call ends, Next names those
// whose turn it is, in the order in which they first asked. The places that they are offered stay free for a time.

// AtOnce is the maximum number of calls of agents that run at the same time on a host; 0: no bound.
type AtOnce struct {
	Host     int `json:"host,omitempty"`
	Account  int `json:"account,omitempty"`  // of the account of the call
	Pipeline int `json:"pipeline,omitempty"` // of all runs of its pipeline
}

// Waiting is a call that waits for its turn.
type Waiting struct {
	Call     string `json:"call"`
	Run      string `json:"run"`
	Server   string `json:"server,omitempty"` // of its workflow: only workers there wake the run
	Pipeline string `json:"pipeline,omitempty"`
	accounts.Account
	AtOnce AtOnce `json:"at_once"`
	Since  string `json:"since"`
	Number int64  `json:"number"` // of its last request: later ones have greater numbers
	// how often, and when last, it was offered a place since that request
	Offers  int    `json:"offers,omitempty"`
	Offered string `json:"offered,omitempty"`
}

// Full is why a call waits for its turn.
type Full struct {
	Bound  run.AtOnceBound // the first that no call beside the others fits into
	Most   int
	Number int64 // of the request
	Place  int   // in the queue, from 1
	Of     int
}

const (
	queueFile = "waiting.json"
	// OfferedFor is how long a place stays free for the call that it was offered to.
	OfferedFor = 2 * time.Minute
	// maxOffers is the number of offers after which a call that does not come loses its place in the queue.
	maxOffers = 3
	// stays is how long a call stays in the queue after its last request: a run that waits asks at least every hour.
	stays = 3 * time.Hour
	// runFor is the longest time that a call runs: earlier ones count no longer.
	runFor = 7 * 24 * time.Hour
)

// queue is the content of the file.
type queue struct {
	Version int       `json:"version"`
	Next    int64     `json:"next"` // number of the last request, no less than its time in milliseconds
	Waiting []Waiting `json:"waiting"`
}

// Queue lists the calls that wait for their turn, in order.
func (l *Ledger) Queue() ([]Waiting, error) {
	q, err := l.queue()
	return q.Waiting, err
}

// queue reads the file. What cannot be read is an empty queue: its calls ask again, and only their order is lost.
func (l *Ledger) queue() (q queue, err error) {
	raw, err := os.ReadFile(filepath.Join(l.dir, queueFile))
	if errors.Is(err, fs.ErrNotExist) {
		return queue{Version: version}, nil
	}
	if err != nil {
		return q, fmt.Errorf("read the queue of calls: %w", err)
	}
	if json.Unmarshal(raw, &q) != nil {
		return queue{Version: version}, nil
	}
	if q.Version > version {
		return q, fmt.Errorf("read the queue of calls %s: %w", filepath.Join(l.dir, queueFile), errNewer)
	}
	since := l.opt.Now().Add(-stays).UnixMilli()
	q.Waiting = slices.DeleteFunc(q.Waiting, func(w Waiting) bool { return w.Number < since })
	return q, nil
}

func (l *Ledger) saveQueue(q queue) error {
	raw, err := json.Marshal(q)
	if err == nil {
		err = l.opt.Disk.WriteFile(filepath.Join(l.dir, queueFile), raw, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the queue of calls: %w", err)
	}
	return nil
}

// taken counts places.
type taken map[string]int

func (t taken) add(pipeline, account string) {
	t["host"]++
	t["pipeline "+pipeline]++
	t["account "+account]++
}

// full returns the first bound that leaves no place; most is 0 if there is one.
func (t taken) full(m AtOnce, pipeline, account string) (b run.AtOnceBound, most int) {
	switch {
	case m.Host > 0 && t["host"] >= m.Host:
		return run.AtOnceHost, m.Host
	case m.Account > 0 && t["account "+account] >= m.Account:
		return run.AtOnceAccount, m.Account
	case m.Pipeline > 0 && t["pipeline "+pipeline] >= m.Pipeline:
		return run.AtOncePipeline, m.Pipeline
	}
	return "", 0
}

// taken counts the calls that run, without one of them.
func (l *Ledger) taken(except string) (taken, error) {
	all, err := l.records(l.opt.Now().Add(-runFor))
	t := taken{}
	for _, r := range all {
		if r.open() && r.ID != except {
			t.add(r.Pipeline, r.Account.ID)
		}
	}
	return t, err
}

// turn decides whether it is the turn of a call.
func (l *Ledger) turn(ctx context.Context, c Call, terms Terms) (*Full, error) {
	m := terms.AtOnce
	q, err := l.queue()
	if err != nil || m == (AtOnce{}) && len(q.Waiting) == 0 {
		return nil, err
	}
	place := slices.IndexFunc(q.Waiting, func(w Waiting) bool { return w.Call == c.ID })
	waited := place >= 0
	w := Waiting{Call: c.ID, Run: c.Run, Pipeline: c.Pipeline, Account: c.Account, Since: run.Time(l.opt.Now())}
	if waited {
		w = q.Waiting[place]
		q.Waiting = slices.Delete(q.Waiting, place, place+1)
	} else {
		place = len(q.Waiting)
	}
	if terms.First {
		place = 0
	}
	var full *Full
	for looked := false; ; looked = true {
		t, err := l.taken(c.ID)
		if err != nil {
			return nil, err
		}
		for _, before := range q.Waiting[:place] {
			if _, most := t.full(before.AtOnce, before.Pipeline, before.ID); most == 0 {
				t.add(before.Pipeline, before.ID)
			}
		}
		bound, most := t.full(m, c.Pipeline, c.Account.ID)
		if most == 0 {
			if waited {
				err = l.saveQueue(q)
			}
			return nil, err
		}
		full = &Full{Bound: bound, Most: most, Place: place + 1, Of: len(q.Waiting) + 1}
		if looked {
			break
		}
		if err := l.settleOpen(ctx, l.opt.Now().Add(-runFor)); err != nil {
			return nil, err
		}
	}
	q.Next = max(q.Next+1, l.opt.Now().UnixMilli()) // it grows even if the file was lost
	full.Number = q.Next
	w.Server, w.Number, w.AtOnce, w.Offers, w.Offered = terms.Server, q.Next, m, 0, ""
	q.Waiting = slices.Insert(q.Waiting, place, w)
	return full, l.saveQueue(q)
}

// Next returns the waiting calls of a server whose turn it is, in order, and offers each of them its place for a time.
// A call that was offered a place and did not come is offered it again, and loses it after some offers. bounds are
// those in force for a call, whose own are those of its last request.
func (l *Ledger) Next(ctx context.Context, server string, bounds func(Waiting) AtOnce) (offered []Waiting, err error) {
	if q, err := l.queue(); err != nil || len(q.Waiting) == 0 {
		return nil, err
	}
	err = l.locked(ctx, func() error {
		q, err := l.queue()
		if err != nil || len(q.Waiting) == 0 {
			return err
		}
		if err := l.settleOpen(ctx, l.opt.Now().Add(-runFor)); err != nil {
			return err
		}
		t, err := l.taken("")
		if err != nil {
			return err
		}
		for i, w := range q.Waiting {
			if w.Server == server {
				q.Waiting[i].AtOnce = bounds(w)
			}
		}
		changed := false
		if offered, changed = q.offer(server, t, l.opt.Now()); !changed {
			return nil
		}
		return l.saveQueue(q)
	})
	return offered, err
}

// offer offers free places in order. changed reports whether the queue is another one now.
func (q *queue) offer(server string, t taken, now time.Time) (offered []Waiting, changed bool) {
	kept := q.Waiting[:0]
	for _, w := range q.Waiting {
		if _, most := t.full(w.AtOnce, w.Pipeline, w.ID); most > 0 {
			kept = append(kept, w)
			continue
		}
		at, err := time.Parse(run.TimeFormat, w.Offered)
		pending := err == nil && now.Before(at.Add(OfferedFor))
		if !pending && w.Server == server {
			changed = true
			if w.Offers >= maxOffers {
				continue
			}
			w.Offers, w.Offered = w.Offers+1, run.Time(now)
			offered = append(offered, w)
		}
		t.add(w.Pipeline, w.ID)
		kept = append(kept, w)
	}
	q.Waiting = kept
	return offered, changed
}

// Leave removes the waiting calls of a run that makes none now, up to a request: it pauses or has ended.
func (l *Ledger) Leave(ctx context.Context, runID string, number int64) error {
	leaves := func(w Waiting) bool { return w.Run == runID && w.Number <= number }
	if q, err := l.queue(); err != nil || !slices.ContainsFunc(q.Waiting, leaves) {
		return err
	}
	return l.locked(ctx, func() error {
		q, err := l.queue()
		if err != nil {
			return err
		}
		before := len(q.Waiting)
		q.Waiting = slices.DeleteFunc(q.Waiting, leaves)
		if len(q.Waiting) == before {
			return nil
		}
		return l.saveQueue(q)
	})
}
