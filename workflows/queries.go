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
	QueryHandoff     = "handoff"
	QueryHeld        = "held"
	QueryDirectory   = "directory"
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

// HandoffAnswer answers the query `handoff`: what the run waits for, and what may be said.
type HandoffAnswer struct {
	Open     bool          `json:"open"`
	Question *run.Question `json:"question,omitempty"`
	Verdict  string        `json:"verdict,omitempty"`
	Type     string        `json:"handoff_type,omitempty"`
	Last     *run.Decided  `json:"last_decided,omitempty"`
	Commands []string      `json:"commands,omitempty"` // ways to answer
}

// HeldAnswer answers the query `held`: the full disk, or the store or program, that the run waits for.
type HeldAnswer struct {
	Held    bool   `json:"held"`               // by a full disk; the run is paused
	Waits   bool   `json:"waits,omitempty"`    // for a host that has what the call needs; the run is not paused
	Message string `json:"message,omitempty"`  // operation, path, error, file system
	RetryAt string `json:"retry_at,omitempty"` // when it is tried again by itself; a resume tries it at once
}

// DirectoryAnswer answers the query `directory`: where the run writes.
type DirectoryAnswer struct {
	Dir   string `json:"dir"`
	Queue string `json:"queue"` // task queue of its host
}

// answer registers the queries. All answer from the folded state, as the files do.
func (e *engine) answer(ctx workflow.Context) error {
	queries := []struct {
		name, about string
		handler     any
	}{
		{QueryStatus, "The folded state: status, place, passes, cost, last checkpoint.", e.queryStatus},
		{QueryPlan, "What the run will do.", e.queryPlan},
		{QueryCost, "What it has cost, by role and stage.", e.queryCost},
		{QueryHandoff, "What the run waits for a person to decide.", e.queryHandoff},
		{QueryHeld, "The full disk, store or program that the run waits for.", func() (HeldAnswer, error) { return e.held, nil }},
		{QueryDirectory, "Where the run directory is, and on which task queue it is written.", func() (DirectoryAnswer, error) {
			return DirectoryAnswer{Dir: e.in.Target.Dir, Queue: e.in.DirQueue}, nil
		}},
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

// queryStatus also counts the refused signals that the journal does not count yet.
func (e *engine) queryStatus() (run.State, error) {
	s := e.j.state
	s.Refused += e.control.refusals.Counted
	return s, nil
}

func (e *engine) queryPlan() (PlanAnswer, error) {
	s := e.in.Start
	return PlanAnswer{
		Pipeline: s.Pipeline, Plan: s.Plan, ConfigHash: s.ConfigHash, TotalPasses: s.TotalPasses, MaxRounds: s.MaxRounds,
		Stages: s.Stages, Next: e.j.state.Next,
	}, nil
}

func (e *engine) queryHandoff() (HandoffAnswer, error) {
	a := HandoffAnswer{Last: e.j.state.Decided}
	if q, open := e.j.state.Asks(); open {
		a.Open, a.Question, a.Verdict, a.Type = true, &q, q.Verdict, q.Type
		a.Commands = decisions(q, e.in.Target.Dir, e.in.Target.RunID)
	}
	return a, nil
}

func (e *engine) queryCost() (CostAnswer, error) {
	s := e.j.state
	return CostAnswer{TotalUSD: s.Total(), SunkUSD: s.SunkUSD, Budget: s.Budget, Spent: s.Spent, ByRole: s.ByRole, ByStage: s.ByStage}, nil
}
