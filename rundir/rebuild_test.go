package rundir

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestLinesOfSource: the segments, then what the batches of the history add.
func TestLinesOfSource(t *testing.T) {
	w := working(t)
	sealed, err := w.seal(w.projected(4), "", 1, 4, nil)
	require.NoError(t, err)
	for name, row := range map[string]struct {
		head    string
		batches []Batch
		want    int64
		gap     *HistoryGapError
	}{
		"segments alone":      {head: sealed.Head, want: 4},
		"batches alone":       {batches: []Batch{w.batch(1, 3), w.batch(4, 6)}, want: 6},
		"both":                {head: sealed.Head, batches: []Batch{w.batch(5, 6), w.batch(7, 7)}, want: 7},
		"they overlap":        {head: sealed.Head, batches: []Batch{w.batch(1, 3), w.batch(3, 6), w.batch(5, 6)}, want: 6},
		"they overlap by one": {head: sealed.Head, batches: []Batch{w.batch(2, 4), w.batch(4, 5)}, want: 5},
		"a gap": {head: sealed.Head, batches: []Batch{w.batch(6, 7)},
			gap: &HistoryGapError{First: 5, Last: 5}},
		"a gap at the start":    {batches: []Batch{w.batch(3, 4)}, gap: &HistoryGapError{First: 1, Last: 2}},
		"nothing":               {},
		"a batch without lines": {batches: []Batch{w.batch(1, 2), w.batch(3, 2)}, want: 2},
	} {
		got, err := Source{Head: row.head, Batches: row.batches}.Lines(t.Context(), w.store)
		if row.gap != nil {
			var gap *HistoryGapError
			require.ErrorAs(t, err, &gap, name)
			require.Equal(t, row.gap, gap, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, strings.Join(w.lines[:row.want], "\n"), strings.Join(got, "\n"), name)
	}
	_, err = Source{Head: "gone"}.Lines(t.Context(), w.store)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestRebuiltDirectory: a rebuild adds what the directory lacks. A restore also replaces other lines, and reports them.
func TestRebuiltDirectory(t *testing.T) {
	w := working(t)
	n := w.last()
	want := contents(t, w.projected(n))
	longer := &writer{t: t, store: w.store, lines: slices.Clone(w.lines), phase: "write"}
	longer.settle(numbered(2, "report"), "")
	line := func(seq int64, found string) run.JournalDamage {
		return run.JournalDamage{File: EventsFile, Line: seq, Expected: disk.Digest([]byte(w.lines[seq-1])),
			Found: found, Repaired: true}
	}
	wrong := &writer{t: t, store: w.store, lines: slices.Clone(w.lines)}
	wrong.lines[2] = strings.Replace(w.lines[2], `"title":"pass"`, `"title":"PASS"`, 1)
	for name, row := range map[string]struct {
		dir     func() Dir
		refused bool
		damage  func(lines []string) []run.JournalDamage
		tail    run.Tail
	}{
		"missing":  {dir: func() Dir { return At(t.TempDir() + "/new") }},
		"claimed":  {dir: func() Dir { return claimed(t) }},
		"complete": {dir: func() Dir { return w.projected(n) }},
		"shorter": {dir: func() Dir { return w.projected(6) },
			damage: func([]string) []run.JournalDamage { return []run.JournalDamage{line(7, run.Missing)} }},
		"longer": {dir: func() Dir { return longer.projected(n + 1) }, tail: longer.tail(n + 1)},
		"another line": {dir: func() Dir { d := w.projected(n); w.hurt(d, 3, n); return d }, refused: true,
			damage: func(lines []string) []run.JournalDamage {
				return []run.JournalDamage{line(3, disk.Digest([]byte(lines[2])))}
			}},
		"another line with its files": {dir: func() Dir { return wrong.projected(n) }, refused: true,
			damage: func(lines []string) []run.JournalDamage {
				return []run.JournalDamage{line(3, disk.Digest([]byte(lines[2])))}
			}},
		"fewer lines, another": {dir: func() Dir { d := w.projected(6); w.hurt(d, 3, 6); return d }, refused: true,
			damage: func(lines []string) []run.JournalDamage {
				return []run.JournalDamage{line(3, disk.Digest([]byte(lines[2])))}
			}},
	} {
		src := Source{Claim: run.Claim{Version: run.ClaimVersion, RunID: "r", Pipeline: "p"}, Head: "",
			Batches: []Batch{w.batch(1, n)}}
		if row.tail.Seq == 0 {
			row.tail = w.tail(n)
		}
		for _, restore := range []bool{false, true} {
			d := row.dir()
			before, _ := d.ReadRaw(EventsFile)
			if !restore {
				tail, err := d.Rebuild(t.Context(), w.store, src)
				if row.refused {
					require.EqualError(t, err, fmt.Sprintf("event 3 of %s is not the one in history: nothing was written. If "+
						"the line was damaged, restore it (starter repair-state %s --apply); otherwise rebuild into another "+
						"directory (starter rebuild r --output-dir OTHER) and compare the two", d.Root, d.Root), name)
					continue
				}
				require.NoError(t, err, name)
				require.Equal(t, row.tail, tail, name)
			} else {
				got, err := d.Restore(t.Context(), w.store, src)
				require.NoError(t, err, name)
				require.Equal(t, row.tail, got.Tail, name)
				var damage []run.JournalDamage
				if row.damage != nil {
					damage = row.damage(strings.Split(string(before), "\n"))
				}
				if row.refused {
					kept := TornDir + "/events-damaged-" + short(string(before)) + ".jsonl"
					damage[0].Kept = kept
					require.Equal(t, string(before), contents(t, d)[kept], name)
				}
				require.Equal(t, damage, got.Damage, name)
			}
			if row.tail.Seq == n {
				w.consistent(d, n)
				got := contents(t, d)
				for file := range want {
					require.Equal(t, want[file], got[file], "%s: %s", name, file)
				}
			}
		}
	}
}

// TestSourcesThatAreRefused: nothing is written to the directory of another run, and a longer one with other lines is
// not replaced.
func TestSourcesThatAreRefused(t *testing.T) {
	w := working(t)
	src := Source{Claim: run.Claim{Version: run.ClaimVersion, RunID: "other"}, Batches: []Batch{w.batch(1, 2)}}
	d := w.projected(9)
	before := contents(t, d)
	_, err := d.Rebuild(t.Context(), w.store, src)
	require.ErrorAs(t, err, new(*ClaimedError))
	w.hurt(d, 2, 9)
	src.Claim = run.Claim{Version: run.ClaimVersion, RunID: "r", Pipeline: "p"}
	_, err = d.Restore(t.Context(), w.store, src)
	var other *OtherEventsError
	require.ErrorAs(t, err, &other)
	require.Equal(t, OtherEventsError{RunID: "r", Dir: d.Root, Seq: 2}, *other)
	write(t, d, EventsFile, before[EventsFile])
	require.Equal(t, before, contents(t, d))
	require.Equal(t, OtherEventsError{RunID: "RUN-ID", Dir: "/none", Seq: 7}, *OtherEvents(At("/none"), 7))
	file := At(t.TempDir())
	write(t, file, "mine.txt", "")
	_, err = file.Rebuild(t.Context(), w.store, src)
	require.ErrorAs(t, err, new(*TargetError))
	require.Equal(t, map[string]string{"mine.txt": ""}, contents(t, file))

	sealed, err := w.seal(w.projected(4), "", 1, 4, nil)
	require.NoError(t, err)
	fresh := At(t.TempDir() + "/new")
	src.Head, src.Batches = sealed.Head, nil
	tail, err := fresh.Rebuild(t.Context(), w.store, src)
	require.NoError(t, err)
	require.Equal(t, w.tail(4), tail)
	meta, err := fresh.Meta()
	require.NoError(t, err)
	require.Equal(t, sealed.Head, meta.SegmentHead)
	src.Head, src.Batches = "", []Batch{w.batch(1, 4)}
	_, err = fresh.Rebuild(t.Context(), w.store, src)
	require.NoError(t, err)
	meta, err = fresh.Meta()
	require.NoError(t, err)
	require.Equal(t, sealed.Head, meta.SegmentHead, "a source without segments keeps it")
}

// TestEndedJournals: after the end of a run that is done, only refusals of messages are appended.
func TestEndedJournals(t *testing.T) {
	w := working(t)
	w.settle(numbered(2, "report"), "")
	w.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	n := w.last()
	other := slices.Clone(w.lines)
	other[n-1] = strings.Replace(other[n-1], `"ts":"2026`, `"ts":"2027`, 1)
	refusal := &writer{t: t, lines: slices.Clone(w.lines)}
	refusal.add(run.KindDecisionRefused, run.DecisionRefused{})
	refusal.add(run.KindDecisionRefused, run.DecisionRefused{})
	more := &writer{t: t, lines: slices.Clone(w.lines)}
	more.add(run.KindRunPaused, run.RunPaused{})
	for name, row := range map[string]struct {
		b    Batch
		want run.Projection
	}{
		"the lines again":               {w.batch(3, n), run.ProjectionWritten},
		"the last line again":           {w.batch(n, n), run.ProjectionWritten},
		"all of them but the last":      {w.batch(3, n-1), run.ProjectionNewer},
		"no line":                       {w.batch(n+1, n), run.ProjectionWritten},
		"a refusal":                     {refusal.batch(n+1, n+1), run.ProjectionWritten},
		"refusals":                      {refusal.batch(n+1, n+2), run.ProjectionWritten},
		"a refusal in another place":    {refusal.batch(n+2, n+2), run.ProjectionBehind},
		"another event":                 {more.batch(n+1, n+1), run.ProjectionNewer},
		"the last line and another":     {more.batch(n, n+1), run.ProjectionNewer},
		"another end":                   {(&writer{t: t, lines: other}).batch(n, n), run.ProjectionNewer},
		"a refusal after another chain": {Batch{Epoch: 1, First: n + 1, Prev: "x", Lines: refusal.lines[n : n+1]}, run.ProjectionNewer},
	} {
		whole := w.projected(n)
		ended, err := whole.Ended()
		require.NoError(t, err)
		require.True(t, ended)
		before := contents(t, whole)
		p, err := whole.Project(t.Context(), w.store, row.b)
		require.NoError(t, err)
		require.Equal(t, row.want, p.Outcome, name)
		if row.want != run.ProjectionWritten {
			require.Equal(t, w.tail(n), p.Tail, name)
			require.Equal(t, before, contents(t, whole), name)
		}
	}
	cut := w.projected(n)
	write(t, cut, EventsFile, strings.Join(w.lines[:n-1], "\n")+"\n")
	ended, err := cut.Ended()
	require.NoError(t, err)
	require.True(t, ended, "meta.json has the end")
	ended, err = w.projected(n - 1).Ended()
	require.NoError(t, err)
	require.False(t, ended)
}

// TestRefillExports: a projection wrote the end and nothing that follows from it, and the workflow was reset. Its next
// execution writes no event.
func TestRefillExports(t *testing.T) {
	w := working(t)
	w.settle(numbered(2, "report"), "")
	w.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	n := w.last()
	want := contents(t, w.projected(n))
	refill := func(d Dir) error {
		c, err := Continue(t.Context(), d, w.store, nil)
		require.NoError(t, err)
		return Refill(t.Context(), d, w.store, c)
	}
	d := w.projected(n - 1)
	write(t, d, EventsFile, strings.Join(w.lines, "\n")+"\n")
	require.NoError(t, refill(d))
	w.consistent(d, n)
	require.Equal(t, want, contents(t, d))
	d.Disk = disk.Disk{Hook: func(disk.Step) error { return fs.ErrPermission }}
	require.NoError(t, refill(d), "nothing is left to write")
	d = w.projected(n)
	require.NoError(t, os.Remove(d.Path(MetaFile)))
	before := contents(t, d)
	require.NoError(t, refill(d))
	require.Equal(t, before, contents(t, d), "repair-state repairs it")
}
