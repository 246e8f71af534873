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
		require.Equal(t, []any{run.KindLaneContinued, "b"}, []any{ev.Kind, ev.Lane}, name)
		row.want.Index, row.want.Name, row.want.Action = 1, "b.go", row.action
		require.Equal(t, row.want, run.PayloadOf[run.LaneContinued](ev), name)
	}
	for _, why := range []string{run.LaneFailed, run.LaneConflict} {
		e := waiting(why, 1)
		e.j.state.Decided = &run.Decided{Kind: run.QuestionGate, Phase: "work", Round: 3, Action: waiver}
		inside(t, e.applyLaneDecision)
		ev := last(t, e)
		require.Equal(t, []any{run.KindLaneEnded, "c"}, []any{ev.Kind, ev.Lane}, why)
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
		require.Equal(t, []any{run.QuestionGate, "work", 3, run.TriggerCheckFailed, row.digest},
			[]any{ask.Kind, ask.Phase, ask.Round, ask.Trigger, ask.Digest}, row)
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
		require.Equal(t, []any{run.KindLaneWaiting, "d"}, []any{ev.Kind, ev.Lane}, name)
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
		"no verdict":       {nil, false, "", run.KindLaneEnded, run.LaneOutcomeDone},
		"rejected":         {&no, false, "", run.KindLaneWaiting, ""},
		"accepted":         {&no, true, "", run.KindLaneEnded, run.LaneOutcomeDone},
		"rejected, go on":  {&no, false, "continue", run.KindLaneEnded, run.LaneOutcomeFailed},
		"no verdict, then": {nil, false, "continue", run.KindLaneEnded, run.LaneOutcomeDone},
	} {
		e := waiting(run.LaneFailed, 1)
		e.j.state.Lanes.Active[2].Waived, e.j.state.Lanes.Active[2].Tree = row.waived, &run.Blob{Digest: "work"}
		e.round.Lanes.IfFailing = row.ifFailing
		le := laneOf(e, "d", "d.go")
		le.lane.index = 3
		le.j.state.Verdict, le.j.state.Approved, le.j.state.Judged = "rejected", row.approved, &run.Judged{Reply: "review"}
		inside(t, le.finishLane)
		ev := last(t, e)
		require.Equal(t, []any{row.kind, "d"}, []any{ev.Kind, ev.Lane}, name)
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
