package calls

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// Cost is what a delivery cost: as its answer, or as its end without one. A delivery that ended and answered later
// has both, and their sum is its cost.
type Cost struct {
	Part     string // result, superseded-N or ended-N: once for each call
	Delivery int
	Spend    *run.Spend // nil: no model was asked, or it was paid for elsewhere
}

// Costs returns what the store has of the costs of the call.
func (l Ledger) Costs(ctx context.Context) ([]Cost, error) {
	names, err := l.Store.List(ctx, l.Name(""))
	if err != nil {
		return nil, err
	}
	var out []Cost
	for _, name := range names {
		if path.Dir(name) != "calls/"+l.Call {
			continue
		}
		c, err := l.cost(ctx, path.Base(name))
		if err != nil {
			return nil, err
		}
		if c != nil {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(a, b Cost) int { return cmp.Compare(a.Delivery, b.Delivery) })
	return out, nil
}

// cost reads one part of the call; nil: it shows no cost.
func (l Ledger) cost(ctx context.Context, part string) (*Cost, error) {
	number, ended := strings.CutPrefix(part, "ended-")
	if n, err := strconv.Atoi(number); ended && err == nil {
		end, err := l.ReadEnd(ctx, n)
		if err != nil || end == nil {
			return nil, err
		}
		return &Cost{Part: part, Delivery: n, Spend: end.Spend}, nil
	}
	if part != "result" && !strings.HasPrefix(part, "superseded-") {
		return nil, nil
	}
	ans, err := Read[Answer](ctx, l.Store, l.Name(part))
	if err != nil || ans == nil {
		return nil, err
	}
	c := &Cost{Part: part, Delivery: ans.Delivery}
	if s := ans.Read.Spend; ans.Source == "" && ans.Spawn == nil && s.Asked() {
		c.Spend = &s
	}
	return c, nil
}
