package fsck_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// promotion is a row of promotions.jsonl.
func promotion(t *testing.T, seq int64, result string) string {
	t.Helper()
	payload, err := run.Payload(run.DeliveryCompleted{ID: "p-1", Action: "promote", Target: "t", Result: result})
	require.NoError(t, err)
	phase := "delivery"
	line, err := run.Event{Seq: seq, TS: moment(50), Kind: run.KindDeliveryCompleted, Phase: &phase,
		Payload: payload}.Line()
	require.NoError(t, err)
	return line + "\n"
}

// rowInjuries are rows that no writer of Passbook leaves: of promotions, which do not follow from events, and of
// streams that are ahead of meta.json or written by others.
func rowInjuries() []injury {
	type codes = []fsck.Code
	promoted := func(rows func(*testing.T) string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) { place(t, d, layout.PromotionsFile, rows(t)) }
	}
	text := func(s string) func(*testing.T) string { return func(*testing.T) string { return s } }
	foreign := func(meta string, events ...string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) {
			write(t, d, layout.EventsFile, linesOf(events...))
			write(t, d, layout.MetaFile, meta)
		}
	}
	const gone = `run.interrupted {"reason": "gone"}`
	asking := `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`
	unreadable := codes{fsck.LogRowUnreadable}
	return []injury{
		{"a promotion is not a row", "done", promoted(text("x\n")), unreadable, "", unreadable},
		{"a promotion is another event", "done", promoted(text(linesOf(evDone))), unreadable, "", unreadable},
		{"a promotion has another number", "done",
			promoted(func(t *testing.T) string { return promotion(t, 2, "") }), unreadable, "", unreadable},
		{"a promotion is of another result", "done",
			promoted(func(t *testing.T) string { return promotion(t, 1, "another") }), unreadable, "", unreadable},
		{"a promotion was cut", "done", promoted(text(`{"seq`)), unreadable, "", unreadable},
		{"meta.json has an empty status", "paused",
			func(t *testing.T, d projector.Dir) { setKey(t, d, "status", `""`) }, codes{fsck.StatusMismatch}, "status", nil},
		{"a line behind those in meta.json is not an event", "paused", func(t *testing.T, d projector.Dir) {
			appendTo(t, d, layout.EventsFile, "x\n")
		}, codes{fsck.StreamLineUnreadable, fsck.DerivedFileBehind}, layout.EventsFile, nil},
		{"the interruption is in another program's events only", "reference, asking",
			foreign(`{"status": "running"}`, evStart, gone), codes{fsck.InterruptedEventWithoutInterruptedMeta},
			"status interrupted_at", nil},
		{"the same, and a hand-off is undecided", "reference, asking", foreign(asking, evStart, evAsk, gone),
			codes{fsck.InterruptedEventWithoutInterruptedMeta, fsck.InterruptedWithActiveHandoff,
				fsck.ActiveHandoffWithoutDecision}, "operator",
			codes{fsck.InterruptedEventWithoutInterruptedMeta, fsck.InterruptedWithActiveHandoff,
				fsck.ActiveHandoffWithoutDecision}},
		{"another program asks again and again", "reference, asking",
			foreign(asking, evStart, evAsk, evAsk2, evAsk, evAsk2, evAsk, evAsk2, evAsk),
			codes{fsck.ActiveHandoffWithoutDecision, fsck.StreamOrderUnusual}, "",
			codes{fsck.ActiveHandoffWithoutDecision, fsck.StreamOrderUnusual}},
	}
}

// TestPromotionOfTheResultIsNotAFinding: the row that a promotion writes is right.
func TestPromotionOfTheResultIsNotAFinding(t *testing.T) {
	s, d := ended(t, run.Done, 0)
	require.NotNil(t, s.state.Artifact)
	place(t, d, layout.PromotionsFile, promotion(t, 1, s.state.Artifact.Digest)+promotion(t, 2, s.state.Artifact.Digest))
	require.Empty(t, check(t, d).Issues)
}

// TestContinueReportsTheEnd of the last epoch, which epoch is next, and the checkpoints of the journal.
func TestContinueReportsTheEnd(t *testing.T) {
	s, d := ended(t, run.Failed, 0)
	c, err := fsck.Continue(t.Context(), d.Dir, s.blobs, nil)
	require.NoError(t, err)
	require.True(t, c.Ended)
	require.Equal(t, 2, c.Epoch, "its owner was epoch 1")
	names, err := c.Checkpoints()
	require.NoError(t, err)
	_, err = projector.LoadCheckpoint(t.Context(), names, "run-1", "cp-S1")
	require.NoError(t, err)

	n := len(s.lines)
	s.add(run.KindRunResumed, run.RunResumed{Epoch: 4, From: run.Failed})
	project(t, d, s, batch(s.lines, n+1, n+1))
	c, err = fsck.Continue(t.Context(), d.Dir, s.blobs, nil)
	require.NoError(t, err)
	require.False(t, c.Ended, "the next epoch has begun")
	require.Equal(t, 5, c.Epoch)

	require.NoError(t, os.Remove(d.Path(layout.EventsFile)))
	c, err = fsck.Continue(t.Context(), d.Dir, s.blobs, s.lines)
	require.NoError(t, err)
	require.Empty(t, c.Broken, "a lost file has no damaged line")
	require.Equal(t, s.state, c.State)
}

// TestContinueNamesDamagedMeta: without meta.json and the end of the journal, state.json shows that lines are lost.
func TestContinueNamesDamagedMeta(t *testing.T) {
	for code, meta := range map[fsck.Code]string{fsck.MetaMissing: "", fsck.MetaUnreadable: "{"} {
		s, d := ended(t, run.Failed, 1)
		onDisk(t, d, s.lines[:len(s.lines)-1])
		if write(t, d, layout.MetaFile, meta); meta == "" {
			remove(t, d, layout.MetaFile)
		}
		_, err := fsck.Continue(t.Context(), d.Dir, s.blobs, nil)
		var damaged *fsck.DamagedError
		require.ErrorAs(t, err, &damaged)
		require.Equal(t, code, damaged.Code)
		require.Contains(t, damaged.Why, "and no readable meta.json records what was written")
		require.Equal(t, "starter check "+d.Root+" lists every finding; starter repair-state "+d.Root+
			" --apply repairs what follows from the events", damaged.Next)
	}
}
