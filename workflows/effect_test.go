package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// acting is a pipeline whose second step declares the class of its effect.
func acting(class string) string {
	return strings.Replace(twoPasses, "{role: builder}]", "{role: builder, effect: "+class+"}]", 1)
}

func unrecorded(contract.PassResult) (contract.PassResult, error) {
	return contract.PassResult{Unrecorded: true}, nil
}

// TestReplayAsksBeforeUnrecordedAction: no replay executes an external action on its own that the replayed run did not.
func TestReplayAsksBeforeUnrecordedAction(t *testing.T) {
	for policy, first := range map[string]string{run.UseRecorded: "", run.RequireHuman: run.ActionApply} {
		for _, action := range []string{run.ActionApprove, run.ActionHalt} {
			t.Run(policy+" "+action, func(t *testing.T) {
				w := newHarness(t, acting(run.EffectExternal))
				branched(w, run.ModeReplay, policy)
				w.agent.will(call(2, 1), unrecorded)
				asked := 0
				w.answering(func(_ int, q run.Question) {
					if asked++; asked == 1 && first != "" {
						require.Equal(t, run.TriggerAction, q.Trigger)
						require.Contains(t, q.Meaning("approve"), "again, with its effect outside the run")
						w.signal("decide", message{"id": q.ID, "action": first})
						return
					}
					require.Equal(t, []string{"approve", "halt"}, q.Actions)
					require.Contains(t, q.Text, "002 builder is an external action")
					require.Equal(t, run.TriggerUnrecorded, q.Trigger)
					require.Equal(t, "execute it in this replay, with its effect outside the run", q.Meaning("approve"))
					for _, in := range w.agent.inputs {
						require.True(t, in.RecordedOnly, "nothing was executed")
					}
					w.signal("decide", message{"id": q.ID, "action": action})
				})
				if action == run.ActionHalt {
					w.ends(run.Halted, "gate.decided")
					require.Len(t, w.agent.inputs, 1)
					return
				}
				w.done()
				require.Len(t, w.agent.inputs, 2)
				require.False(t, w.agent.inputs[1].RecordedOnly)
				blocked := payloads[run.Effect](w, run.KindEffectBlocked)
				require.Equal(t, run.EffectExternal, blocked[len(blocked)-1].Class)
				require.Equal(t, policy, blocked[len(blocked)-1].Policy)
			})
		}
	}
}

func TestReplayReusesRecordedAction(t *testing.T) {
	w := newHarness(t, acting(run.EffectExternal))
	branched(w, run.ModeReplay, run.UseRecorded)
	w.agent.will(call(2, 1), reuse)
	w.done()
	require.Len(t, w.agent.inputs, 1)
	require.Equal(t, run.EffectExternal, payloads[run.Effect](w, run.KindEffectReused)[0].Class)
}

// TestReplayDoesNotAskAboutStepsWithoutEffect has the policy that asks before each other call.
func TestReplayDoesNotAskAboutStepsWithoutEffect(t *testing.T) {
	w := newHarness(t, acting(run.EffectNone))
	branched(w, run.ModeReplay, run.RequireHuman)
	w.done()
	require.Len(t, w.agent.inputs, 1)
	require.Empty(t, payloads[run.Effect](w, run.KindEffectBlocked))
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
