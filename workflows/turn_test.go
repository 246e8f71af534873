package workflows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

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
			require.Equal(t, workflows.Result{RunID: "run-1", Status: run.Done, Artifact: "page of run-1/g0.002.1.-.1", USD: 2,
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
			"Project: no room", "Project 4-6 written", "RunPass g0.002.1.-.1",
		}},
		"lost directory": {func(w *harness) { w.dir.lose() }, []string{
			"Project 4-6 gap", "Project 4-6 gap", "Rebuild", "Project 4-7 written", "RunPass g0.002.1.-.1",
		}},
		"events of others": {func(w *harness) { w.dir.intrude(otherLine(w)) }, []string{
			"Project 4-6 diverged", "Project 4-6 diverged", "Seal 1-4", "Project 5-8 written", "RunPass g0.002.1.-.1",
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

// A lost turn may have written its events: they are written again, then the same call is delivered without them.
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

// Members of a group begin together: one projection writes all their starts.
func TestGroupsTakeNoTurn(t *testing.T) {
	w := newHarness(t, aGroup)
	w.done()
	require.EqualValues(t, 1, w.turns.Load(), "the reader")
}

// A receiver of notices hears of an event before the call that follows it, which may take hours.
func TestNoticesDoNotWaitForATurn(t *testing.T) {
	w := newHarness(t, strings.Replace(fourPasses, "usd: 3", "usd: 6", 1)+"notify: [{run: [bell], on: [budget]}]\n")
	told := make(chan struct{})
	w.received.at = func(contract.NotifyInput) { close(told) }
	w.agent.will(call(4, 1), after(func() { <-told }))
	w.done()
	require.Equal(t, []string{"budget running"}, w.received.events(0))
	require.EqualValues(t, 3, w.turns.Load(), "the warning was written alone")
}
