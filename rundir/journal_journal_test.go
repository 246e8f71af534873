package rundir_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// dir is a folder whose files are opened as those of a run directory.
type dir string

func (d dir) OpenFile(name string) (*os.File, error) { return os.Open(filepath.Join(string(d), name)) }

// folderWith writes one file into a folder.
func folderWith(t *testing.T, name, text string) dir {
	t.Helper()
	d := dir(t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(string(d), name), []byte(text), 0o600))
	return d
}

// event returns a line; its number can be wrong.
func event(t *testing.T, seq int64, kind run.Kind, payload string) string {
	t.Helper()
	e := run.Event{Seq: seq, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: json.RawMessage(payload)}
	line, err := e.Line()
	require.NoError(t, err)
	return line
}

func TestLinesOfStream(t *testing.T) {
	d := folderWith(t, "log", "a\nb\u2028b\n\nc")
	for from, want := range map[int64]struct {
		lines []string
		size  int64
		torn  string
	}{
		0: {[]string{"a", "b\u2028b", ""}, 9, "c"},
		2: {[]string{"b\u2028b", ""}, 9, "c"},
		9: {nil, 9, "c"}, 10: {nil, 10, ""},
	} {
		s, err := rundir.ReadStream(d, "log", from)
		require.NoError(t, err)
		require.Equal(t, want.lines, s.Lines, "from %d", from)
		require.Equal(t, want.size, s.Size, "from %d", from)
		require.Equal(t, want.torn, string(s.Torn), "from %d", from)
	}
	parts := rundir.Split([]byte("a\nb"), 5)
	require.Equal(t, []string{"a"}, parts.Lines)
	require.Equal(t, int64(7), parts.Size)
	require.Equal(t, "b", string(parts.Torn))

	missing, err := rundir.ReadStream(d, "none", 7)
	require.NoError(t, err)
	require.Zero(t, missing)
	f, err := rundir.OpenLines(d, "none", 0)
	require.NoError(t, err)
	f.Close()
	require.NoError(t, os.Mkdir(filepath.Join(string(d), "folder"), 0o700))
	_, err = rundir.ReadStream(d, "folder", 0)
	require.ErrorContains(t, err, "read "+filepath.Join(string(d), "folder"))
	_, err = rundir.OpenLines(d, "log", -1)
	require.ErrorContains(t, err, "read "+filepath.Join(string(d), "log"))
	refused := refusing{}
	_, err = rundir.ReadStream(refused, "log", 0)
	require.ErrorIs(t, err, errRefused)
	_, err = rundir.LineEnds(refused, "log", 1)
	require.ErrorIs(t, err, errRefused)
}

var errRefused = errors.New("refused")

type refusing struct{}

func (refusing) OpenFile(string) (*os.File, error) { return nil, errRefused }

// TestOpenReadsFromTheOffset, and closes its file.
func TestOpenReadsFromTheOffset(t *testing.T) {
	d := folderWith(t, "log", "first\nsecond\n")
	f, err := rundir.OpenLines(d, "log", 6)
	require.NoError(t, err)
	var ends []int64
	for line, err := range f.RawLines() {
		require.NoError(t, err)
		require.Equal(t, "second", string(line.Bytes))
		ends = append(ends, line.End)
	}
	require.Equal(t, []int64{13}, ends)
	f.Close()
	_, err = f.Next()
	require.ErrorIs(t, err, os.ErrClosed)
}

func TestLineEnds(t *testing.T) {
	d := folderWith(t, "log", "ab\nc\n")
	for size, want := range map[int64]bool{0: true, 1: false, 2: false, 3: true, 4: false, 5: true, 6: false} {
		ends, err := rundir.LineEnds(d, "log", size)
		require.NoError(t, err)
		require.Equal(t, want, ends, "%d bytes", size)
	}
	ends, err := rundir.LineEnds(d, "none", 1)
	require.NoError(t, err)
	require.False(t, ends)
	ends, err = rundir.LineEnds(d, "none", 0)
	require.NoError(t, err)
	require.True(t, ends)
	require.NoError(t, os.Mkdir(filepath.Join(string(d), "folder"), 0o700))
	_, err = rundir.LineEnds(d, "folder", 1)
	require.Error(t, err)
}

