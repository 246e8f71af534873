package workflows_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
)

func TestLostDirectoryIsRebuilt(t *testing.T) {
	whole := newHarness(t, twoPasses)
	whole.done()
	w := newHarness(t, twoPasses)
	w.in.Options.Turns = false
	w.dir.before = map[int]func(){2: w.dir.lose}
	w.done()
	require.Equal(t, []string{"Project 4-6 gap", "Rebuild", "Project 4-7 written"}, w.trace[3:6])
	require.Equal(t, whole.story(roundKinds...), w.story(roundKinds...))
	require.Len(t, w.dir.lines, len(whole.dir.lines)+1)
	noted := payloads[run.ErrorNoted](w, run.KindErrorNoted)
	require.Len(t, noted, 1)
	require.Equal(t, run.CategoryStateCorruption, noted[0].Category)
	require.True(t, noted[0].Recovered)
}

func TestRepeatedlyLostDirectoryFailsRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){}
	for n := 2; n < 9; n++ {
		w.dir.before[n] = w.dir.lose
	}
	_, err := w.execute()
	require.ErrorContains(t, err, "it lost its events again after 3 rebuilds")
	require.Equal(t, []string{"Project 4-6 gap", "Rebuild", "Project 4-7 gap", "Rebuild", "Project 4-8 gap", "Rebuild",
		"Project 4-9 gap", "Project 4-10 gap"}, w.trace[4:12], "the end is written without a fourth rebuild first")
}

func TestJournalRebasesAfterDivergedLines(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.in.Options.Turns = false
	stranger := func(seq int) string {
		return fmt.Sprintf(`{"seq":%d,"ts":"2026-01-02T03:04:05.000Z","kind":"note","phase":null,"payload":{}}`, seq)
	}
	w.dir.before = map[int]func(){2: func() { w.dir.intrude(stranger(4)); w.dir.intrude(stranger(5)) }}
	w.done()

	require.Equal(t, []string{"Project 4-6 diverged", "Seal 1-5", "Project 6-9 written"}, w.trace[3:6])
	events := w.dir.events(t)
	require.Equal(t, stranger(4), w.dir.lines[3], "nothing is cut")
	require.Equal(t, run.KindRunReverted, events[5].Kind)
	require.Equal(t, run.KindPassEnd, events[6].Kind)
	reverted := payloads[run.RunReverted](w, run.KindRunReverted)[0]
	require.Equal(t, run.Range{First: 4, Last: 5}, reverted.Abandoned)
	require.EqualValues(t, 3, reverted.To)
	require.EqualValues(t, 3, reverted.State.Seq)
	require.Equal(t, run.Done, w.dir.state(t).Status)
	require.InDelta(t, 2, w.dir.state(t).Total(), 1e-9)
	require.Equal(t, "segment-5", w.dir.batches[2].Head)
}

func TestStaleEpochFails(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){2: func() { w.dir.epoch = 2 }}
	_, err := w.execute()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, "Stale", app.Type())
	require.Len(t, w.dir.lines, 3, "nothing more is written")
	require.Equal(t, []string{call(1, 1)}, w.agent.ids)
}

func TestResumeAdoptsOperatorEdits(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.edited = &run.Blob{Digest: "edited"}
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	updates := payloads[run.ArtifactUpdated](w, run.KindArtifactUpdated)
	require.Equal(t, "edited", updates[1].Cause)
	require.Equal(t, "edited", payloads[run.PassStart](w, run.KindPassStart)[1].Before)
}

// TestRestoredArtifactIsJournaled: an artifact that was missing after a pause is as it was.
func TestRestoredArtifactIsJournaled(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { w.dir.restored = true; w.signal("resume", nil) })
	w.done()
	require.Equal(t, run.ArtifactUpdated{Artifact: run.Blob{Digest: "page of run-1/" + call(1, 1)}, Cause: "restored"},
		payloads[run.ArtifactUpdated](w, run.KindArtifactUpdated)[1])
}

func TestLostDirectoryIsRebuiltBeforeArchiving(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.shorter = true
	w.done()
	require.Contains(t, w.trace, "Rebuild")
	require.Equal(t, run.Done, w.dir.state(t).Status)
}
