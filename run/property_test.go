package run_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// asked is a journal with everything that short runs meet: questions, pauses, a revert, an end, a new epoch.
func asked(t testing.TB) []run.Event {
	s := passes(t, 3)
	before := fold(run.State{}, s.events)
	s.add(run.KindRunPaused, "write", run.RunPaused{Reason: run.UserRequested})
	s.add(run.KindRunResumed, "write", run.RunResumed{Epoch: 1, From: run.Paused})
	s.add(run.KindHandoffRequested, "write", map[string]any{"handoff_id": "h1", "handoff_type": "human_bypass",
		"available_actions": []string{"halt"}})
	s.add(run.KindHandoffDecided, "write", map[string]any{"handoff_id": "h1", "action": "continue"})
	s.add(run.KindScreenshots, "write", run.Screenshots{Step: "shots", Count: 3, Manifest: blob("manifest")})
	s.add(run.KindScoreRecorded, "write", run.ScoreRecorded{Name: "score", Score: ptr(2.5)})
	s.add(run.KindBudgetWarning, "write", run.BudgetEvent{})
	s.pass(4)
	s.add(run.KindRunReverted, "write", run.RunReverted{To: before.Seq, Cause: "revert", State: &before})
	s.pass(4)
	s.add(run.KindPhaseEnd, "write", run.PhaseEnd{Key: "write", Outcome: "ok", Round: 1, Repeats: true,
		Next: &run.Place{Stage: 1, Round: 1}})
	s.add(run.KindRunEnd, "", run.RunEnd{Status: run.Failed, Reason: "no disk"})
	closed := fold(run.State{}, s.events)
	s.add(run.KindRunResumed, "", run.RunResumed{Epoch: 2, From: run.Failed, State: &closed})
	s.add(run.KindRunEnd, "", run.RunEnd{Status: run.Done})
	return s.events
}

// lanes is a journal with every kind of event about lanes.
func lanes(t testing.TB) []run.Event {
	s := passes(t, 3).add(run.KindChildrenListed, "write", run.ChildrenListed{Count: 3})
	tree, spent := blob("tree"), run.Totals{Calls: 1, USD: 1}
	cost := run.ChildCost{Spent: spent, ByRole: []run.Named{{Name: "builder", Totals: spent}}, Calls: 1,
		Means: []run.Mean{{Role: "builder", Calls: 1, USD: 1}}}
	at := func(i int, suffix string) run.LanePlace { return run.LanePlace{Index: i, Key: "k", Suffix: suffix} }
	for _, p := range []any{
		run.ChildStart{LanePlace: at(0, "")}, run.ChildStart{LanePlace: at(1, "")}, run.ChildStart{LanePlace: at(2, "")},
		run.ChildEnd{LanePlace: at(1, ""), Outcome: run.ChildDone, Tree: &tree, Cost: cost},
		run.ChildEnd{LanePlace: at(2, ""), Outcome: run.ChildStopped, Cost: cost}, run.ChildStart{LanePlace: at(2, "~2")},
		run.ChildEnd{LanePlace: at(0, ""), Outcome: run.ChildFailed, Cost: cost}, run.ChildSkip{Index: 0},
		run.ChildEnd{LanePlace: at(1, ""), Outcome: run.ChildConflict}, run.ChildStart{LanePlace: at(1, "~2")},
		run.ChildEnd{LanePlace: at(1, "~2"), Outcome: run.ChildDone, Tree: &tree, Cost: cost},
		run.ChildMerged{Index: 1, Tree: tree, Verdict: "approved", Approved: ptr(true)},
		run.ChildEnd{LanePlace: at(2, "~2"), Outcome: run.ChildDone, Tree: &tree}, run.ChildMerged{Index: 2, Tree: tree},
	} {
		s.add(run.KindWith(t, p), "write", p)
	}
	s.pass(4)
	return s.events
}

func journals(t testing.TB) map[string][]run.Event {
	return map[string][]run.Event{"asked": asked(t), "lanes": lanes(t), "twenty passes": passes(t, 20).events}
}

// TestApplyLeavesItsArgument compares every state with what it was after all later events were folded, and after the
// same event was folded over it twice: a slice shared with a later state would show. The states that a Fold returns
// stay, too.
func TestApplyLeavesItsArgument(t *testing.T) {
	for name, events := range journals(t) {
		f := run.NewFold(run.State{}, run.History{})
		states, returned, pictures := []run.State{{}}, []run.State{f.State()}, []string{picture(t, run.State{})}
		for i, e := range events {
			next := run.Apply(states[i], e)
			require.Equal(t, picture(t, next), picture(t, run.Apply(states[i], e)), "%s, event %d twice over one state",
				name, e.Seq)
			f.Apply(e)
			states, returned = append(states, next), append(returned, f.State())
			pictures = append(pictures, picture(t, next))
		}
		for i, s := range states {
			require.Equal(t, pictures[i], picture(t, s), "%s: the state after event %d changed later", name, i)
			require.Equal(t, pictures[i], picture(t, returned[i]), "%s: the state after event %d changed later", name, i)
		}
	}
}

func picture(t testing.TB, s run.State) string {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	return string(raw)
}

// TestStateStaysSmall is what lets it travel: it does not grow with the run.
func TestStateStaysSmall(t *testing.T) {
	s := passes(t, 5000)
	short, long := len(picture(t, fold(run.State{}, s.events[:600]))), len(picture(t, fold(run.State{}, s.events)))
	require.Less(t, long, 64<<10)
	require.Less(t, long, short+512, "only numbers may get longer")
}

// TestTotals holds the sums against the calls, one by one.
func TestTotals(t *testing.T) {
	const n = 2000
	s := fold(run.State{}, passes(t, n).events)
	calls := n + n/5
	require.InDelta(t, 0.1*float64(calls), s.Spent.USD, 1e-6)
	require.Equal(t, calls, s.Spent.Calls)
	require.Equal(t, run.Tokens{Input: 1000 * int64(calls), Output: 200 * int64(calls), CacheRead: 30 * int64(calls),
		CacheWrite: 4 * int64(calls)}, s.Spent.Tokens)
	for name, rows := range map[string][]run.Named{"role": s.ByRole, "stage": s.ByStage} {
		var sum run.Totals
		for _, r := range rows {
			sum.Calls += r.Calls
			sum.USD += r.USD
			sum.Tokens.Input += r.Tokens.Input
		}
		require.InDelta(t, s.Spent.USD, sum.USD, 1e-6, name)
		require.Equal(t, s.Spent.Calls, sum.Calls, name)
		require.Equal(t, s.Spent.Tokens.Input, sum.Tokens.Input, name)
	}
}