func TestEventsOfLines(t *testing.T) {
	line := event(t, 7, run.KindRunPaused, `{"reason":"operator"}`)
	e := rundir.ParseAny(line)
	require.Equal(t, int64(7), e.Seq)
	require.Equal(t, run.KindRunPaused, e.Kind)
	require.Zero(t, rundir.ParseAny("{"))
	require.Zero(t, rundir.ParseAny(`{"seq":3}x`))

	start, end := event(t, 1, run.KindRunStart, `{}`), event(t, 2, run.KindRunEnd, `{"status":"done"}`)
	note := event(t, 3, run.KindErrorNoted, `{}`)
	resumed, reverted := event(t, 4, run.KindRunResumed, `{}`), event(t, 4, run.KindRunReverted, `{}`)
	for name, row := range map[string]struct {
		lines []string
		want  bool
	}{
		"nothing": {nil, false}, "running": {[]string{start, note}, false}, "ended": {[]string{start, end}, true},
		"ended, and something after it": {[]string{start, end, note, "{"}, true},
		"resumed":                       {[]string{start, end, resumed, note}, false},
		"reverted":                      {[]string{start, end, reverted}, false},
		"started again":                 {[]string{end, start}, false},
	} {
		require.Equal(t, row.want, rundir.HasEnded(row.lines), name)
	}

	lines := []string{event(t, 1, run.KindRunStart, `{}`), event(t, 2, run.KindRunPaused, `{}`), "{",
		event(t, 4, run.KindRunResumed, `{}`), event(t, 5, run.KindRunPaused, `{}`)}
	require.Equal(t, lines[3:], rundir.NumberedBehind(lines, 3))
	require.Equal(t, lines, rundir.NumberedBehind(lines, 0))
	require.Nil(t, rundir.NumberedBehind(lines, 2), "the line is damaged")
	require.Nil(t, rundir.NumberedBehind(lines, 5))
}

// TestEventsInForce are numbered by their place, without those that a revert has undone.
func TestEventsInForce(t *testing.T) {
	lines := []string{event(t, 9, run.KindRunStart, `{}`), event(t, 9, run.KindRunPaused, `{}`),
		event(t, 9, run.KindRunReverted, `{"to":1,"state":{}}`), event(t, 9, run.KindRunResumed, `{}`)}
	seqs := func(events []run.Event) (all []int64) {
		for _, e := range events {
			all = append(all, e.Seq)
		}
		return all
	}
	require.Equal(t, []int64{1, 3, 4}, seqs(rundir.InForce(lines, 4)))
	require.Equal(t, []int64{1, 3, 4}, seqs(rundir.InForce(lines, 99)))
	require.Equal(t, []int64{1, 2}, seqs(rundir.InForce(lines, 2)))
	require.Empty(t, rundir.InForce(lines, 0))
	all := rundir.InForce(lines, 2)
	require.Equal(t, map[int64]bool{1: true, 2: true}, rundir.Seqs(all))
	require.Equal(t, []int64{1, 2}, seqs(all), "the list itself stays")
}

