package fsck_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// changed is a journal with another byte in one line, from 1.
func changed(lines []string, line int) []string {
	out := slices.Clone(lines)
	out[line-1] = strings.Replace(out[line-1], "03:04", "03:05", 1)
	return out
}

func onDisk(t *testing.T, d projector.Dir, lines []string) {
	t.Helper()
	write(t, d, layout.EventsFile, strings.Join(lines, "\n")+"\n")
}

// knows is a history that holds the whole journal.
func knows(lines []string) journal.Truth {
	return func(context.Context) ([]string, error) { return lines, nil }
}

func tailAt(lines []string, n int) run.Tail {
	return run.Tail{Seq: int64(n), Chain: run.Chain("").Over(lines[:n])}
}

// TestSealStoresWhatWasWritten whatever became of the directory, and of the segments before. Damage is named once, and
// is not an error.
func TestSealStoresWhatWasWritten(t *testing.T) {
	rows := []struct {
		name  string
		hurt  func(t *testing.T, s *story, d projector.Dir, head string)
		truth bool
		named run.JournalDamage // File and Line; empty: none
		last  int64
	}{
		{name: "nothing is wrong", hurt: func(*testing.T, *story, projector.Dir, string) {}, last: 20},
		{name: "a stored line was changed", hurt: func(t *testing.T, s *story, d projector.Dir, _ string) {
			onDisk(t, d,
				changed(s.lines, 3))
		},
			named: run.JournalDamage{File: layout.EventsFile, Line: 3}, last: 20},
		{name: "a line was changed that history knows",
			hurt:  func(t *testing.T, s *story, d projector.Dir, _ string) { onDisk(t, d, changed(s.lines, 15)) },
			truth: true, named: run.JournalDamage{File: layout.EventsFile, Line: 15}, last: 20},
		{name: "a line was changed that nothing knows",
			hurt:  func(t *testing.T, s *story, d projector.Dir, _ string) { onDisk(t, d, changed(s.lines, 15)) },
			named: run.JournalDamage{File: layout.EventsFile}, last: 10},
		{name: "a segment is missing",
			hurt:  func(_ *testing.T, s *story, _ projector.Dir, head string) { delete(s.blobs, head) },
			named: run.JournalDamage{File: "segment"}, last: 20},
		{name: "a segment was changed",
			hurt:  func(_ *testing.T, s *story, _ projector.Dir, head string) { s.blobs[head] = s.blobs[head][:100] },
			named: run.JournalDamage{File: "segment"}, last: 20},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := whole(t)
			d := written(t, s)
			first, err := d.Seal(t.Context(), s.blobs,
				projector.Sealing{RunID: "run-1", First: 1, Tail: tailAt(s.lines, 10)})
			require.NoError(t, err)
			r.hurt(t, s, d, first.Head)
			ask := projector.Sealing{RunID: "run-1", Head: first.Head, First: 11, Tail: tailAt(s.lines, 20)}
			if r.truth {
				ask.Truth = knows(s.lines)
			}
			got, err := d.Seal(t.Context(), s.blobs, ask)
			require.NoError(t, err, "trying again would find it again")
			require.Equal(t, r.last, got.Last)
			if r.named.File == "" {
				require.Empty(t, got.Damage)
			} else {
				require.Len(t, got.Damage, 1)
				file, _, _ := strings.Cut(got.Damage[0].File, " ")
				require.Equal(t, r.named, run.JournalDamage{File: file, Line: got.Damage[0].Line})
				require.NotEqual(t, got.Damage[0].Expected, got.Damage[0].Found)
			}
			stored, err := journal.Segments(t.Context(), s.blobs, got.Head)
			require.NoError(t, err)
			require.Equal(t, s.lines[:r.last], stored, "the store holds what was written")
		})
	}
}

// resting is a run that was paused, and the batch with which it goes on.
func resting(t *testing.T) (*story, projector.Dir, projector.Batch) {
	t.Helper()
	s := newStory(t)
	s.twoPasses()
	s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	s.send()
	d := written(t, s)
	s.add(run.KindRunResumed, run.RunResumed{Epoch: 1, From: run.Paused})
	return s, d, batch(s.lines, len(s.lines), len(s.lines))
}

// TestProjectionReportsDamage before a paused run continues: nothing is written until the journal records it.
func TestProjectionReportsDamage(t *testing.T) {
	s, d, b := resting(t)
	onDisk(t, d, changed(s.lines[:len(s.lines)-1], 3))
	before := look(t, d)
	b.Truth = knows(s.lines)
	p, err := d.Project(t.Context(), s.blobs, b)
	require.NoError(t, err)
	require.Equal(t, run.ProjectionDamaged, p.Outcome)
	require.Len(t, p.Damage, 1)
	require.Equal(t, layout.EventsFile, p.Damage[0].File)
	require.EqualValues(t, 3, p.Damage[0].Line)
	require.Equal(t, before, look(t, d))

	b.Verified = true
	for range 2 { // the second is a delivery after a lost answer
		p, err = d.Project(t.Context(), s.blobs, b)
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
		require.Equal(t, tailAt(s.lines, len(s.lines)), p.Tail)
	}
}

