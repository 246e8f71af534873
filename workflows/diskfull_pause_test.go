package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

func TestFullDiskPausesRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	// what the first pass came to, and the start of the second
	w.dir.before = map[int]func(){2: func() { w.dir.full = 4 }}
	asked, during := false, workflows.HeldAnswer{}
	w.dir.before[5] = func() { during = query[workflows.HeldAnswer](w, workflows.QueryHeld) }
	w.env.RegisterDelayedCallback(func() {
		asked = true
		s := w.status()
		require.Equal(t, run.Paused, s.Status, "everybody who asks is told at once")
		require.Equal(t, run.DiskFull, s.Reason)
		require.Equal(t, workflows.HeldAnswer{
			Held: true, Message: "no space left on device", RetryAt: run.Time(startTime.Add(45 * time.Second)),
		}, query[workflows.HeldAnswer](w, workflows.QueryHeld))
		require.Len(t, w.agent.ids, 1, "nothing is called on a full disk")
		require.Len(t, w.dir.lines, 3, "the pause itself cannot be written down")
	}, 20*time.Second)
	w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, 2*time.Minute)
	w.done()
	require.True(t, asked)
	require.True(t, during.Held, "it is held up while it retries, too")
	require.Zero(t, query[workflows.HeldAnswer](w, workflows.QueryHeld))
	require.Equal(t, append(slices.Repeat([]string{"Project: no room"}, 4), "Project 4-7 written"), w.trace[3:8])
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.DiskFull, paused[0].Reason)
	require.Contains(t, paused[0].Detail, "no space left")
	require.Equal(t, []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}, w.waits[:3])
	require.Equal(t, []string{call(1, 1), call(2, 1)}, w.agent.ids, "no call was made twice")
}

func TestEveryResumeRetriesFullDiskAtOnce(t *testing.T) {
	for _, row := range []struct {
		name   string
		full   int
		during map[int]bool // batches whose try is under way when a resume comes
		at     []time.Duration
		within time.Duration
	}{
		{name: "one", full: 1, at: []time.Duration{time.Second}, within: 10 * time.Second},
		{name: "a second one", full: 2, at: []time.Duration{time.Second, 2 * time.Second}, within: 10 * time.Second},
		{
			name: "a third one", full: 3, at: []time.Duration{time.Second, 2 * time.Second, 3 * time.Second},
			within: 10 * time.Second,
		},
		{name: "during a try", full: 2, during: map[int]bool{3: true}, within: 25 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.in.Options.Turns = false
			w.dir.before = map[int]func(){2: func() { w.dir.full = row.full }}
			for n := range row.during {
				w.dir.before[n] = func() { w.signal("resume", nil) }
			}
			for _, at := range row.at {
				w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, at)
			}
			began := w.env.Now()
			w.done()
			require.Less(t, w.env.Now().Sub(began), row.within)
			require.Len(t, payloads[run.RunResumed](w, run.KindRunResumed), 1)
			require.Equal(t, []string{call(1, 1), call(2, 1)}, w.agent.ids, "no call was made twice")
		})
	}
}

func TestCallIsRepeatedAfterFullDisk(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), breaks(errFull))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, run.DiskFull, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
	require.Equal(t, run.CategoryFileIO, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Category)
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids)
	require.Nil(t, w.dir.state(t).Failure, "a full disk is not the pass's failure")
}

func TestPausedActivityPausesRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), breaks(temporal.NewNonRetryableApplicationError("activity paused", contract.ErrPaused,
		nil, run.Spend{Known: run.CostUnknown})))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, run.UserRequested, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
	require.Equal(t, run.CategoryCancelled, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Category)
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids)
	require.Equal(t, 1, w.dir.state(t).UnknownCalls(), "the ended call cost something")
}

func TestResetActivityIsRepeated(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), breaks(temporal.NewNonRetryableApplicationError("activity reset", contract.ErrForced,
		nil)))
	w.done()
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids)
}
