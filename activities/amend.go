package activities

import (
	"context"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Amend compares the plan of a run with another one.
func (a *Activities) Amend(ctx context.Context, in contract.AmendInput) (contract.AmendResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.AmendResult{}, err
	}
	old, err := a.version(ctx, s, in.Old)
	if err != nil {
		return contract.AmendResult{}, err
	}
	next, err := a.version(ctx, s, in.New)
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

// version reads a plan and the digests of the files that it names.
func (a *Activities) version(ctx context.Context, s *store.Store, ref run.PlanRef) (pipeline.Version, error) {
	plan, err := a.plan(ctx, s, ref.Plan)
	if err != nil {
		return pipeline.Version{}, err
	}
	var given rundir.Inputs
	if err := s.GetJSON(ctx, store.Digest(ref.Inputs), &given); err != nil {
		return pipeline.Version{}, err
	}
	return pipeline.Version{Plan: plan, Files: given.Digests()}, nil
}
