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
