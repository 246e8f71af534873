package fsck_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// body is a directory to be hurt, as it is written and as it looks to a check before.
type body struct {
	name  string
	write func(t *testing.T) (projector.Dir, fakeBlobs)
	codes []fsck.Code // of the healthy directory
}

func bodies() []body { return slices.Concat(ownBodies(), projectBodies(), foreignBodies()) }

func ownBodies() []body {
	info := []fsck.Code{fsck.ActiveHandoffWithoutDecision}
	return []body{
		{"done", func(t *testing.T) (projector.Dir, fakeBlobs) { s := whole(t); return written(t, s), s.blobs }, nil},
		{"paused", ranWith(func(s *story) {
			s.twoPasses()
			s.add(run.KindRunPaused,
				run.RunPaused{Reason: run.UserRequested})
		}), nil},
		{"running", ranWith(func(s *story) { s.twoPasses(); s.begin(about(3), 1) }), nil},
		{"asking", ranWith(func(s *story) { s.asks() }), info},
		{"halted", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: "halt",
				DecidedBy: "somebody"})
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Halted, Reason: "phase_handoff_halt"})
		}), nil},
		{"failed", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindRunEnd,
				run.RunEnd{Status: run.Failed, Reason: "broken"})
		}), info},
		{"with turns", ranWith(func(s *story) { s.worksOn(""); s.turn(1, "ok", "tree 1"); s.turn(2, "ok", "tree 2") }),
			nil},
		{"interrupted", ranWith(func(s *story) {
			s.asks()
			s.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: moment(99)})
		}), []fsck.Code{fsck.InterruptedWithActiveHandoff, fsck.ActiveHandoffWithoutDecision}},
		{"stored", stored(nil), nil},
		{"damaged and stored", stored(func(s *story) run.JournalDamage {
			return run.JournalDamage{File: layout.EventsFile, Line: 3, Expected: digestOf(s.lines[2]),
				Found: digestOf(changed(s.lines, 3)[2])}
		}), []fsck.Code{fsck.ChainMismatch, fsck.DamageRecorded}},
		{"reference, done", reference("feature_done"), nil},
		{"reference, asked twice", reference("planning_retry_then_continue"), nil},
		{"reference, asking",
			madeUp(askedLines, `{"task": "t", "status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`),
			info},
		{"reference, failed",
			madeUp(askedLines+
				`{"seq": 3, "ts": "2026-01-02T03:04:07.000", "kind": "run.end", "phase": null, "payload": {"status": "failed"}}`+
				"\n",
				`{"status": "failed"}`), []fsck.Code{fsck.HandoffEventWithoutMetaHandoff}},
	}
}

const askedLines = `{"seq": 1, "ts": "2026-01-02T03:04:05.000", "kind": "run.start", "phase": null, "payload": {"task": "t"}}
{"seq": 2, "ts": "2026-01-02T03:04:06.000", "kind": "phase.handoff_requested", "phase": null, "payload": {"handoff_id": "h-1", "phase": "plan"}}
`

func (s *story) twoPasses() {
	s.start()
	s.pass(1)
	s.pass(2)
}

func (s *story) asks() {
	s.twoPasses()
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "write",
		Type: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved})
}

func ranWith(send func(*story)) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		s := newStory(t)
		send(s)
		s.send()
		return written(t, s), s.blobs
	}
}

// stored is a paused run whose journal is in the store up to a few lines before its end. With damage it goes on with a
// line that was changed, and ends.
func stored(damage func(*story) run.JournalDamage) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		s := newStory(t)
		s.twoPasses()
		s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
		s.send()
		d := written(t, s)
		n := len(s.lines) - 2
		_, err := d.Seal(t.Context(), s.blobs, projector.Sealing{RunID: "run-1", First: 1, Tail: tailAt(s.lines, n)})
		require.NoError(t, err)
		if damage == nil {
			return d, s.blobs
		}
		hurt := changed(s.lines, 3)
		s.add(run.KindJournalDamaged, damage(s))
		s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled})
		onDisk(t, d, hurt)
		b := batch(s.lines, len(hurt)+1, len(s.lines))
		b.Verified = true
		p, err := d.Project(t.Context(), s.blobs, b)
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
		return d, s.blobs
	}
}

func digestOf(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:])
}

func reference(name string) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		dir := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "rundir", "testdata", "reference", name))))
		return projector.At(dir), nil
	}
}

// madeUp is a directory in the reference's format with these files: events.jsonl, meta.json, and further names and
// texts.
func madeUp(events, meta string, more ...string) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		d := projector.At(t.TempDir())
		write(t, d, layout.EventsFile, events)
		write(t, d, layout.MetaFile, meta)
		for i := 0; i < len(more); i += 2 {
			write(t, d, more[i], more[i+1])
		}
		return d, nil
	}
}
