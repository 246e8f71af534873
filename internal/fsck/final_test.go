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
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// otherwise is the last line of a journal as another execution writes it: at another time.
func otherwise(s *story) []string {
	lines := slices.Clone(s.lines)
	n := len(lines)
	lines[n-1] = strings.Replace(lines[n-1], `"ts":"2026`, `"ts":"2027`, 1)
	return lines
}

// TestCompletedRunIsFinal: after run.end{done} nothing is written, and the result has the state of the run. The lines
// of the run itself are accepted.
func TestCompletedRunIsFinal(t *testing.T) {
	s := whole(t)
	n := len(s.lines)
	half, other := n/2, otherwise(s)
	earlier := func(b projector.Batch) projector.Batch { b.Epoch = 0; return b }
	more := append(slices.Clone(s.lines), `{"seq":99,"kind":"someone.else"}`)
	refused := append(slices.Clone(s.lines),
		fmt.Sprintf(`{"seq":%d,"ts":%q,"kind":"decision.refused","phase":null,"payload":{}}`, n+1, moment(99)))
	cut := func(d projector.Dir) {
		write(t, d, layout.EventsFile, strings.Join(s.lines[:n-1], "\n")+"\n")
	}
	rows := []struct {
		name    string
		hurt    func(d projector.Dir)
		give    projector.Batch
		outcome run.Projection
	}{
		{"the same lines again", nil, batch(s.lines, half+1, n), run.ProjectionWritten},
		{"no lines behind the end", nil, batch(s.lines, n+1, n), run.ProjectionWritten},
		{"an end that is written in one batch with more", nil, batch(more, n, n+1), run.ProjectionWritten},
		{"another line behind the end", nil, batch(more, n+1, n+1), run.ProjectionFinal},
		{"a message that came while the run ended", nil, batch(refused, n+1, n+1), run.ProjectionWritten},
		{"another end", nil, batch(other, n, n), run.ProjectionFinal},
		{"another beginning", nil, batch(other, 1, 1), run.ProjectionFinal},
		{"the same lines, and another end", nil, batch(other, half+1, n), run.ProjectionFinal},
		{"lines that are there, and not the last", nil, batch(s.lines, half+1, n-1), run.ProjectionFinal},
		{"lines are missing before", nil, batch(append(more, ""), n+2, n+2), run.ProjectionFinal},
		{"another end of an earlier epoch", nil, earlier(batch(other, n, n)), run.ProjectionFinal},
		{"another end, and meta.json is missing", func(d projector.Dir) { remove(t, d, layout.MetaFile) },
			batch(other, n, n), run.ProjectionFinal},
		{"another end, and the last line is lost", cut, batch(other, n, n), run.ProjectionFinal},
		{"the same end, and the last line is lost", cut, batch(s.lines, n, n), run.ProjectionWritten},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			d := written(t, s)
			if r.hurt != nil {
				r.hurt(d)
			}
			before := look(t, d)
			p, err := d.Project(context.Background(), s.blobs, r.give)
			require.NoError(t, err)
			require.Equal(t, r.outcome, p.Outcome)
			if r.outcome != run.ProjectionFinal {
				require.Nil(t, p.End)
				return
			}
			require.Equal(t, before, look(t, d), "nothing is written")
			require.Equal(t, tailAt(s.lines, n), p.Tail)
			require.Equal(t, p.Tail, p.End.Tail)
			require.Equal(t, run.Done, p.End.State.Status)
			require.Equal(t, s.state.Artifact, p.End.State.Artifact)
			end, err := projector.ReadEnd(t.Context(), d.Dir, s.blobs)
			require.NoError(t, err)
			require.Equal(t, p.End, end)
		})
	}
}

// TestSegmentDamageIsRecordedOnce: storing the end of a done run once more, as after a reset, touches no file.
func TestSegmentDamageIsRecordedOnce(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	seal := func() string {
		done, err := d.Seal(t.Context(), s.blobs, projector.Sealing{RunID: "run-1", First: 1,
			Tail: tailAt(s.lines, len(s.lines))})
		require.NoError(t, err)
		return done.Head
	}
	head := seal()
	before, err := os.Stat(d.Path(layout.MetaFile))
	require.NoError(t, err)
	require.Equal(t, head, seal())
	after, err := os.Stat(d.Path(layout.MetaFile))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "meta.json was replaced")
}

