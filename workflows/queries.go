package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// registerQueries registers the queries. All answer from the folded state, as the files do.
func (e *engine) registerQueries(ctx workflow.Context) error {
	queries := []struct {
		name, about string
		handler     any
	}{
		{
			contract.QueryStatus, "The folded state (status, place, passes, cost, last checkpoint) and the available actions.",
			e.queryStatus,
		},
		{contract.QueryPlan, "What the run will do.", e.queryPlan},
		{contract.QueryCost, "Cost by role and stage.", e.queryCost},
		{contract.QueryHandoff, "The question that waits for a decision.", e.queryHandoff},
		{
			contract.QueryHeld, "The full disk, store or program that the run waits for.",
			func() (contract.HeldAnswer, error) { return e.held, nil },
		},
		{contract.QueryDirectory, "Path and task queue of the run directory.", func() (contract.DirectoryAnswer, error) {
			return contract.DirectoryAnswer{Dir: e.in.Target.Dir, Queue: e.in.DirQueue}, nil
		}},
		{
			contract.QueryCheckpoints, "The last named checkpoints.",
			func() ([]run.CheckpointRef, error) { return listed(e.j.state.Checkpoints), nil },
		},
	}
	for _, q := range queries {
		opts := workflow.QueryHandlerOptions{Description: q.about}
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, opts); err != nil {
			return err
		}
	}
	return nil
}

// queryStatus adds the refused signals that are not journaled yet.
func (e *engine) queryStatus() (contract.StatusAnswer, error) {
	s := e.j.state
	s.Refused += e.control.refusals.Counted
	return contract.StatusAnswer{State: s, AvailableActions: s.Available(s.Status), Pausing: e.control.pausing()}, nil
}

func (e *engine) queryPlan() (contract.PlanAnswer, error) {
	s := e.in.Start
	return contract.PlanAnswer{
		Pipeline: s.Pipeline, Plan: s.Plan, ConfigHash: s.ConfigHash, TotalPasses: s.TotalPasses,
		MaxRounds: s.MaxRounds,
		Stages:    listed(s.Stages), Next: e.j.state.Next,
	}, nil
}

func (e *engine) queryHandoff() (contract.HandoffAnswer, error) {
	a := contract.HandoffAnswer{Last: e.j.state.Decided}
	if q, open := e.j.state.Asks(); open {
		a.Open, a.Question, a.Verdict, a.Type = true, &q, q.Verdict, q.Type
		a.Commands = commands(e.j.state, e.in)
	}
	return a, nil
}

// listed returns an empty list for none: lists in answers are never null.
func listed[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func (e *engine) queryCost() (contract.CostAnswer, error) {
	s := e.j.state
	return contract.CostAnswer{
		TotalUSD: s.Total(), SunkUSD: s.SunkUSD, CostKnown: s.CostKnown(), Budget: s.Budget, Spent: s.Spent,
		Budgets: listed(s.BudgetUses("")),
		ByRole:  listed(s.ByRole), ByStage: listed(s.ByStage),
	}, nil
}
