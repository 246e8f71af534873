package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// branched makes w a run that comes of another one's checkpoint: behind the first of its two passes.
func branched(w *harness, mode, policy string) {
	page := run.Blob{Digest: "their page"}
	w.in.Start.Source = &run.Source{
		RunID: "their-run", Checkpoint: "cp-7", Seq: 7, Mode: mode, Replay: policy, Generation: 2,
	}
	w.in.Start.State = &run.State{
		Version: run.StateVersion, Next: run.Place{
			Round: 1, Step: 1,
		}, Phase: "build", Round: 1, PhaseOpen: true, Artifact: &page,
		Passes: run.PassCount{Total: 2, LastSettled: 1}, Spent: run.Totals{},
	}
}

// reuse answers as a record does.
func reuse(ok contract.PassResult) (contract.PassResult, error) {
	ok.Source, ok.SourceUSD, ok.Spend, ok.Reused = "their-run/g2.002.1.-.1.abc", 1.5, run.Spend{}, true
	return ok, nil
}

func TestReplayUsesRecordedResults(t *testing.T) {
	w := newHarness(t, acting(run.EffectExternal))
	branched(w, run.ModeReplay, run.UseRecorded)
	w.agent.will(call(2, 1), reuse)
	w.done()
	require.Equal(t, []string{"g0.002.1.-.1"}, w.agent.ids, "it begins behind the checkpoint, with its own calls")
	in := w.agent.inputs[0]
	require.Equal(t, "their-run", in.RecordedRun)
	require.Equal(t, 2, in.Generations)
	require.True(t, in.RecordedOnly, "while it replays, nothing is called")
	require.Equal(t, "their page", in.Artifact.Digest)
	require.Equal(t, []run.Effect{{
		Step: "002", Call: "run-1/g0.002.1.-.1", Class: run.EffectExternal, Policy: "use_recorded_result", Status: "reused",
		Result: "their-run/g2.002.1.-.1.abc", Source: "their-run", USD: 1.5,
	}}, payloads[run.Effect](w, run.KindEffectReused))
	require.Equal(t, []string{"run.start", "run.replaying", "run.resumed", "run.end"},
		w.story(run.KindRunStart, run.KindRunReplaying, run.KindRunResumed, run.KindRunEnd),
		"replaying → running → done")
	s := w.dir.state(t)
	require.Zero(t, s.Total(), "it was paid for elsewhere")
	require.Equal(t, 1, s.Reused)
	require.Equal(t, 1, s.Starts)
}

func TestReplayCallsUnrecordedPasses(t *testing.T) {
	w := newHarness(t, twoPasses)
	branched(w, run.ModeReplay, run.UseRecorded)
	looked := run.Status("")
	w.agent.will(call(2, 1), func(contract.PassResult) (contract.PassResult, error) {
		return contract.PassResult{Unrecorded: true}, nil
	}, after(func() { looked = w.status().Status }))
	w.done()
	require.Len(t, w.agent.inputs, 2)
	require.True(t, w.agent.inputs[0].RecordedOnly)
	require.False(t, w.agent.inputs[1].RecordedOnly)
	require.Equal(t, run.Running, looked, "the recorded part is over before the call")
	require.InDelta(t, 1.0, w.dir.state(t).Total(), 1e-9)
	require.Empty(t, payloads[run.Effect](w, run.KindEffectReused))
}

// TestReplayWithHumanPolicyAsksBeforeEachCall: no call is made before its permission, and none without.
func TestReplayWithHumanPolicyAsksBeforeEachCall(t *testing.T) {
	for action, recorded := range map[string][]string{run.ActionApprove: {""}, run.ActionApply: {"their-run"},
		run.ActionHalt: nil, "": nil} {
		t.Run(action, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			branched(w, run.ModeReplay, run.RequireHuman)
			w.answers(message{"action": action})
			if action == "" { // it expires before the answer
				w.in.Start.Waits = run.Waits{ExpiresMS: 2000, OnExpiry: "continue"}
			}
			_, err := w.execute()
			require.NoError(t, err)
			require.Equal(t, recorded, fields(w.agent.inputs, func(in contract.PassInput) string { return in.RecordedRun }))
			require.Equal(t, map[bool]run.Status{true: run.Halted, false: run.Done}[recorded == nil], w.dir.state(t).Status)
			require.Equal(t, "blocked", payloads[run.Effect](w, run.KindEffectBlocked)[0].Status)
		})
	}
}

