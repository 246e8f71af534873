package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// waiting is a run whose lanes b and c wait for an operator, and d works, in a stage of three steps.
func waiting(why string, step int) *engine {
	w := &run.LaneWait{Why: why, Question: "It failed", Digest: "about"}
	e := engineOf(run.State{Status: run.Running, Seq: 9, Phase: "work", PhaseOpen: true, Tree: &run.Blob{Digest: "now"},
		Lanes: &run.Lanes{Count: 4, Begun: 4, Active: []run.Lane{
			{Index: 1, Key: "b", Name: "b.go", Step: step, Redo: 7, Waiting: w},
			{Index: 2, Key: "c", Name: "c.go", Step: step, Waiting: w}, {Index: 3, Key: "d", Name: "d.go"}}}})
	e.round = contract.Round{Stage: "work", Title: "Work", Lanes: &pipeline.Lanes{},
		Steps: []contract.Step{changeStep, testStep, reviewStep}}
	return e
}

// last is the last event that is not on disk.
func last(t *testing.T, e *engine) run.Event {
	t.Helper()
	require.NotEmpty(t, e.j.pending)
	return e.j.pending[len(e.j.pending)-1]
}

// TestAnswersAboutALane: where a lane continues after the answer to its question.
func TestAnswersAboutALane(t *testing.T) {
	const retry, waiver = run.ActionRetry, run.ActionContinueWithWaiver
	for name, row := range map[string]struct {
		why, action string
		step        int // that the lane was at
		want        run.LaneContinued
	}{
		"repeat a step":            {run.LaneFailed, retry, 1, run.LaneContinued{Step: 1, Redo: true}},
		"repeat a check":           {run.LaneCheck, retry, 1, run.LaneContinued{Step: 1, Redo: true}},
		"repeat what was rejected": {run.LaneCheck, retry, 3, run.LaneContinued{Step: 0, Redo: true}},
		"resolve a conflict": {run.LaneConflict, retry, 2, run.LaneContinued{Step: 0, Redo: true,
			Tree: &run.Blob{Digest: "now"}}},
		"accept a check":          {run.LaneCheck, waiver, 1, run.LaneContinued{Step: 2}},
		"accept the last check":   {run.LaneCheck, waiver, 2, run.LaneContinued{Step: 3}},
		"accept what is rejected": {run.LaneCheck, waiver, 3, run.LaneContinued{Step: 3}},
	} {
		e := waiting(row.why, row.step)
		e.j.state.Decided = &run.Decided{Kind: run.QuestionGate, Phase: "work", Round: 2, Action: row.action}
		inside(t, e.applyLaneDecision)
		ev := last(t, e)
		require.Equal(t, run.KindLaneContinued, ev.Kind, name)
		require.Equal(t, "b", ev.Lane, name)
		row.want.Index, row.want.Name, row.want.Action = 1, "b.go", row.action
		require.Equal(t, row.want, run.PayloadOf[run.LaneContinued](ev), name)
	}
	for _, why := range []string{run.LaneFailed, run.LaneConflict} {
		e := waiting(why, 1)
		e.j.state.Decided = &run.Decided{Kind: run.QuestionGate, Phase: "work", Round: 3, Action: waiver}
		inside(t, e.applyLaneDecision)
		ev := last(t, e)
		require.Equal(t, run.KindLaneEnded, ev.Kind, why)
		require.Equal(t, "c", ev.Lane, why)
		require.Equal(t, run.LaneEnded{Index: 2, Name: "c.go", Outcome: run.LaneOutcomeFailed, Reason: "It failed"},
			run.PayloadOf[run.LaneEnded](ev), why)
	}
	e := waiting(run.LaneFailed, 1)
	inside(t, e.applyLaneDecision)
	require.Empty(t, e.j.pending, "no decision")
}

// TestSubjectOfAQuestionAboutALane: the output of a failed check is attached, and nothing else.
func TestSubjectOfAQuestionAboutALane(t *testing.T) {
	for _, row := range []struct {
		why, digest string
		attached    int
	}{{run.LaneCheck, "about", 1}, {run.LaneCheck, "", 0}, {run.LaneConflict, "about", 0}, {run.LaneFailed, "about", 0}} {
		e := waiting(row.why, 1)
		l := e.j.state.Lanes.Active[1]
		l.Waiting.Digest = row.digest
		var ask run.QuestionRequested
		inside(t, func(ctx workflow.Context) error { ask = e.askAbout(ctx, l); return nil })
		require.Equal(t, run.QuestionGate, ask.Kind, row)
		require.Equal(t, "work", ask.Phase, row)
		require.Equal(t, 3, ask.Round, row)
		require.Equal(t, run.TriggerCheckFailed, ask.Trigger, row)
		require.Equal(t, row.digest, ask.Digest, row)
		require.Len(t, ask.Artifacts, row.attached, row)
		if row.attached > 0 {
			require.Equal(t, run.Attached{Name: "output", Digest: "about"}, ask.Artifacts[0])
		}
	}
}

