package fsck_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/journal"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestTake: the first claim wins, the same one again is adopted, another one names the holder and changes nothing.
func TestTake(t *testing.T) {
	d := projector.At(t.TempDir() + "/new/run")
	_, err := d.Claim()
	require.ErrorIs(t, err, rundir.ErrNoRun)
	require.NoError(t, d.Take(claim()))
	require.NoError(t, d.Take(claim()))
	other := claim()
	other.RunID = "run-2"
	before := look(t, d)
	var taken *rundir.ClaimedError
	require.ErrorAs(t, d.Take(other), &taken)
	require.Equal(t, claim(), taken.Holder)
	require.ErrorContains(t, taken, "run-1")
	require.Equal(t, before, look(t, d))
}

// sealed is a story whose journal is in the store up to a line, in two segments.
func sealed(t *testing.T, s *story, d projector.Dir, first, last int) (one, two string) {
	t.Helper()
	ctx := context.Background()
	a, err := d.Seal(ctx, s.blobs, projector.Sealing{RunID: "run-1", First: 1, Tail: tailAt(s.lines, first)})
	require.NoError(t, err)
	b, err := d.Seal(ctx, s.blobs, projector.Sealing{RunID: "run-1", Head: a.Head, First: int64(first) + 1,
		Tail: tailAt(s.lines, last)})
	require.NoError(t, err)
	return a.Head, b.Head
}

func TestSeal(t *testing.T) {
	ctx := context.Background()
	s := whole(t)
	d := written(t, s)
	one, two := sealed(t, s, d, 10, 20)
	lines, err := journal.Segments(ctx, s.blobs, two)
	require.NoError(t, err)
	require.Equal(t, s.lines[:20], lines)
	meta, err := d.Meta()
	require.NoError(t, err)
	require.Equal(t, two, meta.SegmentHead)

	again, err := d.Seal(ctx, s.blobs, projector.Sealing{RunID: "run-1", Head: two, First: 21, Tail: run.Tail{Seq: 20}})
	require.NoError(t, err)
	require.Equal(t, projector.Sealed{Head: two, Last: 20}, again, "nothing new, nothing stored")
	_, err = d.Seal(ctx, s.blobs, projector.Sealing{RunID: "run-1", Head: two, First: 21, Tail: run.Tail{Seq: 1000}})
	require.ErrorContains(t, err, "rebuild it first")
	_, err = d.Seal(ctx, s.blobs, projector.Sealing{RunID: "run-1", Tail: run.Tail{Seq: 3}})
	require.ErrorContains(t, err, "the first event of a run is 1")
	_ = one
}

// TestDamagedSegments are told apart, and none is read as a journal.
func TestDamagedSegments(t *testing.T) {
	ctx := context.Background()
	s := whole(t)
	one, two := sealed(t, s, written(t, s), 10, 20)
	change := func(f func(*journal.Segment)) string {
		var seg journal.Segment
		require.NoError(t, json.Unmarshal(s.blobs[two], &seg))
		f(&seg)
		raw, err := json.Marshal(seg)
		require.NoError(t, err)
		return s.blobs.keep(string(raw)).Digest
	}
	_ = one
	rows := map[string]struct{ head, message string }{
		"missing":         {"0000", "file does not exist"},
		"no JSON":         {s.blobs.keep("{").Digest, "unexpected end"},
		"a newer version": {change(func(g *journal.Segment) { g.Version = 9 }), "has version 9"},
		"another line":    {change(func(g *journal.Segment) { g.Lines[0] = "{}" }), "do not give its chain"},
		"links to itself": {change(func(g *journal.Segment) { g.Previous = two }),
			"does not end where the next one begins"},
		"has no first": {change(func(g *journal.Segment) { g.Previous = "" }), "begins at event 11"},
	}
	for name, r := range rows {
		_, err := journal.Segments(ctx, s.blobs, r.head)
		require.ErrorContains(t, err, r.message, name)
	}
}

