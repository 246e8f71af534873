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
	Pipeline string `json:"pipeline,omitempty"`
	Account  string `json:"account,omitempty"` // id
	AtOnce   AtOnce `json:"at_once"`
	Since    string `json:"since"`
	Number   int64  `json:"number"` // of its last request: later ones have greater numbers
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
	// runFor is the longest time that a call runs: earlier ones count no longer.
	runFor = 7 * 24 * time.Hour
)

// queue is the content of the file.
type queue struct {
	Version int       `json:"version"`
	Next    int64     `json:"next"` // number of the last request
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

// turn decides whether it is the turn of a call. first: an operator asks for it before all others.
func (l *Ledger) turn(ctx context.Context, c Call, m AtOnce, first bool) (*Full, error) {
	if m == (AtOnce{}) {
		return nil, nil
	}
	q, err := l.queue()
	if err != nil {
		return nil, err
	}
	place := slices.IndexFunc(q.Waiting, func(w Waiting) bool { return w.Call == c.ID })
	w := Waiting{Call: c.ID, Run: c.Run, Pipeline: c.Pipeline, Account: c.Account.ID, Since: run.Time(l.opt.Now())}
	if place >= 0 {
		w = q.Waiting[place]
		q.Waiting = slices.Delete(q.Waiting, place, place+1)
	}
	waited := place >= 0
	if place < 0 {
		place = len(q.Waiting)
	}
	if first {
		place = 0
	}
	var full *Full
	for looked := false; ; looked = true {
		t, err := l.taken(c.ID)
		if err != nil {
			return nil, err
		}
		for _, before := range q.Waiting[:place] {
			if _, most := t.full(before.AtOnce, before.Pipeline, before.Account); most == 0 {
				t.add(before.Pipeline, before.Account)
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
	w.Number, w.AtOnce, w.Offers, w.Offered = q.Next, m, 0, ""
	q.Waiting = slices.Insert(q.Waiting, place, w)
	return full, l.saveQueue(q)
}

// Next returns the waiting calls whose turn it is, in order, and offers each of them its place for a time. A call that
// was offered a place and did not come is offered it again, and loses it after some offers.
func (l *Ledger) Next(ctx context.Context) (offered []Waiting, err error) {
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
		changed := false
		if offered, changed = q.offer(t, l.opt.Now()); !changed {
			return nil
		}
		return l.saveQueue(q)
	})
	return offered, err
}

// offer offers free places in order. changed reports whether the queue is another one now.
func (q *queue) offer(t taken, now time.Time) (offered []Waiting, changed bool) {
	kept := q.Waiting[:0]
	for _, w := range q.Waiting {
		if _, most := t.full(w.AtOnce, w.Pipeline, w.Account); most > 0 {
			kept = append(kept, w)
			continue
		}
		at, err := time.Parse(run.TimeFormat, w.Offered)
		pending := err == nil && now.Before(at.Add(OfferedFor))
		if !pending {
			changed = true
			if w.Offers >= maxOffers {
				continue
			}
			w.Offers, w.Offered = w.Offers+1, run.Time(now)
			offered = append(offered, w)
		}
		t.add(w.Pipeline, w.Account)
		kept = append(kept, w)
	}
	q.Waiting = kept
	return offered, changed
}

// Leave removes the waiting calls of a run that makes none now, up to a request: it pauses or has ended.
func (l *Ledger) Leave(ctx context.Context, runID string, number int64) error {
	return l.locked(ctx, func() error {
		q, err := l.queue()
		if err != nil {
			return err
		}
		before := len(q.Waiting)
		q.Waiting = slices.DeleteFunc(q.Waiting, func(w Waiting) bool { return w.Run == runID && w.Number <= number })
		if len(q.Waiting) == before {
			return nil
		}
		return l.saveQueue(q)
	})
}
