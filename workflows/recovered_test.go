package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

func TestRecoveredProjectionErrorIsJournaled(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){2: func() {
		w.dir.troubles = []contract.RecoveredError{{Category: "file-io", Message: "read-only file system", Attempt: 4},
			{
				Category: "state-corruption", Message: "state.json is damaged",
			}}
	}}
	w.done()
	require.Equal(t, []run.ErrorNoted{
		{Category: "file-io", Message: "read-only file system", Recovered: true, Attempt: 4},
		{Category: "state-corruption", Message: "state.json is damaged", Recovered: true},
	}, payloads[run.ErrorNoted](w, run.KindErrorNoted))
	require.Equal(t, run.CategoryStateCorruption, w.status().Problem.Category)
}

func TestNothingIsJournaledAfterEnd(t *testing.T) {
	whole := newHarness(t, twoPasses)
	whole.done()
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){
		len(whole.dir.batches): func() {
			w.dir.troubles = []contract.RecoveredError{{Category: "file-io",
				Message: "late"}}
		},
	}
	w.done()
	require.Empty(t, w.dir.troubles, "it was told")
	events := w.dir.events(t)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
}

func TestScreenshotAttemptsAreJournaled(t *testing.T) {
	w := newHarness(t, aLoop)
	w.shots.fails = 2
	w.done()
	attempts := payloads[run.ShotsAttempt](w, run.KindShotsAttempt)
	require.Len(t, attempts, 2)
	for i, want := range []int64{5000, 10000} {
		require.Equal(t, run.ShotsAttempt{
			Step: attempts[0].Step, Round: 1, Dir: "cycle-1", Attempt: i + 1, Message: "the browser died",
			DurationMS: 10,
			RetryInMS:  want,
		}, attempts[i])
	}
	require.Equal(t, 3, payloads[run.Screenshots](w, run.KindScreenshots)[0].Attempts)
	require.Contains(t, w.waits, 10*time.Second)
}

func TestPermanentlyLostPassHasError(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), times(20, breaks(errors.New("the store is away")))...)
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	all := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Equal(t, run.CategoryUnknown, all[len(all)-1].Category)
	require.Contains(t, all[len(all)-1].Message, "001 builder was lost 20 times: the store is away")
	require.Equal(t, run.CategoryUnknown, payloads[run.RunPaused](w, run.KindRunPaused)[0].Failed.Category)
}
