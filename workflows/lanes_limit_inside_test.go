package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

const (
	now   = "2026-01-02T03:04:05.000Z" // where inside executes
	later = "2026-01-02T09:00:00.000Z"
)

// limitOf is the wait of a call of a lane.
func limitOf(lane, member string, n int, until string) run.LimitedCall {
	return run.LimitedCall{Lane: lane, Member: member, N: n, Until: until, Limit: run.Limit{Kind: run.LimitPlan,
		AccountID: "account", Number: 5}}
}

// TestOpenedAccounts: a limit is over when its account was opened after the request of the call.
func TestOpenedAccounts(t *testing.T) {
	e := engineOf(run.State{})
	e.accountsOpen = map[string]int64{"account": 1}
	for _, row := range []struct {
		number int64
		id     string
		until  string
		want   bool
	}{{1, "account", later, true}, {2, "account", later, false}, {0, "account", later, false},
		{1, "another", later, false}, {1, "account", "", false}} {
		c := limitOf("d", "", 1, row.until)
		c.Number, c.AccountID = row.number, row.id
		require.Equal(t, row.want, e.opened(c), row)
		e.limits = []run.LimitedCall{c}
		require.Equal(t, row.want, e.accountOpened(), row)
	}
}

// TestLaneWaitsForAllItsCalls: a lane continues as soon as one of its calls may be made.
func TestLaneWaitsForAllItsCalls(t *testing.T) {
	for name, row := range map[string]struct {
		state  []run.LimitedCall
		limits []run.LimitedCall
		opened bool
		want   bool
	}{
		"none":              {nil, nil, false, false},
		"one":               {nil, []run.LimitedCall{limitOf("d", "", 1, later)}, false, true},
		"one of the state":  {[]run.LimitedCall{limitOf("d", "", 1, later)}, nil, false, true},
		"of another lane":   {nil, []run.LimitedCall{limitOf("c", "", 1, later)}, false, false},
		"that is over":      {nil, []run.LimitedCall{limitOf("d", "", 1, now)}, false, false},
		"one of two":        {nil, []run.LimitedCall{limitOf("d", "a", 1, now), limitOf("d", "b", 1, later)}, false, false},
		"both":              {nil, []run.LimitedCall{limitOf("d", "a", 1, later), limitOf("d", "b", 1, later)}, false, true},
		"met none":          {nil, []run.LimitedCall{limitOf("d", "a", 0, later)}, false, false},
		"met none, another": {nil, []run.LimitedCall{limitOf("d", "a", 0, now), limitOf("d", "b", 1, later)}, false, true},
		"opened":            {nil, []run.LimitedCall{limitOf("d", "", 1, later)}, true, false},
	} {
		e := engineOf(run.State{Limited: run.NewLimited(row.state)})
		e.limits = row.limits
		if row.opened {
			e.accountsOpen = map[string]int64{"account": 5}
		}
		var got bool
		inside(t, func(ctx workflow.Context) error { got = e.limitedLane(ctx, "d"); return nil })
		require.Equal(t, row.want, got, name)
	}
}

// TestForgottenLimit: only that of the call which was answered.
func TestForgottenLimit(t *testing.T) {
	e := engineOf(run.State{})
	le := laneOf(e, "d", "d.go")
	turn := limitOf("d", "m", 1, later)
	turn.Kind = run.LimitAtOnce
	e.limits = []run.LimitedCall{limitOf("c", "m", 1, later), turn, limitOf("d", "n", 1, later)}
	e.accountsOpen = map[string]int64{"account": 5}
	(&pass{e: e, member: "m"}).forgetLimit()
	require.Len(t, e.limits, 3, "not in a lane")
	(&pass{e: le, member: "m"}).forgetLimit()
	require.Equal(t, []run.LimitedCall{limitOf("c", "m", 1, later), limitOf("d", "n", 1, later)}, e.limits)
	require.Empty(t, e.accountsOpen, "its turn was taken")
}

// TestRunWaitsForTheLimitsOfItsLanes: those of lanes that work, the latest of each call.
func TestRunWaitsForTheLimitsOfItsLanes(t *testing.T) {
	const soon = "2026-01-02T04:00:00.000Z"
	e := waiting(run.LaneFailed, 1)
	e.j.state.Lanes.Active[1].Waiting = nil
	state := []run.LimitedCall{limitOf("d", "m", 1, soon), limitOf("d", "o", 1, later), limitOf("c", "m", 1, later),
		limitOf("d", "p", 0, later), limitOf("d", "q", 1, "")}
	for i := range state {
		state[i].Account = state[i].Lane + state[i].Member
	}
	e.j.state.Limited = run.NewLimited(state)
	mine := limitOf("d", "m", 2, later)
	mine.Account = "dm"
	e.limits = []run.LimitedCall{mine, limitOf("b", "", 1, later), limitOf("gone", "", 1, later),
		limitOf("d", "n", 0, later)}
	var waits bool
	inside(t, func(ctx workflow.Context) (err error) { waits, err = e.suspendLanes(ctx); return err })
	require.True(t, waits)
	require.Empty(t, e.limits)
	require.Equal(t, run.KindRunLimited, last(t, e).Kind)
	limited := run.PayloadOf[run.RunLimited](last(t, e)).Limited
	got := map[string]int{}
	for _, c := range limited.Calls() {
		got[c.Lane+c.Member] = c.N
	}
	require.Equal(t, map[string]int{"dm": 2, "do": 1, "cm": 1}, got)

	e = waiting(run.LaneFailed, 1)
	e.limits = []run.LimitedCall{limitOf("d", "", 0, later)}
	inside(t, func(ctx workflow.Context) (err error) { waits, err = e.suspendLanes(ctx); return err })
	require.False(t, waits)
	require.Empty(t, e.j.pending)
}