func TestDamagedLines(t *testing.T) {
	digest := func(s string) string { return disk.Digest([]byte(s)) }
	tail := run.Tail{Seq: 2, Chain: run.Chain("").Over([]string{"a", "b"})}
	require.True(t, rundir.Ends([]string{"a", "b"}, tail))
	require.True(t, rundir.Ends([]string{"a", "b", "c"}, tail))
	require.False(t, rundir.Ends([]string{"a"}, tail))
	require.False(t, rundir.Ends([]string{"a", "x", "b"}, tail))
	require.True(t, rundir.Ends(nil, run.Tail{}))

	require.Equal(t, []run.JournalDamage{{File: rundir.EventsFile, Expected: string(tail.Chain),
		Found: string(run.Chain("").Over([]string{"a"}))}}, rundir.LineDamage([]string{"a"}, nil, tail))
	line := func(n int64, was, is string) run.JournalDamage {
		return run.JournalDamage{File: rundir.EventsFile, Line: n, Expected: was, Found: is}
	}
	for name, row := range map[string]struct {
		found, whole []string
		want         []run.JournalDamage
	}{
		"the same": {[]string{"a"}, []string{"a"}, nil},
		"a line":   {[]string{"a", "x"}, []string{"a", "b"}, []run.JournalDamage{line(2, digest("b"), digest("x"))}},
		"two lines": {[]string{"x", "b", "y"}, []string{"a", "b", "c"}, []run.JournalDamage{
			line(1, digest("a"), digest("x")), line(3, digest("c"), digest("y"))}},
		"lost":  {[]string{"a"}, []string{"a", "b", "c"}, []run.JournalDamage{line(2, digest("b"), run.Missing)}},
		"added": {[]string{"a", "b", "c"}, []string{"a"}, []run.JournalDamage{line(2, run.Missing, digest("b"))}},
		"moved": {[]string{"b", "c"}, []string{"a", "b", "c"}, []run.JournalDamage{line(1, digest("a"), digest("b"))}},
		"five lines": {[]string{"1", "2", "3", "4", "5"}, []string{"a", "b", "c", "d", "e"}, []run.JournalDamage{
			line(1, digest("a"), digest("1")), line(2, digest("b"), digest("2")), line(3, digest("c"), digest("3")),
			line(4, digest("d"), digest("4"))}},
	} {
		require.Equal(t, row.want, rundir.LineDamage(row.found, row.whole, tail), name)
	}
	require.Equal(t, run.Missing, rundir.LineDigest([]string{"a"}, 1))
	require.Equal(t, digest("a"), rundir.LineDigest([]string{"a"}, 0))
}

// store is a store of blobs in memory.
type store map[string][]byte

func (s store) Get(_ context.Context, digest string) ([]byte, error) {
	if raw, ok := s[digest]; ok {
		return raw, nil
	}
	return nil, fs.ErrNotExist
}

// put stores segments of some lines each, and returns their digests. change alters one before it is stored.
func (s store) put(t *testing.T, change func(n int, one *rundir.Segment), parts ...[]string) (heads []string) {
	t.Helper()
	var chain run.Chain
	previous, first := "", int64(1)
	for n, lines := range parts {
		one := rundir.Segment{Version: 1, RunID: "r", First: first, Last: first + int64(len(lines)) - 1, Prev: chain,
			Chain: chain.Over(lines), Previous: previous, Lines: lines}
		chain, first = one.Chain, one.Last+1
		change(n, &one)
		raw, err := json.Marshal(one)
		require.NoError(t, err)
		previous = disk.Digest(raw)
		s[previous] = raw
		heads = append(heads, previous)
	}
	return heads
}

func TestSegmentsOfJournal(t *testing.T) {
	s := store{}
	heads := s.put(t, func(int, *rundir.Segment) {}, []string{"a", "b"}, []string{"c"}, []string{"d", "e"})
	for n, want := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "b", "c", "d", "e"}} {
		lines, err := rundir.Segments(t.Context(), s, heads[n])
		require.NoError(t, err)
		require.Equal(t, want, lines)
		end, err := rundir.SegmentEnd(t.Context(), s, heads[n])
		require.NoError(t, err)
		require.Equal(t, int64(len(want)), end)
	}
	none, err := rundir.Segments(t.Context(), s, "")
	require.NoError(t, err)
	require.Empty(t, none)
	end, err := rundir.SegmentEnd(t.Context(), refusingStore{}, "")
	require.NoError(t, err)
	require.Zero(t, end)
	require.Equal(t, "r", rundir.SegmentOf(s[heads[1]]))
	require.Equal(t, "r", rundir.SegmentOf(s[heads[1]][:120]))
	require.Empty(t, rundir.SegmentOf([]byte(`{"version":1,"run_id":"r"}`)))
	require.Empty(t, rundir.SegmentOf(append([]byte("x"), s[heads[0]]...)))
}

type refusingStore struct{}

func (refusingStore) Get(context.Context, string) ([]byte, error) { return nil, errRefused }

