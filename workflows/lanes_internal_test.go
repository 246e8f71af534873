package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestLanesAtOnce: the bound of the definition, and that of the state.
func TestLanesAtOnce(t *testing.T) {
	for atOnce, want := range map[int]int{-1: 1, 0: 1, 1: 1, 3: 3, run.MaxActiveLanes + 1: run.MaxActiveLanes} {
		e := engineOf(run.State{})
		e.round.Lanes = &pipeline.Lanes{Each: pipeline.Each{AtOnce: atOnce}}
		require.Equal(t, want, e.atOnce())
	}
}

// TestJoinedCallOfALane: a call that an earlier execution started is not made again.
func TestJoinedCallOfALane(t *testing.T) {
	const id = "root/g0.work/1.2.k1+m.1"
	call := run.InFlightCall{Lane: "k1", Step: "work/1", Member: "m", Call: id, Attempt: 3}
	for name, change := range map[string]func(c *run.InFlightCall){
		"the call": func(*run.InFlightCall) {}, "another lane": func(c *run.InFlightCall) { c.Lane = "k2" },
		"another step":   func(c *run.InFlightCall) { c.Step = "work/2" },
		"another member": func(c *run.InFlightCall) { c.Member = "" },
		"another call":   func(c *run.InFlightCall) { c.Call = "x" },
	} {
		other := call
		change(&other)
		e := engineOf(run.State{ThreadID: "root", Lanes: &run.Lanes{Active: []run.Lane{{Key: "k1"}}},
			InFlight: []run.InFlightCall{other}})
		le := laneOf(e, "k1", "one.go")
		le.j.state = e.j.state
		p := passOf(le, contract.Step{PlanStep: pipeline.PlanStep{Key: "work/1"}}, contract.Role{}, "m")
		joins := name == "the call"
		require.Equal(t, joins, p.joins(), name)
		if joins {
			require.Equal(t, 3, p.attempt)
			require.Equal(t, id, p.callID)
			p.e = e
			require.False(t, p.joins(), "it is a call of a lane")
		}
	}
}

// TestLimitsOfLanes: which of them wait, until when, and what the next execution takes over.
func TestLimitsOfLanes(t *testing.T) {
	at := func(minute int) string { return run.Time(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC)) }
	call := func(lane, member string, minute int) run.LimitedCall {
		return run.LimitedCall{Lane: lane, Member: member, N: 1, Until: at(minute),
			Limit: run.Limit{Kind: run.LimitPlan, AccountID: "x"}}
	}
	e := engineOf(run.State{Limited: run.NewLimited([]run.LimitedCall{{Member: "m", AttemptsUsed: 7}})})
	require.True(t, e.nextLimit().IsZero())
	e.limits = []run.LimitedCall{call("a", "", 9), call("b", "m", 5), {Lane: "c", AttemptsUsed: 2}}
	require.Equal(t, at(5), run.Time(e.nextLimit()))

	a, b := laneOf(e, "a", "a.go"), laneOf(e, "b", "b.go")
	require.Equal(t, at(9), a.limitedBefore("").Until)
	require.Equal(t, at(5), b.limitedBefore("m").Until)
	require.Equal(t, 7, e.limitedBefore("m").AttemptsUsed)
	a.passes = []*pass{{e: a, attempt: 2}, {e: a, member: "m", attempt: 1}, {e: a, member: "n"},
		{e: a, member: "o", attempt: 1, result: &contract.PassResult{}}}
	require.Equal(t, append(e.limits[:3:3], run.LimitedCall{Lane: "a", Member: "m", AttemptsUsed: 1}),
		e.lanesCarried())
}

// TestEndsOfLanesAreWritten, unless a call follows that writes them too.
func TestEndsOfLanesAreWritten(t *testing.T) {
	ended, waits, started, merged := run.KindLaneEnded, run.KindLaneWaiting, run.KindLaneStarted, run.KindLaneMerged
	for name, row := range map[string]struct {
		pending []run.Kind
		writes  bool
	}{
		"an end": {[]run.Kind{started, ended}, true}, "a wait": {[]run.Kind{waits}, true},
		"an end and a merge": {[]run.Kind{ended, merged}, true}, "a lane begins after it": {[]run.Kind{ended, started},
			false},
		"no end": {[]run.Kind{merged}, false}, "nothing": {nil, false},
	} {
		e := engineOf(run.State{})
		for i, kind := range row.pending {
			e.j.pending = append(e.j.pending, run.Event{Seq: int64(i + 7), Kind: kind})
		}
		e.writeEnds()
		require.Equal(t, row.writes, e.control.unflushed, name)
		e.control.unflushed = false
		e.writeEnds()
		require.False(t, e.control.unflushed, "once")
	}
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
	require.Equal(t, "run-1", got.RunID)
	require.Equal(t, "file:///store", got.Store)
	require.Equal(t, "the rows", string(got.List))
	require.Equal(t, 4, got.Next)
	require.Equal(t, rows, got.Rows)
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
		require.Equal(t, 2, got.Stage)
		require.Equal(t, "the list", string(got.List))
		require.Equal(t, 6, got.From)
		items = nil
		next, _ := e.item(ctx, 7)
		require.Equal(t, "h.go", next.Name, "it was read with the other")
		return err
	})
}

// TestUnlimitedCalls: the others wait, each with the attempts that it used.
func TestUnlimitedCalls(t *testing.T) {
	inside(t, func(ctx workflow.Context) error {
		at := func(d time.Duration) string { return run.Time(workflow.Now(ctx).Add(d)) }
		e := engineOf(run.State{Limited: run.NewLimited([]run.LimitedCall{{Member: "m", Until: at(time.Hour),
			AttemptsUsed: 2}, {Member: "n", Until: at(-time.Hour), AttemptsUsed: 3}})})
		all := []*pass{{e: e, member: "m"}, {e: e, member: "n"}, {e: e, member: "o"}}
		require.Equal(t, all[1:], e.unlimited(ctx, all))
		require.Equal(t, []int{2, 3, 0}, []int{all[0].attempt, all[1].attempt, all[2].attempt})
		return nil
	})
}