// TestOtherEndsAreNotFinal: a run that was halted or has failed continues behind its end, as does one that an earlier
// release has reset behind it; and an approved review makes a run done before it ends.
func TestOtherEndsAreNotFinal(t *testing.T) {
	rows := map[string]func(s *story){
		"halted":    func(s *story) { s.add(run.KindRunEnd, run.RunEnd{Status: run.Halted}) },
		"failed":    func(s *story) { s.add(run.KindRunEnd, run.RunEnd{Status: run.Failed}) },
		"cancelled": func(s *story) { s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled}) },
		"reset behind its end": func(s *story) {
			then := s.state
			s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
			s.revert(then)
		},
		"approved": func(s *story) {
			s.add(run.KindReviewRequested, run.QuestionRequested{ID: "q-1", Trigger: run.TriggerPlanReady})
			s.add(run.KindReviewDecided, run.QuestionDecided{ID: "q-1", Action: run.ActionApprove})
			require.Equal(s.t, run.Done, s.state.Status)
		},
	}
	for name, send := range rows {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.twoPasses()
			send(s)
			s.send()
			d, n := projector.At(t.TempDir()), len(s.lines)
			project(t, d, s, batch(s.lines, 1, n)) // at once: this program does not go on behind an end
			end, err := projector.ReadEnd(t.Context(), d.Dir, s.blobs)
			require.NoError(t, err)
			require.Nil(t, end)
			p, err := d.Project(t.Context(), s.blobs, batch(otherwise(s), n, n))
			require.NoError(t, err)
			require.Equal(t, run.ProjectionDiverged, p.Outcome)
		})
	}
	t.Run("approved, and ended", func(t *testing.T) {
		s := newStory(t)
		s.twoPasses()
		rows["approved"](s)
		s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
		s.send()
		end, err := projector.ReadEnd(t.Context(), written(t, s).Dir, s.blobs)
		require.NoError(t, err)
		require.NotNil(t, end)
	})
	t.Run("no directory", func(t *testing.T) {
		end, err := projector.ReadEnd(t.Context(), projector.At(t.TempDir()+"/run").Dir, fakeBlobs{})
		require.NoError(t, err)
		require.Nil(t, end)
	})
}

// TestDerivedFilesOfAFinalRunCatchUp: a projection wrote the end and nothing that follows from it, and the workflow was
// reset. Its next execution writes no event, so nothing else would write these files.
func TestDerivedFilesOfAFinalRunCatchUp(t *testing.T) {
	s := whole(t)
	n := len(s.lines)
	want := look(t, written(t, s))
	for name, catchUp := range map[string]func(d projector.Dir) error{
		"by a check": func(d projector.Dir) error { return d.CatchUp(t.Context(), s.blobs) },
		"by other lines": func(d projector.Dir) error {
			p, err := d.Project(t.Context(), s.blobs, batch(otherwise(s), n, n))
			require.Equal(t, run.ProjectionFinal, p.Outcome)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := projector.At(filepath.Join(t.TempDir(), "run"))
			require.NoError(t, d.Take(claim()))
			project(t, d, s, batch(s.lines, 1, n-1))
			write(t, d, layout.EventsFile, strings.Join(s.lines, "\n")+"\n")
			require.NoError(t, catchUp(d))
			meta, err := d.Meta()
			require.NoError(t, err)
			require.EqualValues(t, n, meta.Events.Seq)
			require.Equal(t, run.Done, meta.State.Status)
			r, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{})
			require.NoError(t, err)
			require.True(t, r.OK, r.Issues)
			require.Equal(t, want[layout.StateFile], look(t, d)[layout.StateFile])
			before := look(t, d)
			require.NoError(t, catchUp(d))
			require.Equal(t, before, look(t, d), "once")
		})
	}
}
