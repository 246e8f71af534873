package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// TestAnsweredCallOfALaneForgetsItsLimit, and a call without a result keeps it.
func TestAnsweredCallOfALaneForgetsItsLimit(t *testing.T) {
	e := engineOf(run.State{Lanes: &run.Lanes{Active: []run.Lane{{Key: "a"}}}})
	le := laneOf(e, "a", "a.go")
	e.limits = []run.LimitedCall{{Lane: "a", Member: "m", N: 1}, {Lane: "a", Member: "n", N: 1}}
	all := []*pass{{e: le, member: "m", result: &contract.PassResult{}}, {e: le, member: "n"}}
	require.NoError(t, le.settleInLane(nil, all, nil, false))
	require.Equal(t, []run.LimitedCall{{Lane: "a", Member: "n", N: 1}}, e.limits)

	le.keepLimits(nil, nil)
	require.True(t, le.lane.limited)
}

// TestStoredLanesAreRead from the store of the run, with the list of its rows.
func TestStoredLanesAreRead(t *testing.T) {
	e := engineOf(run.State{Lanes: &run.Lanes{Rows: "the rows", Digest: "the list", Merged: 4}})
	e.in.Target.RunID, e.in.Target.Store = "run-1", "file:///store"
	var got contract.StoreLanesInput
	store := func(_ context.Context, in contract.StoreLanesInput) (contract.StoreLanesResult, error) {
		got = in
		return contract.StoreLanesResult{List: "more rows"}, nil
	}
	rows := []run.FinishedLane{{Index: 5}}
	withWorkflow(t, map[string]any{contract.StoreLanes: store}, func(ctx workflow.Context) error {
		res, err := e.storedLanes(ctx, rows)
		require.Equal(t, "more rows", string(res.List))
		return err
	})
	require.Equal(t, []any{"run-1", "file:///store", "the rows", 4, rows},
		[]any{got.RunID, got.Store, string(got.List), got.Next, got.Rows})
}

// TestItemOfALane: an item that was not read yet is read from the list of its stage.
func TestItemOfALane(t *testing.T) {
	e := engineOf(run.State{Lanes: &run.Lanes{Stage: 2, Count: 9, Digest: "the list"}})
	e.round.Stage = "work"
	var got contract.ExpandInput
	var items []contract.LaneItem
	expand := func(_ context.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
		got = in
		return contract.ExpandResult{Items: items}, nil
	}
	withWorkflow(t, map[string]any{contract.ExpandLanes: expand}, func(ctx workflow.Context) error {
		_, err := e.item(ctx, 6)
		require.ErrorContains(t, err, "read item 7 of the list of work: there is none")
		items = []contract.LaneItem{{Name: "g.go"}, {Name: "h.go"}}
		item, err := e.item(ctx, 6)
		require.Equal(t, "g.go", item.Name)
		require.Equal(t, []any{2, "the list", 6}, []any{got.Stage, string(got.List), got.From})
		items = nil
		next, _ := e.item(ctx, 7)
		require.Equal(t, "h.go", next.Name, "it was read with the other")
		return err
	})
}

// TestUnlimitedCalls: the others wait, each with the attempts that it used.
func TestUnlimitedCalls(t *testing.T) {
	withWorkflow(t, nil, func(ctx workflow.Context) error {
		at := func(d time.Duration) string { return run.Time(workflow.Now(ctx).Add(d)) }
		e := engineOf(run.State{Limited: run.NewLimited([]run.LimitedCall{{Member: "m", Until: at(time.Hour),
			AttemptsUsed: 2}, {Member: "n", Until: at(-time.Hour), AttemptsUsed: 3}})})
		all := []*pass{{e: e, member: "m"}, {e: e, member: "n"}, {e: e, member: "o"}}
		require.Equal(t, all[1:], e.unlimited(ctx, all))
		require.Equal(t, []int{2, 3, 0}, []int{all[0].attempt, all[1].attempt, all[2].attempt})
		return nil
	})
}
