package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// Names of the queries.
const (
	QueryStatus      = "status"
	QueryPlan        = "plan"
	QueryCost        = "cost"
	QueryCheckpoints = "checkpoints"
)

// PlanAnswer answers the query `plan`.
type PlanAnswer struct {
	Pipeline    string         `json:"pipeline"`
	Plan        string         `json:"plan"` // digest of the whole, in the store and in the run directory
	ConfigHash  string         `json:"config_hash"`
	TotalPasses int            `json:"total_passes"`
	MaxRounds   int            `json:"max_rounds"`
	Stages      []run.StageRef `json:"stages"`
	Next        run.Place      `json:"next"`
}

// CostAnswer answers the query `cost`.
type CostAnswer struct {
	TotalUSD float64     `json:"total_usd"`
	SunkUSD  float64     `json:"sunk_usd"`
	Budget   run.Budget  `json:"budget"`
	Spent    run.Totals  `json:"spent"`
	ByRole   []run.Named `json:"by_role"`
	ByStage  []run.Named `json:"by_stage"`
}

// answer registers the queries. All answer from the folded state, as the files do.
func (e *engine) answer(ctx workflow.Context) error {
	queries := []struct {
		name, about string
		handler     any
	}{
		{QueryStatus, "The folded state: status, place, passes, cost, last checkpoint.", func() (run.State, error) { return e.j.state, nil }},
		{QueryPlan, "What the run will do.", e.queryPlan},
		{QueryCost, "What it has cost, by role and stage.", e.queryCost},
		{QueryCheckpoints, "The last named checkpoints.", func() ([]run.CheckpointRef, error) { return e.j.state.Checkpoints, nil }},
	}
	for _, q := range queries {
		opts := workflow.QueryHandlerOptions{Description: q.about}
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, opts); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) queryPlan() (PlanAnswer, error) {
	s := e.in.Start
	return PlanAnswer{
		Pipeline: s.Pipeline, Plan: s.Plan, ConfigHash: s.ConfigHash, TotalPasses: s.TotalPasses, MaxRounds: s.MaxRounds,
		Stages: s.Stages, Next: e.j.state.Next,
	}, nil
}

func (e *engine) queryCost() (CostAnswer, error) {
	s := e.j.state
	return CostAnswer{TotalUSD: s.Total(), SunkUSD: s.SunkUSD, Budget: s.Budget, Spent: s.Spent, ByRole: s.ByRole, ByStage: s.ByStage}, nil
}