// TestCallsOfTheSameLimitWaitTogether: until the first of them is made again.
func TestCallsOfTheSameLimitWaitTogether(t *testing.T) {
	const soon = "2026-01-02T04:00:00.000Z"
	other := limitOf("d", "o", 1, later)
	other.Account = "other"
	second := limitOf("d", "n", 1, soon)
	second.Number = 9
	calls := []run.LimitedCall{limitOf("d", "m", 1, later), second, other}
	together(calls)
	require.Equal(t, []string{soon, soon, later}, []string{calls[0].Until, calls[1].Until, calls[2].Until})
	require.Equal(t, int64(5), calls[0].Number)
}

// TestNoLaneStarts: none of these reads the next item.
func TestNoLaneStarts(t *testing.T) {
	many := func(n int, l run.Lane) (all []run.Lane) {
		for range n {
			all = append(all, l)
		}
		return all
	}
	for name, change := range map[string]func(e *engine){
		"all have begun":         func(e *engine) { e.j.state.Lanes.Begun = 9 },
		"as many as may work":    func(e *engine) { laneOf(e, "x", "x").lane.running = true },
		"one is short of budget": func(e *engine) { laneOf(e, "x", "x").lane.short = true },
		"too many wait": func(e *engine) {
			e.j.state.Lanes.Active = many(run.MaxWaitingLanes, run.Lane{Waiting: &run.LaneWait{}})
		},
		"too many are finished": func(e *engine) {
			e.j.state.Lanes.Finished = make([]run.FinishedLane, run.MaxFinishedLanes)
		},
		"the budget is spent": func(e *engine) { e.j.state.Budget.Calls, e.j.state.Used.Calls = 1, 1 },
	} {
		e := engineOf(run.State{Status: run.Running, Lanes: &run.Lanes{Count: 9, Begun: 2}})
		e.round = contract.Round{Stage: "work", Lanes: &pipeline.Lanes{Each: pipeline.Each{AtOnce: 1}}}
		change(e)
		inside(t, e.startLanes)
		require.Empty(t, e.j.pending, name)
	}
}

// TestDamagedSegmentsAreArchivedAgain from the directory, which repairs them if it has all lines.
func TestDamagedSegmentsAreArchivedAgain(t *testing.T) {
	segment := run.JournalDamage{File: run.SegmentFile + "abc", Line: 2}
	line := run.JournalDamage{File: "events.jsonl", Line: 3}
	for name, row := range map[string]struct {
		found    []run.JournalDamage
		last     int64 // that is archived
		repaired []bool
		head     string
		archived int64
	}{
		"a line only":   {[]run.JournalDamage{line}, 9, []bool{false}, "old", 7},
		"a segment":     {[]run.JournalDamage{segment, line}, 9, []bool{true, false}, "new", 9},
		"not all lines": {[]run.JournalDamage{segment}, 4, []bool{false}, "new", 4},
		"no line":       {[]run.JournalDamage{segment}, 0, []bool{false}, "old", 7},
	} {
		e := engineOf(run.State{Status: run.Running})
		e.finalChecked = true
		e.j.head, e.j.archived, e.j.disk.tail = "old", 7, run.Tail{Seq: 9}
		var in contract.ArchiveSegmentInput
		var got []run.JournalDamage
		inside(t, func(ctx workflow.Context) (err error) { got, err = e.j.rearchive(ctx, row.found); return err },
			func(env *testsuite.TestWorkflowEnvironment) {
				env.RegisterActivityWithOptions(func(asked contract.ArchiveSegmentInput) (contract.ArchiveSegmentResult, error) {
					in = asked
					return contract.ArchiveSegmentResult{Head: "new", Last: row.last}, nil
				}, activity.RegisterOptions{Name: contract.ArchiveSegment})
			})
		var repaired []bool
		for _, d := range got {
			repaired = append(repaired, d.Repaired)
		}
		require.Equal(t, row.repaired, repaired, name)
		require.Equal(t, []any{row.head, row.archived}, []any{e.j.head, e.j.archived}, name)
		if name != "a line only" {
			require.Equal(t, []any{"", int64(1), int64(9)}, []any{in.Head, in.First, in.Tail.Seq}, name)
		}
	}
}
