package workflows

import (
	"encoding/json"
	"errors"

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

// StatusAnswer answers the query `status`: the folded state, and the operations that the status allows.
type StatusAnswer struct {
	run.State
	AvailableActions []run.Operation `json:"available_actions"`

	// Pausing describes a pause that was requested and has not begun
	Pausing string `json:"pausing,omitempty"`
}

// UnmarshalJSON reads both parts: the state has its own reader, which ignores other keys.
func (a *StatusAnswer) UnmarshalJSON(raw []byte) error {
	var beside struct {
		AvailableActions []run.Operation `json:"available_actions"`
		Pausing          string          `json:"pausing"`
	}
	err := errors.Join(json.Unmarshal(raw, &a.State), json.Unmarshal(raw, &beside))
	a.AvailableActions, a.Pausing = beside.AvailableActions, beside.Pausing
	return err
}

// PlanAnswer answers the query `plan`.
type PlanAnswer struct {
	Pipeline    string         `json:"pipeline"`
	Plan        string         `json:"plan"` // digest of the whole plan, in the store and in the run directory
	ConfigHash  string         `json:"config_hash"`
	TotalPasses int            `json:"total_passes"`
	MaxRounds   int            `json:"max_rounds"`
	Stages      []run.StageRef `json:"stages"`
	Next        run.Place      `json:"next"`
}

// CostAnswer answers the query `cost`.
type CostAnswer struct {
	TotalUSD float64 `json:"total_usd"`
	SunkUSD  float64 `json:"sunk_usd"`
	// exact, at_least or unknown
	CostKnown run.CostKnown `json:"cost_known"`
	Budget    run.Budget    `json:"budget"`
	// each budget with what is used, at the last event
	Budgets []run.BudgetUse `json:"budgets"`
	Spent   run.Totals      `json:"spent"`
	ByRole  []run.Named     `json:"by_role"`
	ByStage []run.Named     `json:"by_stage"`
}

// HandoffAnswer answers the query `handoff`: the open question and its actions.
type HandoffAnswer struct {
	Open     bool          `json:"open"`
	Question *run.Question `json:"question,omitempty"`
	Verdict  string        `json:"verdict,omitempty"`
	Type     string        `json:"handoff_type,omitempty"`
	Last     *run.Decided  `json:"last_decided,omitempty"`
	Commands []string      `json:"commands,omitempty"` // ways to answer
}

// HeldAnswer answers the query `held`: the full disk, or the missing store or program, that the run waits for.
type HeldAnswer struct {
	Held bool `json:"held"` // by a full disk; the run is paused
	// for a host with the store and program of the call; the run is not paused
	Waiting bool   `json:"waits,omitempty"`
	Message string `json:"message,omitempty"`  // operation, path, error, file system
	RetryAt string `json:"retry_at,omitempty"` // next automatic retry; a resume retries at once
}

// DirectoryAnswer answers the query `directory`: where the run writes.
type DirectoryAnswer struct {
	Dir   string `json:"dir"`
	Queue string `json:"queue"` // task queue of its host
}

// registerQueries registers the queries. All answer from the folded state, as the files do.
func (e *engine) registerQueries(ctx workflow.Context) error {
	queries := []struct {
		name, about string
		handler     any
	}{
		{
			QueryStatus, "The folded state (status, place, passes, cost, last checkpoint) and the available actions.",
			e.queryStatus,
		},
		{QueryPlan, "What the run will do.", e.queryPlan},
		{QueryCost, "Cost by role and stage.", e.queryCost},
		{QueryHandoff, "The question that waits for a decision.", e.queryHandoff},
		{
			QueryHeld, "The full disk, store or program that the run waits for.",
			func() (HeldAnswer, error) { return e.held, nil },
		},
		{QueryDirectory, "Path and task queue of the run directory.", func() (DirectoryAnswer, error) {
			return DirectoryAnswer{Dir: e.in.Target.Dir, Queue: e.in.DirQueue}, nil
		}},
		{
			QueryCheckpoints, "The last named checkpoints.",
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
func (e *engine) queryStatus() (StatusAnswer, error) {
	s := e.j.state
	s.Refused += e.control.refusals.Counted
	return StatusAnswer{s, s.Available(s.Status), e.control.pausing()}, nil
}

func (e *engine) queryPlan() (PlanAnswer, error) {
	s := e.in.Start
	return PlanAnswer{
		Pipeline: s.Pipeline, Plan: s.Plan, ConfigHash: s.ConfigHash, TotalPasses: s.TotalPasses,
		MaxRounds: s.MaxRounds,
		Stages:    listed(s.Stages), Next: e.j.state.Next,
	}, nil
}

func (e *engine) queryHandoff() (HandoffAnswer, error) {
	a := HandoffAnswer{Last: e.j.state.Decided}
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

func (e *engine) queryCost() (CostAnswer, error) {
	s := e.j.state
	return CostAnswer{
		TotalUSD: s.Total(), SunkUSD: s.SunkUSD, CostKnown: s.CostKnown(), Budget: s.Budget, Spent: s.Spent,
		Budgets: listed(s.BudgetUses("")),
		ByRole:  listed(s.ByRole), ByStage: listed(s.ByStage),
	}, nil
}