// TestProjectionReadsSegmentsAfterPause, so that a lost one is known before the run ends.
func TestProjectionReadsSegmentsAfterPause(t *testing.T) {
	s, d, b := resting(t)
	first, err := d.Seal(t.Context(), s.blobs, projector.Sealing{RunID: "run-1", First: 1, Tail: tailAt(s.lines, 5)})
	require.NoError(t, err)
	delete(s.blobs, first.Head)
	b.Head = first.Head
	p, err := d.Project(t.Context(), s.blobs, b)
	require.NoError(t, err)
	require.Equal(t, run.ProjectionDamaged, p.Outcome)
	require.Equal(t, "segment "+first.Head, p.Damage[0].File)
}

// TestRestore writes events.jsonl as it was, byte for byte, names the first damaged line, and keeps what it has found.
func TestRestore(t *testing.T) {
	rows := []struct {
		name string
		hurt func(lines []string) []string
		line int64
		kept bool
	}{
		{"a line was removed", func(l []string) []string { return slices.Delete(slices.Clone(l), 3, 4) }, 4, true},
		{"a line was changed", func(l []string) []string { return changed(l, 4) }, 4, true},
		{"the end was cut off", func(l []string) []string { return l[:len(l)-2] }, 0, false},
		{"all lines are lost", func([]string) []string { return nil }, 0, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := whole(t)
			d := written(t, s)
			want := look(t, d)
			hurt := r.hurt(s.lines)
			if hurt == nil {
				remove(t, d, layout.EventsFile)
			} else {
				onDisk(t, d, hurt)
			}
			found := look(t, d)[layout.EventsFile]
			got, err := d.Restore(t.Context(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
			require.NoError(t, err)
			require.Equal(t, tailAt(s.lines, len(s.lines)), got.Tail)
			now := look(t, d)
			for name, text := range want {
				require.Equal(t, text, now[name], name)
			}
			switch {
			case hurt == nil:
				require.Empty(t, got.Damage, "a lost directory has no damaged line")
			case r.line == 0:
				require.EqualValues(t, len(hurt)+1, got.Damage[0].Line)
				require.Equal(t, run.Missing, got.Damage[0].Found)
			default:
				require.Equal(t, r.line, got.Damage[0].Line)
			}
			for _, dm := range got.Damage {
				require.True(t, dm.Repaired)
			}
			if r.kept {
				require.Equal(t, found, now[filepath.FromSlash(got.Damage[0].Kept)])
			}
			again, err := d.Restore(t.Context(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
			require.NoError(t, err)
			require.Empty(t, again.Damage, "a second one finds nothing")
			require.Equal(t, now, look(t, d))
		})
	}
}

// TestRestoreLeavesALongerDirectoryAlone: what another execution has written behind it is not damage.
func TestRestoreLeavesALongerDirectoryAlone(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	other := changed(s.lines, 2)
	before := look(t, d)
	_, err := d.Restore(t.Context(), s.blobs, projector.Source{Claim: claim(),
		Batches: []projector.Batch{batch(other, 1, 5)}})
	require.ErrorContains(t, err, "event 2 of")
	require.Equal(t, before, look(t, d))
}

// TestDamageIsNamedUntilItIsRepaired: what the journal records stands in every reading of the run, and whether it is
// still there.
func TestDamageIsNamedUntilItIsRepaired(t *testing.T) {
	d, blobs := bodyOf(t, "damaged and stored")
	now, err := d.Now()
	require.NoError(t, err)
	require.Len(t, now.Damage, 1)
	require.False(t, now.Damage[0].Repaired)
	require.EqualValues(t, 3, now.Damage[0].Line)
	errors, err := os.ReadFile(d.Path(layout.ErrorsLog))
	require.NoError(t, err)
	require.Contains(t, string(errors), "events.jsonl, line 3, is not what was written")
	log, err := os.ReadFile(d.Path(layout.TextLog))
	require.NoError(t, err)
	require.Contains(t, string(log), "Journal damaged: events.jsonl, line 3,")

	res, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Blobs: blobs, Now: noon})
	require.NoError(t, err)
	require.True(t, res.Applied)
	now, err = d.Now()
	require.NoError(t, err)
	require.True(t, now.Damage[0].Repaired)
	require.Equal(t, []fsck.Code{fsck.DamageRecorded}, codesOf(check(t, d)))
	require.True(t, check(t, d).OK)
}

// TestTruncatedStreamIsReported where a run stands: what is shown is less than what was written.
func TestTruncatedStreamIsReported(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	s.send()
	d := written(t, s)
	now, err := d.Now()
	require.NoError(t, err)
	require.NoError(t, now.Why)
	lines := s.lines[:len(s.lines)-1]
	write(t, d, layout.EventsFile, strings.Join(lines, "\n")+"\n")
	now, err = d.Now()
	require.NoError(t, err)
	require.ErrorContains(t, now.Why, fmt.Sprintf("is not the file that meta.json has seen (%d events", len(s.lines)))
	require.Zero(t, now.Lag)
	require.EqualValues(t, len(lines), now.Tail.Seq)
}
