package costs

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// restore replaces a damaged file by what can be read of it and the calls of that day that the stores have. The ledger
// is locked.
func (l *Ledger) restore(ctx context.Context, d *day, storeURL string) error {
	note := Damage{Day: d.name, Lines: d.lost}
	rows := slices.Clone(d.rows)
	stores := []string{storeURL}
	for _, r := range d.records {
		if !slices.Contains(stores, r.Store) {
			stores = append(stores, r.Store)
		}
	}
	var problems []string
	for _, url := range stores {
		s, err := l.openStore(ctx, url)
		var found []row
		if err == nil {
			found, err = l.fromStore(ctx, s, d)
		}
		if err != nil && !unreadable(err) {
			return err
		}
		if err != nil {
			problems = append(problems, MaskedURL(url)+": "+err.Error())
		}
		rows = append(rows, found...)
		for _, r := range found {
			if r.Kind == kindReserved {
				note.Restored++
			}
		}
	}
	note.Problem = strings.Join(problems, "; ")
	return l.rewrite(d, append(rows, row{At: run.Time(l.opt.Now()), Kind: kindDamaged, Damage: &note}))
}

// fromStore returns the rows of the calls of a day that a store has and the day lacks.
func (l *Ledger) fromStore(ctx context.Context, s *store.Store, d *day) ([]row, error) {
	names, err := s.List(ctx, "calls/")
	if err != nil {
		return nil, &storeError{err}
	}
	var out []row
	for _, name := range names {
		number, ok := strings.CutPrefix(path.Base(name), "claim-")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		of := calls.Ledger{Store: s, Call: strings.TrimPrefix(path.Dir(name), "calls/")}
		if r := d.byKey[key{of.Call, n}]; r != nil {
			rows, err := l.found(ctx, of, r, false)
			if err != nil {
				return nil, err
			}
			out = append(out, rows...)
			continue
		}
		claim, err := of.ReadClaim(ctx, n)
		if errors.Is(err, store.ErrMissing) {
			continue // it was removed
		}
		if err != nil {
			return nil, &storeError{err}
		}
		if claim.Host != l.host || claim.Role == "" || !strings.HasPrefix(claim.At, d.name) {
			continue
		}
		root, _, _ := strings.Cut(of.Call, "/")
		c := Call{ID: of.Call, Delivery: n, Run: root, Pipeline: claim.Pipeline, Role: claim.Role, Store: MaskedURL(s.URL()),
			Account: accounts.Account{ID: claim.Account, Name: claim.AccountName}, Worker: claim.Worker}
		rows, err := l.found(ctx, of, &record{Call: c}, false)
		if err != nil {
			return nil, err
		}
		out = append(out, row{At: claim.At, Kind: kindReserved, Call: &c})
		out = append(out, rows...)
	}
	return out, nil
}
