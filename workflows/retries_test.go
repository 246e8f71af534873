package workflows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

func call(pass, try int) string { return fmt.Sprintf("g0.%03d.1.-.%d", pass, try) }

// failing gives the first n calls of pass 1 a failure each.
func failing(t *testing.T, n int, how contract.PassResult) *harness {
	w := newHarness(t, twoPasses)
	for i := range n {
		w.agent.will(call(1, i+1), goes(how))
	}
	return w
}

// awaitFor says that every wait lies between its delay without and with the whole jitter, and under the cap.
func awaitFor(t *testing.T, waits []time.Duration, most time.Duration, bare ...time.Duration) {
	t.Helper()
	require.Len(t, waits, len(bare))
	for i, d := range bare {
		require.GreaterOrEqual(t, waits[i], min(d, most))
		require.LessOrEqual(t, waits[i], min(d+d/5, most))
	}
}

func TestTransientFailureIsRetried(t *testing.T) {
	w := failing(t, 2, transient)
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 2), call(1, 3), call(2, 1)}, w.agent.ids)
	awaitFor(t, w.waits, 2*time.Minute, 5*time.Second, 10*time.Second)
	require.Equal(t, []time.Duration{10 * time.Minute, 10 * time.Minute, 15 * time.Minute, 10 * time.Minute},
		w.agent.times)
	attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Len(t, attempts, 2)
	require.True(t, attempts[0].Judged)
	require.Equal(t, w.waits[0].Milliseconds(), attempts[0].RetryInMS)
	require.InDelta(t, 4, w.dir.state(t).Total(), 1e-9, "failed calls are paid too")
	require.Equal(t, 3, payloads[run.PassEnd](w, run.KindPassEnd)[0].Attempts)
}

func TestThirdTransientFailurePauses(t *testing.T) {
	w := failing(t, 3, transient)
	w.onPause(func() {
		require.Equal(t, []string{call(1, 1), call(1, 2), call(1, 3)}, w.agent.ids)
		w.signal("resume", message{})
	})
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "exit 1")
	require.Len(t, w.waits, 2, "nobody waits for an attempt that is not made")
	require.Equal(t, []string{call(1, 4), call(2, 1)}, w.agent.ids[3:], "attempts begin anew, call ids do not")
}

func TestUnusableReplySettlesPass(t *testing.T) {
	tests := []struct {
		name  string
		how   contract.PassResult
		calls int
	}{
		{"no artifact", noSections, 2},
		{"cut short", cutShort, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := failing(t, tt.calls, tt.how)
			w.done()
			require.Len(t, w.agent.ids, tt.calls+1, "the next pass still runs")
			require.Len(t, w.waits, tt.calls-1)
			ends := payloads[run.PassEnd](w, run.KindPassEnd)
			require.Equal(t, tt.how.Outcome, ends[0].Outcome)
			require.False(t, ends[0].Validation.Passed)
			require.Nil(t, ends[0].Artifact)
			require.Equal(t, "seed", ends[1].Before, "the artifact is as it was")
			require.Empty(t, w.story(run.KindRunPaused))
			require.InDelta(t, float64(tt.calls+1), w.dir.state(t).Total(), 1e-9, "each call counts once")
		})
	}
}

func TestPermanentFailurePausesAtOnce(t *testing.T) {
	w := failing(t, 1, permanent)
	w.onPause(func() {
		require.Equal(t, []string{call(1, 1)}, w.agent.ids)
		w.signal("resume", message{})
	})
	w.done()
	require.Empty(t, w.waits)
	require.Equal(t, []string{"pass.attempt 001", "run.paused", "run.resumed", "pass.end 001", "pass.end 002"},
		w.story(run.KindPassAttempt, run.KindRunPaused, run.KindRunResumed, run.KindPassEnd))
}

func TestFailureWithoutReportHasUnknownCost(t *testing.T) {
	w := newHarness(t, twoPasses)
	silent := func(ok contract.PassResult) (contract.PassResult, error) {
		return contract.PassResult{Outcome: transient.Outcome, Message: "exit 1", ExitCode: 1, StartedAt: ok.StartedAt,
			Spend: run.Spend{Known: run.CostUnknown}}, nil
	}
	w.agent.will(call(1, 1), silent)
	w.agent.will(call(1, 2), silent)
	w.done()
	s := w.dir.state(t)
	require.InDelta(t, 2, s.Total(), 1e-9, "two answers")
	require.Equal(t, 2, s.UnknownCalls())
	require.Equal(t, "≥ $2.00 (2 calls not fully known)", s.CostText())
	require.Equal(t, run.CostAtLeast, s.CostKnown())
}

