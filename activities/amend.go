package activities

import (
	"context"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Amend compares the plan of a run with another one.
func (a *Activities) Amend(ctx context.Context, in contract.AmendInput) (contract.AmendResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.AmendResult{}, err
	}
	old, err := blobs.Version(in.Old, blobs.FromStore(ctx, s))
	if err != nil {
		return contract.AmendResult{}, err
	}
	next, err := blobs.Version(in.New, blobs.FromStore(ctx, s))
	if err != nil {
		return contract.AmendResult{}, err
	}
	if next.Plan.Version != pipeline.PlanVersion {
		return contract.AmendResult{}, badInput("read the plan: version %d is not %d", next.Plan.Version,
			pipeline.PlanVersion)
	}
	res := contract.AmendResult{Terms: contract.TermsOf(next.Plan, in.First)}
	if old.Plan.Budget != next.Plan.Budget {
		b := contract.BudgetOf(next.Plan)
		res.Budget = &b
	}
	all := pipeline.Compare(old, next, pipeline.Position(in.At))
	for _, d := range all {
		if d.Refused != "" {
			res.Refused = append(res.Refused, d.Name()+": "+d.Refused)
		}
	}
	res.Differences = contract.AmendablesOf(all)
	res.Refused = res.Refused[:min(len(res.Refused), contract.MaxDifferences)]
	return res, nil
}