// TestResultsOfAStepInALane: what a lane does after a step, by the results of its passes.
func TestResultsOfAStepInALane(t *testing.T) {
	over := &contract.PassResult{Outcome: run.CategoryBudgetExceeded, OverBudget: true}
	failed := &contract.PassResult{Outcome: run.CategoryAgentExit}
	answered := &contract.PassResult{ExitCode: 2, Reply: &run.Blob{Digest: "output", Size: 1}}
	for name, row := range map[string]struct {
		pass    pass
		open    bool // the pass is not settled
		gated   bool
		change  func(e *engine)
		want    run.LaneWait // empty: nothing is journaled
		lane    lane
		limited int
	}{
		"over its share": {pass{failure: over, share: 2, role: contract.Role{Name: "worker"}}, true, false, nil,
			run.LaneWait{}, lane{short: true, need: &run.Need{Role: "worker", USD: 2, Source: run.NeedReached}}, 0},
		"failed": {pass{failure: failed, detail: "exit 1"}, true, false, nil,
			run.LaneWait{Why: run.LaneFailed, Question: "exit 1"}, lane{over: true}, 0},
		"failed while the run pauses": {pass{failure: failed, detail: "exit 1"}, true, false,
			func(e *engine) { e.control.Pause = true }, run.LaneWait{}, lane{}, 0},
		"failed after the end": {pass{failure: failed, detail: "exit 1"}, true, false,
			func(e *engine) { e.j.state.Status = run.Halted }, run.LaneWait{}, lane{}, 0},
		"met a limit": {pass{limited: true, waiting: run.LimitedCall{N: 1, Until: "2026-01-02T09:00:00.000Z"}}, true, false,
			nil, run.LaneWait{}, lane{limited: true}, 1},
		"not called": {pass{}, true, false, nil, run.LaneWait{}, lane{}, 0},
		"answered":   {pass{result: answered}, false, false, nil, run.LaneWait{}, lane{}, 0},
		"a check failed": {pass{result: answered, step: testStep}, false, true, nil,
			run.LaneWait{Why: run.LaneCheck, Question: " failed with exit code 2. Continue?", Digest: "output"},
			lane{over: true}, 0},
		"a check failed without output": {pass{result: &contract.PassResult{ExitCode: 2}, step: testStep}, false, true, nil,
			run.LaneWait{Why: run.LaneCheck, Question: " failed with exit code 2. Continue?"}, lane{over: true}, 0},
	} {
		e := waiting(run.LaneFailed, 1)
		le := laneOf(e, "d", "d.go")
		le.lane.index = 3
		p := row.pass
		p.e = le
		if row.change != nil {
			row.change(le)
		}
		inside(t, func(ctx workflow.Context) error {
			open := (*pass)(nil)
			if row.open {
				open = &p
			}
			return le.settleInLane(ctx, []*pass{&p}, open, row.gated)
		})
		row.lane.key, row.lane.name, row.lane.index = "d", "d.go", 3
		require.Equal(t, row.lane, *le.lane, name)
		require.Len(t, e.limits, row.limited, name)
		if row.limited > 0 {
			require.Equal(t, "d", e.limits[0].Lane)
		}
		if row.want == (run.LaneWait{}) {
			require.Empty(t, e.j.pending, name)
			continue
		}
		ev := last(t, e)
		require.Equal(t, run.KindLaneWaiting, ev.Kind, name)
		require.Equal(t, "d", ev.Lane, name)
		require.Equal(t, run.LaneWaiting{Index: 3, Name: "d.go", LaneWait: row.want}, run.PayloadOf[run.LaneWaiting](ev),
			name)
	}
}