func TestTimeScaleAppliesToWaitsOnly(t *testing.T) {
	w := failing(t, 1, transient)
	w.in.Options.TimeScale = 0.01
	w.done()
	require.LessOrEqual(t, w.waits[0], 60*time.Millisecond)
	require.GreaterOrEqual(t, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].RetryInMS, int64(5000))
}

func TestSupersededResultsAreCountedOnce(t *testing.T) {
	w := newHarness(t, twoPasses)
	late := func(ls ...contract.SupersededResult) script {
		return func(ok contract.PassResult) (contract.PassResult, error) { ok.Superseded = ls; return ok, nil }
	}
	first := contract.SupersededResult{
		Number: 1, Call: "run-1/g0.000.1.-.1.abc", Spend: run.Spend{USD: 0.5}, Output: &run.Blob{Digest: "late"},
		Envelope: &run.Blob{Digest: "reported"}, Prompt: &run.Blob{Digest: "asked"},
	}
	second := contract.SupersededResult{Number: 2, Call: "run-1/g0.001.1.-.1.abc", Spend: run.Spend{USD: 0.25}}
	w.agent.will(call(1, 1), late(first))
	w.agent.will(call(2, 1), late(first, second))
	r := w.done()
	attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Len(t, attempts, 2)
	for i, want := range []contract.SupersededResult{first, second} {
		require.Equal(t, run.CategorySuperseded, attempts[i].Category)
		require.Equal(t, want.Call, attempts[i].Call)
		require.Equal(t, want.Number, attempts[i].Late)
		require.Equal(t, want.Spend, *attempts[i].Spend)
		require.Equal(t, []*run.Blob{want.Prompt, want.Output, want.Envelope},
			[]*run.Blob{attempts[i].Prompt, attempts[i].Output, attempts[i].Envelope})
	}
	require.InDelta(t, 2.75, r.USD, 1e-9, "two passes and what came late")
	require.Equal(t, []int{0, 1}, []int{w.agent.inputs[0].SupersededSeen, w.agent.inputs[1].SupersededSeen},
		"the next call asks only for what is new")
}

// TestEndedDeliveryIsCountedOnce has a lost delivery noted by its error and by the answer of the next one.
func TestEndedDeliveryIsCountedOnce(t *testing.T) {
	w := newHarness(t, twoPasses)
	note := contract.SupersededResult{
		Number: 1, Ended: 1, Call: "run-1/g0.001.1.-.1.abc", Spend: run.Spend{Known: run.CostUnknown},
	}
	lost := temporal.NewApplicationErrorWithOptions("lost", contract.ErrNoAnswer, temporal.ApplicationErrorOptions{
		Details: []any{run.Spend{}, []contract.SupersededResult{note}},
	})
	w.agent.will(call(1, 1), breaks(lost), func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Superseded = []contract.SupersededResult{note}
		return ok, nil
	})
	w.done()
	attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Len(t, attempts, 2)
	require.Equal(t, []run.Category{run.CategorySuperseded, run.CategoryLost},
		[]run.Category{attempts[0].Category, attempts[1].Category})
	require.Equal(t, "delivery 1 of call run-1/g0.001.1.-.1.abc ended without an answer; its cost is unknown",
		attempts[0].Message)
	require.Equal(t, "≥ $2.00 (1 call not fully known)", w.dir.state(t).CostText())
}

func TestCancelledCallIsCountedOnce(t *testing.T) {
	for name, details := range map[string][]any{
		"note": {run.Spend{}, []contract.SupersededResult{{Number: 1, Ended: 1, Call: "c",
			Spend: run.Spend{Known: run.CostUnknown}}}},
		"cost of an earlier release": {run.Spend{Known: run.CostUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), breaks(temporal.NewNonRetryableApplicationError("reset", contract.ErrForced, nil,
				details...)))
			w.done()
			require.Equal(t, 1, w.dir.state(t).UnknownCalls())
		})
	}
}
