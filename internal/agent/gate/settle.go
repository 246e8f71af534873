package gate

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
)

// seen is a delivery as its store shows it.
type seen struct {
	Call
	host  string // that claimed it
	lost  bool   // its supervisor has ended, and no program stores an answer
	costs []calls.Cost
}

// Settle records what the deliveries of a call on this host have cost, as far as the store shows it.
func (g *Gate) Settle(ctx context.Context, s *store.Store, url, call string) error {
	settled := false
	err := g.view(func(x *tx) { settled = x.has(settledRows, call+"#") && !x.has(callRows, call+"#") })
	if settled || err != nil && !errors.As(err, new(*DamageError)) {
		return err
	}
	found, err := g.seeIn(ctx, s, url, call)
	if err != nil || len(found) == 0 {
		return err
	}
	return g.update(ctx, func(x *tx) {
		for _, s := range found {
			x.record(s)
		}
	})
}

// see reads the deliveries of a call.
func (g *Gate) see(ctx context.Context, url, call string) ([]seen, error) {
	s, err := g.open(ctx, url)
	if err != nil {
		return nil, err
	}
	return g.seeIn(ctx, s, url, call)
}

// seeIn reads the deliveries of a call. Its costs are read last: meanwhile a worker may have stored the answer.
func (g *Gate) seeIn(ctx context.Context, s *store.Store, url, call string) (all []seen, err error) {
	of := calls.Ledger{Store: s, Call: call}
	claims, err := of.Claims(ctx)
	if err != nil {
		return nil, err
	}
	root, _, _ := strings.Cut(call, "/")
	for i, c := range claims {
		d := seen{host: c.Host, Call: Call{ID: call, Delivery: i + 1, Run: root, Pipeline: c.Pipeline, Role: c.Role,
			Account: Account{ID: c.Account, Name: c.AccountName}, Store: url, Worker: c.Worker, Holder: c.Supervisor, At: c.At}}
		_, err := supervisor.ReadExit(filepath.Join(c.Scratch, strconv.Itoa(d.Delivery)))
		d.lost = !c.Supervisor.Alive() && (err != nil || !c.Worker.Alive())
		all = append(all, d)
	}
	costs, err := of.Costs(ctx)
	for _, c := range costs {
		if i := c.Delivery - 1; 0 <= i && i < len(all) {
			all[i].costs = append(all[i].costs, c)
		}
	}
	return all, err
}

// seeAll reads all calls of a store that may still be of use.
func (g *Gate) seeAll(ctx context.Context, url string) (all []seen, err error) {
	s, err := g.open(ctx, url)
	if err != nil {
		return nil, err
	}
	names, err := s.List(ctx, "calls/")
	if err != nil {
		return nil, err
	}
	last := ""
	for _, name := range names {
		call := strings.TrimPrefix(path.Dir(name), "calls/")
		if !strings.HasPrefix(path.Base(name), "claim-") || call == last {
			continue
		}
		found, err := g.seeIn(ctx, s, url, call)
		if err != nil {
			return nil, err
		}
		last, all = call, append(all, found...)
	}
	return all, nil
}

// record adds to the file what a delivery shows of its costs, once.
func (x *tx) record(s seen) {
	if s.host != x.g.host {
		return
	}
	row, ok := get[Call](x, callRows, s.key())
	if !ok {
		_, settled := get[string](x, settledRows, s.key())
		if settled || s.Role == "" || x.since(s.At) > keeps {
			return // it is counted, or it is a command
		}
		row = s.Call
		x.needs(&row)
	}
	answered, before := false, row
	for _, c := range s.costs {
		answered = answered || !strings.HasPrefix(c.Part, "ended-")
		if !slices.Contains(row.Parts, c.Part) {
			x.count(row, c.Spend)
			row.Parts = append(slices.Clone(row.Parts), c.Part)
		}
	}
	row.Lost = len(row.Parts) == 0 && s.lost
	if s.Holder.Alive() {
		row.Holder = s.Holder // another worker has claimed what this one reserved
	}
	switch {
	case answered:
		if row.Worker == x.g.opt.Worker && ok {
			x.took(row)
		}
		x.delete(callRows, s.key())
		x.put(settledRows, s.key(), row.At)
	case !ok || len(row.Parts) != len(before.Parts) || row.Lost != before.Lost || row.Holder != before.Holder:
		x.put(callRows, s.key(), row)
	}
}

// took adds to the mean duration of calls.
func (x *tx) took(c Call) {
	m, _ := get[mean](x, meanRows, allCalls)
	m.add(run.Spend{}, x.since(c.At))
	x.put(meanRows, allCalls, m)
}
