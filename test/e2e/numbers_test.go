package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// testDemoNumbers asks everybody who tells numbers: the program, both files, the live workflow's queries, and its
// result.
func testDemoNumbers(t *testing.T, h *environment, dir string) {
	meta, state := metaOf(t, dir), stateOf(t, dir)
	want := meta.State

	require.Equal(t, want, h.status(dir).State)

	c := h.dial()
	ask := func(query string, answer any) {
		t.Helper()
		v, err := c.QueryWorkflow(t.Context(), meta.RunID, "", query)
		require.NoError(t, err)
		require.NoError(t, v.Get(answer))
	}
	var live run.State
	ask(workflows.QueryStatus, &live)
	require.Equal(t, want, live)
	var cost workflows.CostAnswer
	ask(workflows.QueryCost, &cost)
	require.Equal(t, workflows.CostAnswer{
		TotalUSD: want.Total(), SunkUSD: want.SunkUSD, CostKnown: run.CostExact, Budget: want.Budget, Spent: want.Spent,
		ByRole:  want.ByRole,
		ByStage: want.ByStage, Budgets: want.BudgetUses(""),
	}, cost)
	var points []run.CheckpointRef
	ask(workflows.QueryCheckpoints, &points)
	require.Equal(t, want.Checkpoints, points)
	require.Len(t, points, len(state.Checkpoints))

	var result workflows.Result
	require.NoError(t, c.GetWorkflow(t.Context(), meta.RunID, "").Get(t.Context(), &result))
	require.Equal(t, workflows.Result{
		RunID: meta.RunID, Status: run.Done, Artifact: artifactOf(t, dir), USD: want.Total(), Score: want.Score,
		Tail: run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain}, Head: meta.SegmentHead,
	}, result)

	require.Equal(t, want.Total(), state.Cost.TotalEstimatedCostUSD+state.SunkCostUSD)
	require.Equal(t, want.Spent.Tokens.Input, state.Cost.TotalInputTokens)
	require.Equal(t, want.Spent.Tokens.Output, state.Cost.TotalOutputTokens)
	require.Equal(t, want.Passes.LastSettled, state.LastCompletedCorpusPass)
	require.Equal(t, want.Rounds, state.CompletedPACycles)
	require.Equal(t, want.Score, state.LastPAScore)
	require.Equal(t, 70, want.Spent.Calls)
	calls, usd := 0, 0.0
	for _, r := range state.Cost.ByRole {
		calls, usd = calls+r.PassCount, run.Cents(usd+r.CostUSD)
	}
	require.Equal(t, 70, calls)
	require.Equal(t, want.Total(), usd)
	usd = 0
	for _, r := range state.Cost.BySubset {
		usd = run.Cents(usd + r.CostUSD)
	}
	for _, r := range state.Cost.ByPACycle {
		usd = run.Cents(usd + r.CostUSD)
	}
	require.Equal(t, want.Total(), usd)
}