// TestRebuild writes a lost directory again from segments and batches, byte for byte.
func TestRebuild(t *testing.T) {
	ctx := context.Background()
	s := whole(t)
	d := written(t, s)
	one, two := sealed(t, s, d, 10, 20)
	want := look(t, d)
	rest := batch(s.lines, 21, len(s.lines))
	rows := map[string]projector.Source{
		"segments, then batches": {Claim: claim(), Head: two, Batches: []projector.Batch{rest}},
		"batches that overlap": {Claim: claim(), Head: two,
			Batches: []projector.Batch{batch(s.lines, 15, 20), batch(s.lines, 18, len(s.lines))}},
		"an older head, all batches": {Claim: claim(), Head: one,
			Batches: []projector.Batch{batch(s.lines, 11, 20), rest}},
		"the history alone": {Claim: claim(), Batches: s.batches},
	}
	for name, src := range rows {
		t.Run(name, func(t *testing.T) {
			lost := projector.At(t.TempDir() + "/run")
			tail, err := lost.Rebuild(ctx, s.blobs, src)
			require.NoError(t, err)
			require.Equal(t, int64(len(s.lines)), tail.Seq)
			if src.Head == two { // meta.json names the segment that it was made from
				same(t, want, look(t, lost), name)
			}
			require.Equal(t, want[layout.EventsFile], look(t, lost)[layout.EventsFile])
			require.Equal(t, want[layout.StateFile], look(t, lost)[layout.StateFile])

			before := look(t, lost)
			_, err = lost.Rebuild(ctx, s.blobs, src)
			require.NoError(t, err)
			require.Equal(t, before, look(t, lost), "a second one changes nothing")
		})
	}
	_, err := projector.At(t.TempDir()).Rebuild(ctx, s.blobs,
		projector.Source{Claim: claim(), Batches: []projector.Batch{rest}})
	require.ErrorContains(t, err, "history has no events 1 to 20")
}

// TestRebuildLeavesAlone what history does not know better.
func TestRebuildLeavesAlone(t *testing.T) {
	ctx := context.Background()
	s := whole(t)
	n := len(s.lines)
	t.Run("a longer directory", func(t *testing.T) {
		d := written(t, s)
		before := look(t, d)
		tail, err := d.Rebuild(ctx, s.blobs, projector.Source{Claim: claim(),
			Batches: []projector.Batch{batch(s.lines, 1, n-5)}})
		require.NoError(t, err)
		require.Equal(t, int64(n), tail.Seq)
		require.Equal(t, before, look(t, d))
	})
	t.Run("another journal", func(t *testing.T) {
		d := written(t, s)
		other := append([]string{`{"seq":1,"kind":"someone.else"}`}, s.lines[1:]...)
		before := look(t, d)
		_, err := d.Rebuild(ctx, s.blobs, projector.Source{Claim: claim(),
			Batches: []projector.Batch{batch(other, 1, n)}})
		require.ErrorContains(t, err, "event 1 of")
		require.ErrorContains(t, err, "nothing was written")
		require.Equal(t, before, look(t, d))
	})
	t.Run("another run", func(t *testing.T) {
		d := written(t, s)
		other := claim()
		other.RunID = "run-2"
		var taken *rundir.ClaimedError
		_, err := d.Rebuild(ctx, s.blobs, projector.Source{Claim: other, Batches: s.batches})
		require.ErrorAs(t, err, &taken)
	})
}

// TestReaders see complete lines only, and a damaged line costs only itself.
func TestReaders(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	raw, err := os.ReadFile(d.Path(layout.EventsFile))
	require.NoError(t, err)
	write(t, d, layout.EventsFile, string(raw)+"no JSON\n"+`{"seq":`)
	events, damaged, err := d.Events()
	require.NoError(t, err)
	require.Len(t, events, len(s.lines))
	require.Equal(t, 1, damaged)
	lines, next := follow(t, d, int64(len(raw)))
	require.Equal(t, []string{"no JSON"}, lines)
	require.Equal(t, int64(len(raw)+len("no JSON\n")), next)

	_, err = projector.At(t.TempDir()).Meta()
	require.ErrorIs(t, err, os.ErrNotExist)
	write(t, d, layout.MetaFile, "[]")
	_, err = d.Meta()
	require.ErrorIs(t, err, layout.ErrDamaged)
}
