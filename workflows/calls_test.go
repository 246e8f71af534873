package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func call(pass, try int) string { return fmt.Sprintf("g0.%03d.1.-.%d", pass, try) }

// failing is a harness in which the first n calls of pass 1 fail.
func failing(t *testing.T, n int, how contract.PassResult) *harness {
	w := newHarness(t, twoPasses)
	for i := range n {
		w.agent.will(call(1, i+1), goes(how))
	}
	return w
}

func TestTransientFailureIsRetried(t *testing.T) {
	w := failing(t, 2, transient)
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 2), call(1, 3), call(2, 1)}, w.agent.ids)
	require.Len(t, w.waits, 2)
	for i, d := range []time.Duration{5 * time.Second, 10 * time.Second} {
		require.GreaterOrEqual(t, w.waits[i], d)
		require.LessOrEqual(t, w.waits[i], d+d/5, "with the whole jitter")
	}
	require.Equal(t, []time.Duration{10 * time.Minute, 10 * time.Minute, 15 * time.Minute, 10 * time.Minute},
		w.agent.times)
	attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Len(t, attempts, 2)
	require.True(t, attempts[0].Judged)
	require.Equal(t, w.waits[0].Milliseconds(), attempts[0].RetryInMS)
	require.InDelta(t, 4, w.dir.state(t).Total(), 1e-9, "failed calls are paid too")
	require.Equal(t, 3, payloads[run.PassEnd](w, run.KindPassEnd)[0].Attempts)
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
			tt.how.Output = &run.Blob{Digest: "half a page"}
			w := failing(t, tt.calls, tt.how)
			w.done()
			require.Len(t, w.agent.ids, tt.calls+1, "the next pass still runs")
			require.Len(t, w.waits, tt.calls-1)
			ends := payloads[run.PassEnd](w, run.KindPassEnd)
			require.Equal(t, tt.how.Outcome, ends[0].Outcome)
			require.False(t, ends[0].Validation.Passed)
			require.Nil(t, ends[0].Artifact)
			require.True(t, ends[0].Attempted)
			require.False(t, ends[1].Attempted)
			require.Equal(t, "run-1/"+call(1, tt.calls), ends[0].Call)
			require.Equal(t, "seed", ends[1].Before, "the artifact is as it was")
			require.Empty(t, w.story(run.KindRunPaused))
			require.InDelta(t, float64(tt.calls+1), w.dir.state(t).Total(), 1e-9, "each call counts once")
		})
	}
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

// TestTurnsWriteWhatPrecedesTheCall: with and without turns, one projection for each call precedes it.
func TestTurnsWriteWhatPrecedesTheCall(t *testing.T) {
	for turns, want := range map[bool]int32{true: 2, false: 0} {
		t.Run(fmt.Sprint(turns), func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.in.Options.Turns = turns
			r := w.done()
			require.Equal(t, want, w.turns.Load())
			require.Equal(t, []string{
				"Open", "Project 1-3 written", "RunPass g0.001.1.-.1", "Project 4-6 written", "RunPass g0.002.1.-.1",
				"Project 7-11 written", "Seal 1-11",
			}, w.trace)
			require.Equal(t, []string{
				"run.start", "phase.start", "pass.start 001", "pass.end 001", "artifact.updated 001", "pass.start 002",
				"pass.end 002", "artifact.updated 002", "phase.end", "checkpoint.created cp-built", "run.end",
			}, w.bare())
			require.Equal(t, contract.Result{RunID: "run-1", Status: run.Done, Artifact: "page of run-1/g0.002.1.-.1", USD: 2,
				Tail: w.dir.tail(), Head: "segment-11"}, r)
			starts := payloads[run.PassStart](w, run.KindPassStart)
			require.Equal(t, "seed", starts[0].Before)
			require.Equal(t, "page of run-1/g0.001.1.-.1", starts[1].Before)
		})
	}
}

// A message during a turn is written at once, with the events of the turn, which are on disk.
func TestMessageDuringATurn(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.journaled("budget", message{"usd": 50}, run.KindBudgetRaised) }))
	w.done()
	require.Equal(t, []string{
		"Open", "Project 1-3 written", "RunPass g0.001.1.-.1", "Project 1-4 written", "Project 5-7 written",
		"RunPass g0.002.1.-.1", "Project 8-12 written", "Seal 1-12",
	}, w.trace)
}

// What a turn does not write is written without it, before the call.
func TestTurnWithoutWriteMakesNoCall(t *testing.T) {
	for name, row := range map[string]struct {
		happens func(w *harness)
		trace   []string // after the first call
	}{
		"full disk": {func(w *harness) { w.dir.full = 1 }, []string{
			"Project: disk full", "Project 4-6 written", "RunPass g0.002.1.-.1",
		}},
		"lost directory": {func(w *harness) { w.dir.lose() }, []string{
			"Project 4-6 behind", "Project 4-6 behind", "Rebuild", "Project 4-7 written", "RunPass g0.002.1.-.1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.dir.before = map[int]func(){2: func() { row.happens(w) }}
			w.done()
			require.Equal(t, 1, w.agent.calls[call(2, 1)], "made once")
			require.Equal(t, row.trace, w.trace[3:3+len(row.trace)])
			require.Equal(t, run.Done, w.dir.state(t).Status)
			require.EqualValues(t, 2, w.turns.Load())
			if noted := payloads[run.ErrorNoted](w, run.KindErrorNoted); name == "lost directory" {
				require.Len(t, noted, 1)
				require.Equal(t, run.CategoryStateCorruption, noted[0].Category)
				require.True(t, noted[0].Recovered)
			}
		})
	}
}

// otherLine is an event that this execution did not write.
func otherLine(w *harness) string {
	raw, err := run.Payload(run.ErrorNoted{Category: run.CategoryUnknown, Message: "of another program"})
	require.NoError(w.t, err)
	last := w.dir.events(w.t)[len(w.dir.lines)-1]
	line, err := run.Event{Seq: last.Seq + 1, TS: last.TS, Kind: run.KindErrorNoted, Phase: last.Phase,
		Payload: raw}.Line()
	require.NoError(w.t, err)
	return line
}

// A lost turn may have written its events: they are written once more, then the same call is delivered without them.
func TestLostTurn(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), breaks(temporal.NewHeartbeatTimeoutError()))
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids)
	require.Equal(t, []string{
		"Open", "Project 1-3 written", "RunPass g0.001.1.-.1", "Project 1-4 written", "RunPass g0.001.1.-.1",
		"Project 5-7 written", "RunPass g0.002.1.-.1",
	}, w.trace[:7])
}

// A turn that no worker takes soon would delay the journal.
func TestTurnWaitsOnlyBriefly(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), breaks(temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)))
	w.done()
	require.Equal(t, []string{"RunPass g0.001.1.-.1", "Project 1-3 written", "RunPass g0.001.1.-.1"}, w.trace[2:5])
	require.Empty(t, w.story(run.KindPassAttempt), "nothing was lost")
}

// A notice of an event is sent before the call that follows it, which may take hours.
func TestNoticesDoNotWaitForATurn(t *testing.T) {
	w := newHarness(t, strings.Replace(fourPasses, "usd: 3", "usd: 6", 1)+"notify: [{run: [bell], on: [budget]}]\n")
	told := make(chan struct{})
	w.received.at = func(contract.NotifyInput) { close(told) }
	w.agent.will(call(4, 1), after(func() { <-told }))
	w.done()
	require.Equal(t, []string{"budget running"}, w.received.events(0))
	require.EqualValues(t, 3, w.turns.Load(), "the warning was written alone")
}
