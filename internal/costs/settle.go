package costs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
)

// openFor is how long a call that was reserved is settled. No call lasts as long.
const openFor = 40 * 24 * time.Hour

// Settle records what the deliveries of a call cost that this host reserved, as far as its store shows it. mine
// reports that this process has ended its work on a delivery: it is released if it was never claimed.
func (l *Ledger) Settle(ctx context.Context, s *store.Store, call string, mine int) error {
	l.mu.Lock()
	open, err := l.openOf(call)
	l.mu.Unlock()
	if err != nil || !open {
		return err
	}
	return l.locked(ctx, func() error {
		all, err := l.records(l.opt.Now().Add(-openFor))
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.ID == call && r.unsettled() {
				if err := l.settle(ctx, s, r, r.Delivery == mine); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// openOf reports whether a delivery of a call is not settled.
func (l *Ledger) openOf(call string) (bool, error) {
	all, err := l.records(l.opt.Now().Add(-openFor))
	for _, r := range all {
		if r.ID == call && r.unsettled() {
			return true, nil
		}
	}
	return false, err
}

// unsettled reports whether more of the costs of a delivery may become known. A released one may be claimed after all,
// by another worker that has reserved the same delivery.
func (r *record) unsettled() bool {
	answered := false
	for _, p := range r.parts {
		answered = answered || p.name[:1] != "e"
	}
	return !answered
}

// settleOpen settles the open calls that have ended. A store that cannot be opened leaves its calls
// open: they count as what they reserved.
func (l *Ledger) settleOpen(ctx context.Context, since time.Time) error {
	all, err := l.records(since)
	if err != nil {
		return err
	}
	for _, r := range all {
		if !r.open() {
			continue
		}
		s, err := l.openStore(ctx, r.Store)
		if err == nil {
			err = l.settle(ctx, s, r, false)
		}
		if err != nil && !unreadable(err) {
			return err
		}
	}
	return nil
}

// unreadable reports whether a store could not be read, so that its calls stay open.
func unreadable(err error) bool { return errors.As(err, new(*storeError)) }

type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

func (l *Ledger) openStore(ctx context.Context, url string) (*store.Store, error) {
	if l.opt.Open == nil || url == "" {
		return nil, &storeError{errors.New("no store is open")}
	}
	s, err := l.opt.Open(ctx, url)
	if err != nil {
		return nil, &storeError{err}
	}
	return s, nil
}

// settle adds the rows of a delivery that its store shows and the ledger lacks.
func (l *Ledger) settle(ctx context.Context, s *store.Store, r *record, mine bool) error {
	rows, err := l.found(ctx, calls.Ledger{Store: s, Call: r.ID}, r, mine)
	if err != nil || len(rows) == 0 {
		return err
	}
	d, err := l.load(nameOf(r.At))
	if err != nil {
		return err
	}
	return l.add(d, rows...)
}

// found returns the rows of a delivery that the ledger lacks.
func (l *Ledger) found(ctx context.Context, of calls.Ledger, r *record, mine bool) ([]row, error) {
	rows, err := l.costsOf(ctx, of, r)
	if err != nil || len(rows) > 0 || !r.open() {
		return rows, err
	}
	kind, err := l.ended(ctx, of, r, mine)
	if err != nil || kind == "" {
		return nil, err
	}
	// Meanwhile its worker may have stored the answer and removed the folder of the call.
	if rows, err = l.costsOf(ctx, of, r); err != nil || len(rows) > 0 {
		return rows, err
	}
	return []row{{At: run.Time(l.opt.Now()), Kind: kind, Of: r.key()}}, nil
}

// costsOf returns the costs of a delivery that its store has and the ledger lacks.
func (l *Ledger) costsOf(ctx context.Context, of calls.Ledger, r *record) (rows []row, err error) {
	all, err := of.Costs(ctx)
	if err != nil {
		return nil, &storeError{err}
	}
	at := run.Time(l.opt.Now())
	for _, c := range all {
		if c.Delivery == r.Delivery && !r.has(c.Part) {
			rows = append(rows, row{At: at, Kind: kindCost, Of: r.key(), Part: c.Part, Spend: brief(c.Spend)})
		}
	}
	return rows, nil
}

// brief is a cost without the prices that it was computed with.
func brief(s *run.Spend) *run.Spend {
	if s == nil {
		return nil
	}
	c := *s
	c.Prices = nil
	return &c
}

// ended returns how a delivery without a record in its store ended: it was never claimed on this host, or its
// supervisor is lost; empty: it may be running.
func (l *Ledger) ended(ctx context.Context, of calls.Ledger, r *record, mine bool) (string, error) {
	claim, err := of.ReadClaim(ctx, r.Delivery)
	switch {
	case errors.Is(err, store.ErrMissing) && (mine && r.Worker == l.opt.Worker || !r.Worker.Alive()):
		return kindReleased, nil
	case errors.Is(err, store.ErrMissing):
		return "", nil
	case err != nil:
		return "", &storeError{err}
	case claim.Host != l.host:
		return kindReleased, nil
	case claim.Supervisor.Alive():
		return "", nil
	}
	if _, err := supervisor.ReadExit(filepath.Join(claim.Scratch, strconv.Itoa(r.Delivery))); err == nil &&
		claim.Worker.Alive() {
		return "", nil // its worker is storing the answer
	}
	return kindLost, nil
}

// MaskedURL returns a URL as the ledger names a store.
func MaskedURL(url string) string { return config.Masked(url) }

// whole returns a day without damage: it restores a damaged file first.
func (l *Ledger) whole(ctx context.Context, name, storeURL string) (*day, error) {
	d, err := l.load(name)
	if err != nil || !d.damaged() {
		return d, err
	}
	if err := l.restore(ctx, d, storeURL); err != nil {
		return nil, fmt.Errorf("restore the ledger of costs %s: %w", l.path(name), err)
	}
	return d, nil
}