func TestForkStartsWithOwnBudget(t *testing.T) {
	w := newHarness(t, twoPasses)
	branched(w, run.ModeFork, "")
	w.done()
	in := w.agent.inputs[0]
	require.Empty(t, in.RecordedRun)
	require.False(t, in.RecordedOnly)
	require.Equal(t, "run-1/g0.002.1.-.1", in.Call)
	s := w.dir.state(t)
	require.InDelta(t, 1.0, s.Total(), 1e-9)
	require.Equal(t, "run-1", s.RunID)
	require.Equal(t, 1, s.Epoch)
	require.Zero(t, s.Generation)
	require.Equal(t, 2, s.Passes.LastSettled)
	require.Empty(t, w.story(run.KindRunReplaying))
}

// TestReplayDoesNotDeliverAgain what the replayed run delivered. Without such a delivery an operator decides.
func TestReplayDoesNotDeliverAgain(t *testing.T) {
	for name, row := range map[string]struct {
		delivered *run.Delivered
		policy    string
		asks      bool
	}{
		"delivered":        {&run.Delivered{Delivered: true, Commit: "theirs"}, run.UseRecorded, false},
		"nothing known":    {nil, run.UseRecorded, true},
		"with an operator": {&run.Delivered{Delivered: true, Commit: "theirs"}, run.RequireHuman, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, reviewed)
			w.in.Start.Source = &run.Source{RunID: "their-run", Mode: run.ModeReplay, Replay: row.policy,
				Delivered: row.delivered}
			w.answering(func(_ int, q run.Question) {
				action := run.ActionApprove
				if q.Kind == run.QuestionDelivery {
					require.Equal(t, "This run is a replay. Deliver its changes?", q.Text)
					action = run.ActionSkip
				}
				w.signal("decide", message{"id": q.ID, "action": action})
			})
			w.done()
			effect := run.Effect{Step: "delivery", Class: run.EffectExternal, Policy: row.policy, Source: "their-run"}
			require.Empty(t, w.trees.delivers)
			done := w.deliveries()
			require.Len(t, done, 1)
			if row.asks {
				effect.Status = "blocked"
				require.Contains(t, payloads[run.Effect](w, run.KindEffectBlocked), effect)
				require.Equal(t, "an operator decided not to deliver", done[0].Message)
				return
			}
			effect.Status, effect.Result = "reused", "theirs"
			require.Contains(t, payloads[run.Effect](w, run.KindEffectReused), effect)
			require.Equal(t, run.DeliveryCompleted{Action: run.ActionSkip, Diff: "the diff", Files: 1,
				Message: "already delivered by the replayed run their-run"}, done[0])
		})
	}
}

// acting is a pipeline whose second step declares the class of its effect.
func acting(class string) string {
	return strings.Replace(twoPasses, "{role: builder}]", "{role: builder, effect: "+class+"}]", 1)
}

func unrecorded(contract.PassResult) (contract.PassResult, error) {
	return contract.PassResult{Unrecorded: true}, nil
}

// TestReplayAsksBeforeUnrecordedAction: no replay executes an external action on its own that the replayed run did not.
func TestReplayAsksBeforeUnrecordedAction(t *testing.T) {
	for policy, before := range map[string][]message{run.UseRecorded: nil,
		run.RequireHuman: {{"action": run.ActionApply}}} {
		t.Run(policy, func(t *testing.T) {
			w := newHarness(t, acting(run.EffectExternal))
			branched(w, run.ModeReplay, policy)
			w.agent.will(call(2, 1), unrecorded)
			w.answers(append(before, message{"action": run.ActionApprove})...)
			w.done()
			require.Equal(t, []bool{true, false},
				fields(w.agent.inputs, func(in contract.PassInput) bool { return in.RecordedOnly }))
			asked := w.asked(run.KindGateRequested)[len(before)]
			require.Equal(t, run.TriggerUnrecorded, asked.Trigger)
			require.Equal(t, []string{"approve", "halt"}, asked.Actions)
			blocked := payloads[run.Effect](w, run.KindEffectBlocked)[len(before)]
			require.Equal(t, run.EffectExternal, blocked.Class)
			require.Equal(t, policy, blocked.Policy)
		})
	}
}

// TestActionIsNotRepeatedWithoutAnOperator: its failed call may have had its effect.
func TestActionIsNotRepeatedWithoutAnOperator(t *testing.T) {
	w := newHarness(t, acting(run.EffectExternal))
	w.agent.will(call(2, 1), goes(transient))
	w.onPause(func() {
		require.Equal(t, []string{call(1, 1), call(2, 1)}, w.agent.ids)
		w.signal("resume", message{})
	})
	w.done()
	require.Equal(t, []string{call(1, 1), call(2, 1), call(2, 2)}, w.agent.ids)
	require.Equal(t, run.PassFailed, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
	starts := payloads[run.PassStart](w, run.KindPassStart)
	require.Equal(t, []string{"", run.EffectExternal, run.EffectExternal},
		[]string{starts[0].Effect, starts[1].Effect, starts[2].Effect})
	require.Equal(t, 1, starts[1].Attempts)
}