// TestEndsOfALane: work that is not approved asks, unless an operator accepted it or `if_failing: continue` leaves it
// out.
func TestEndsOfALane(t *testing.T) {
	no := false
	for name, row := range map[string]struct {
		approved  *bool
		waived    bool
		ifFailing string
		kind      run.Kind
		outcome   string
	}{
		"no verdict":         {nil, false, "", run.KindLaneEnded, run.LaneOutcomeDone},
		"rejected":           {&no, false, "", run.KindLaneWaiting, ""},
		"accepted":           {&no, true, "", run.KindLaneEnded, run.LaneOutcomeDone},
		"rejected, continue": {&no, false, "continue", run.KindLaneEnded, run.LaneOutcomeFailed},
		"no verdict, then":   {nil, false, "continue", run.KindLaneEnded, run.LaneOutcomeDone},
	} {
		e := waiting(run.LaneFailed, 1)
		e.j.state.Lanes.Active[2].Waived, e.j.state.Lanes.Active[2].Tree = row.waived, &run.Blob{Digest: "work"}
		e.round.Lanes.IfFailing = row.ifFailing
		le := laneOf(e, "d", "d.go")
		le.lane.index = 3
		le.j.state.Verdict, le.j.state.Approved, le.j.state.Judged = "rejected", row.approved, &run.Judged{Reply: "review"}
		inside(t, le.finishLane)
		ev := last(t, e)
		require.Equal(t, row.kind, ev.Kind, name)
		require.Equal(t, "d", ev.Lane, name)
		require.True(t, le.lane.over, name)
		switch row.outcome {
		case "":
			require.Equal(t, run.LaneWait{Why: run.LaneCheck, Question: "The last verdict is rejected.", Digest: "review"},
				run.PayloadOf[run.LaneWaiting](ev).LaneWait, name)
		case run.LaneOutcomeDone:
			require.Equal(t, run.LaneEnded{Index: 3, Name: "d.go", Outcome: row.outcome, Tree: &run.Blob{Digest: "work"}},
				run.PayloadOf[run.LaneEnded](ev), name)
		default:
			require.Equal(t, run.LaneEnded{Index: 3, Name: "d.go", Outcome: row.outcome,
				Reason: "The last verdict is rejected."}, run.PayloadOf[run.LaneEnded](ev), name)
		}
	}
}

const (
	now   = "2026-01-02T03:04:05.000Z" // where inside executes
	later = "2026-01-02T09:00:00.000Z"
)

// limitOf is the wait of a call of a lane.
func limitOf(lane, member string, n int, until string) run.LimitedCall {
	return run.LimitedCall{Lane: lane, Member: member, N: n, Until: until, Limit: run.Limit{Kind: run.LimitPlan,
		AccountID: "account"}}
}

// TestLaneWaitsForAllItsCalls: a lane continues as soon as one of its calls may be made.
func TestLaneWaitsForAllItsCalls(t *testing.T) {
	for name, row := range map[string]struct {
		state  []run.LimitedCall
		limits []run.LimitedCall
		want   bool
	}{
		"none":              {nil, nil, false},
		"one":               {nil, []run.LimitedCall{limitOf("d", "", 1, later)}, true},
		"one of the state":  {[]run.LimitedCall{limitOf("d", "", 1, later)}, nil, true},
		"of another lane":   {nil, []run.LimitedCall{limitOf("c", "", 1, later)}, false},
		"that is over":      {nil, []run.LimitedCall{limitOf("d", "", 1, now)}, false},
		"one of two":        {nil, []run.LimitedCall{limitOf("d", "a", 1, now), limitOf("d", "b", 1, later)}, false},
		"both":              {nil, []run.LimitedCall{limitOf("d", "a", 1, later), limitOf("d", "b", 1, later)}, true},
		"met none":          {nil, []run.LimitedCall{limitOf("d", "a", 0, later)}, false},
		"met none, another": {nil, []run.LimitedCall{limitOf("d", "a", 0, now), limitOf("d", "b", 1, later)}, true},
	} {
		e := engineOf(run.State{Limited: run.NewLimited(row.state)})
		e.limits = row.limits
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
	(&pass{e: e, member: "m"}).forgetLimit()
	require.Len(t, e.limits, 3, "not in a lane")
	(&pass{e: le, member: "m"}).forgetLimit()
	require.Equal(t, []run.LimitedCall{limitOf("c", "m", 1, later), limitOf("d", "n", 1, later)}, e.limits)
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
	second.Again = soon
	calls := []run.LimitedCall{limitOf("d", "m", 1, later), second, other}
	together(calls)
	require.Equal(t, []string{soon, soon, later}, []string{calls[0].Until, calls[1].Until, calls[2].Until})
	require.Equal(t, soon, calls[1].Again)
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