// TestInconsistentSegments names the segment that is wrong, and what is wrong with it.
func TestInconsistentSegments(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(n int, one *rundir.Segment)
		at      int // the segment that is named; -1: none
		want    string
		damaged bool
	}{
		"another version": {func(n int, one *rundir.Segment) { one.Version = 1 + n%2 }, -1,
			"has version 2; this program reads version 1", false},
		"other lines": {func(n int, one *rundir.Segment) {
			if n == 0 {
				one.Lines = []string{"ax", "b"}
			}
		}, 0, "it is damaged: its lines do not give its chain", true},
		"another chain": {func(n int, one *rundir.Segment) {
			if n == 0 {
				one.Prev = "x"
				one.Chain = one.Prev.Over(one.Lines)
			}
		}, 0, "it is damaged: it does not end where the next one begins", true},
		"another number": {func(n int, one *rundir.Segment) { one.Last += int64(n % 2) }, 1,
			"it is damaged: it does not end where the next one begins", true},
		"another run": {func(n int, one *rundir.Segment) { one.RunID += map[int]string{1: "x"}[n] }, 1,
			"it is damaged: it does not end where the next one begins", true},
		"a late begin": {func(_ int, one *rundir.Segment) { one.First, one.Last = one.First+4, one.Last+4 }, -1,
			"the first segment is damaged: it begins at event 5", true},
	} {
		s := store{}
		heads := s.put(t, row.change, []string{"a", "b"}, []string{"c"}, []string{"d", "e"})
		_, err := rundir.Segments(t.Context(), s, heads[2])
		require.ErrorContains(t, err, row.want, name)
		require.Equal(t, row.damaged, errors.Is(err, disk.ErrDamaged), name)
		require.Equal(t, row.damaged, rundir.Unreadable(err), name)
		var of *rundir.SegmentError
		if row.at < 0 {
			require.False(t, errors.As(err, &of), name)
			continue
		}
		require.ErrorAs(t, err, &of, name)
		require.Equal(t, heads[row.at], of.Digest, name)
		require.Equal(t, run.JournalDamage{File: run.SegmentFile + heads[row.at], Expected: heads[row.at],
			Found: err.Error()}, rundir.SegmentDamage(heads[2], err), name)
	}
	s := store{}
	heads := s.put(t, func(n int, one *rundir.Segment) {
		if n == 0 {
			one.Prev = "x"
			one.Chain = one.Prev.Over(one.Lines)
		}
	}, []string{"a"})
	_, err := rundir.Segments(t.Context(), s, heads[0])
	require.ErrorContains(t, err, "the first segment is damaged", "it follows other lines")

	heads = s.put(t, func(int, *rundir.Segment) {}, []string{"a"}, []string{"b"})
	delete(s, heads[0])
	_, err = rundir.Segments(t.Context(), s, heads[1])
	require.EqualError(t, err, "segment "+heads[0]+": file does not exist")
	require.True(t, rundir.Unreadable(err))
	require.Equal(t, run.JournalDamage{File: run.SegmentFile + heads[0], Expected: heads[0], Found: run.Missing},
		rundir.SegmentDamage(heads[1], err))
	_, err = rundir.SegmentEnd(t.Context(), s, heads[1])
	require.Error(t, err)
	s[heads[1]] = []byte("{")
	_, err = rundir.Segments(t.Context(), s, heads[1])
	var of *rundir.SegmentError
	require.ErrorAs(t, err, &of)
	require.Equal(t, heads[1], of.Digest)
	require.ErrorIs(t, err, disk.ErrDamaged)
	_, err = rundir.Segments(t.Context(), refusingStore{}, "h")
	require.ErrorIs(t, err, errRefused)
	require.False(t, rundir.Unreadable(err))
	require.Equal(t, run.JournalDamage{File: run.SegmentFile + "h", Expected: "h", Found: "refused"},
		rundir.SegmentDamage("h", errRefused))
	require.EqualError(t, &rundir.HistoryGapError{First: 3, Last: 5},
		"history has no events 3 to 5: they cannot be restored")
}
