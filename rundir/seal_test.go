package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// hurt replaces a line of the journal on disk by one of the same length.
func (w *writer) hurt(d Dir, seq, last int64) []string {
	w.t.Helper()
	lines := slices.Clone(w.lines[:last])
	lines[seq-1] = strings.Replace(lines[seq-1], `"ts":"2026`, `"ts":"1999`, 1)
	require.NotEqual(w.t, w.lines[seq-1], lines[seq-1])
	write(w.t, d, EventsFile, strings.Join(lines, "\n")+"\n")
	return lines
}

func truth(lines []string, err error) Truth {
	return func(context.Context) ([]string, error) { return lines, err }
}

// seal stores the events from first to last.
func (w *writer) seal(d Dir, head string, first, last int64, truth Truth) (Sealed, error) {
	return d.Seal(w.t.Context(), w.store, Sealing{RunID: "r", Head: head, First: first, Tail: w.tail(last), Truth: truth})
}

func (w *writer) stored(head string) (s Segment) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal(w.store[head], &s))
	return s
}

// TestSegments: each has the lines as they were written, and is linked to the one before.
func TestSegments(t *testing.T) {
	w := working(t)
	d := w.projected(9)
	one, err := w.seal(d, "", 1, 4, nil)
	require.NoError(t, err)
	require.Equal(t, Sealed{Head: one.Head, Last: 4}, one)
	want := Segment{Version: 1, RunID: "r", First: 1, Last: 4, Chain: w.tail(4).Chain, Lines: w.lines[:4]}
	require.Equal(t, want, w.stored(one.Head))
	two, err := w.seal(d, one.Head, 5, 9, nil)
	require.NoError(t, err)
	require.Equal(t, Sealed{Head: two.Head, Last: 9}, two)
	next := Segment{Version: 1, RunID: "r", First: 5, Last: 9, Prev: w.tail(4).Chain, Chain: w.tail(9).Chain,
		Previous: one.Head, Lines: w.lines[4:9]}
	require.Equal(t, next, w.stored(two.Head))
	head := func() string {
		meta, err := d.Meta()
		require.NoError(t, err)
		return meta.SegmentHead
	}
	require.Equal(t, two.Head, head())
	before := contents(t, d)
	steps := 0
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpRename || s.Op == disk.OpExchange {
			steps++
		}
		return nil
	}}
	again, err := w.seal(d, one.Head, 5, 9, nil)
	require.NoError(t, err)
	require.Equal(t, two, again)
	require.Zero(t, steps, "meta.json has it already")
	none, err := w.seal(d, two.Head, 10, 9, nil)
	require.NoError(t, err)
	require.Equal(t, Sealed{Head: two.Head, Last: 9}, none)
	require.Equal(t, before, contents(t, d))

	_, err = w.seal(d, two.Head, 10, 10, nil)
	require.ErrorIs(t, err, ErrShorter)
	require.ErrorContains(t, err, d.Path(EventsFile)+" ends at event 9, before 10: ")
	_, err = w.seal(d, "", 0, 9, nil)
	require.EqualError(t, err, "store events from 0 on: the first event of a run is 1")
	other := run.Tail{Seq: 9, Chain: "other"}
	lost, err := d.Seal(t.Context(), w.store, Sealing{RunID: "r", First: 1, Tail: other})
	require.NoError(t, err)
	require.Equal(t, Sealed{Last: 0, Damage: []run.JournalDamage{{File: EventsFile, Expected: "other",
		Found: string(w.tail(9).Chain)}}}, lost)
	require.Equal(t, two.Head, head())
	_, err = d.Seal(t.Context(), fullStore{w.store}, Sealing{RunID: "r", First: 1, Tail: w.tail(9)})
	require.EqualError(t, err, "store events 1 to 9: the store is full")
	fresh := At(t.TempDir() + "/new")
	_, err = w.seal(fresh, "", 1, 3, nil)
	require.ErrorIs(t, err, ErrShorter)
}

// fullStore is a store that is full.
type fullStore struct{ blobStore }

func (fullStore) Put(context.Context, []byte) (string, error) {
	return "", errors.New("the store is full")
}

// TestSegmentsOfDamagedJournal: the lines come from the source that has them as they were written, and the damage is
// reported.
func TestSegmentsOfDamagedJournal(t *testing.T) {
	w := working(t)
	d := w.projected(9)
	one, err := w.seal(d, "", 1, 4, nil)
	require.NoError(t, err)
	line := func(seq int64, lines []string) []run.JournalDamage {
		return []run.JournalDamage{{File: EventsFile, Line: seq, Expected: disk.Digest([]byte(w.lines[seq-1])),
			Found: disk.Digest([]byte(lines[seq-1]))}}
	}
	of := func(lines []string) []run.JournalDamage {
		return []run.JournalDamage{{File: EventsFile, Expected: string(w.tail(9).Chain),
			Found: string(run.Chain("").Over(lines))}}
	}
	gone := []run.JournalDamage{{File: run.SegmentFile + "gone", Expected: "gone", Found: run.Missing}}
	broken := errors.New("no connection")
	for name, row := range map[string]struct {
		head   string
		seq    int64 // of the line that is damaged; 0: none
		truth  Truth
		damage func(lines []string) []run.JournalDamage
		first  int64 // of the segment; 0: nothing is stored
		err    error
	}{
		"a line of an earlier segment": {one.Head, 3, nil,
			func(l []string) []run.JournalDamage { return line(3, l) }, 5, nil},
		"a new line": {one.Head, 6, nil, of, 0, nil},
		"a new line that history has": {one.Head, 6, truth(w.lines, nil),
			func(l []string) []run.JournalDamage { return line(6, l) }, 5, nil},
		"history is another":      {one.Head, 6, truth(slices.Repeat([]string{"{}"}, 9), nil), of, 0, nil},
		"history has a gap":       {one.Head, 6, truth(nil, &HistoryGapError{}), of, 0, nil},
		"history lacks a segment": {one.Head, 6, truth(nil, fs.ErrNotExist), of, 0, nil},
		"history cannot be read":  {one.Head, 6, truth(nil, broken), nil, 0, broken},
		"the segment is lost":     {"gone", 0, nil, func([]string) []run.JournalDamage { return gone }, 1, nil},
		"segment and line are lost": {"gone", 3, truth(w.lines, nil),
			func(l []string) []run.JournalDamage { return append(slices.Clone(gone), line(3, l)...) }, 1, nil},
	} {
		d := w.projected(9)
		lines := w.lines[:9]
		if row.seq > 0 {
			lines = w.hurt(d, row.seq, 9)
		}
		got, err := w.seal(d, row.head, 5, 9, row.truth)
		if row.err != nil {
			require.ErrorIs(t, err, row.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, row.damage(lines), got.Damage, name)
		if row.first == 0 {
			require.Equal(t, row.head, got.Head, name)
			require.Equal(t, int64(4), got.Last, name)
			continue
		}
		s := w.stored(got.Head)
		require.Equal(t, row.first, s.First, name)
		require.Equal(t, int64(9), s.Last, name)
		require.Equal(t, int64(9), got.Last, name)
		require.Equal(t, w.lines[row.first-1:9], s.Lines, name)
		require.Equal(t, w.tail(row.first-1).Chain, s.Prev, name)
		require.Equal(t, row.first == 1, s.Previous == "", name)
	}
	crashed := w.projected(8)
	write(t, crashed, EventsFile, strings.Join(w.lines[:9], "\n")+"\n")
	again, err := w.seal(w.projected(8), "", 1, 4, nil)
	require.NoError(t, err)
	require.Equal(t, one.Head, again.Head)
	_, err = w.seal(crashed, "", 1, 4, nil)
	require.NoError(t, err)
	w.consistent(crashed, 9)
	write(t, crashed, EventsFile, strings.Join(w.lines[:10], "\n")+"\n")
	_, err = w.seal(crashed, "", 1, 4, nil)
	require.NoError(t, err)
	w.consistent(crashed, 10)
	other := working(t)
	other.lines[1] = strings.Replace(other.lines[1], "Write", "Other", 1)
	others, err := other.seal(other.projected(4), "", 1, 4, nil)
	require.NoError(t, err)
	w.store[others.Head] = other.store[others.Head]
	got, err := w.seal(w.projected(9), others.Head, 5, 9, nil)
	require.NoError(t, err)
	require.Equal(t, int64(1), w.stored(got.Head).First, "the segment before is of another journal")
	require.Empty(t, w.stored(got.Head).Previous)
	late, err := json.Marshal(Segment{Version: 1, RunID: "r", First: 3, Last: 4, Prev: w.tail(2).Chain,
		Chain: w.tail(4).Chain, Lines: w.lines[2:4]})
	require.NoError(t, err)
	head := w.store.keep(t, string(late)).Digest
	got, err = w.seal(w.projected(9), head, 5, 9, nil)
	require.NoError(t, err)
	require.Equal(t, run.SegmentFile+head, got.Damage[0].File, "the first segment does not begin at the first event")
	two, err := w.seal(w.projected(9), one.Head, 3, 9, nil)
	require.NoError(t, err)
	require.Equal(t, int64(1), w.stored(two.Head).First, "the segment before does not end there")
}

// TestVerifiedBatches: before the run continues after a pause, and at its end, the journal is compared with its chain
// and its segments, and damage is reported with the line that differs.
func TestVerifiedBatches(t *testing.T) {
	chain := func(w *writer, lines []string) run.JournalDamage {
		n := int64(len(lines))
		return run.JournalDamage{File: EventsFile, Expected: string(w.tail(n).Chain),
			Found: string(run.Chain("").Over(lines))}
	}
	third := func(w *writer, lines []string) run.JournalDamage {
		return run.JournalDamage{File: EventsFile, Line: 3, Expected: disk.Digest([]byte(w.lines[2])),
			Found: disk.Digest([]byte(lines[2]))}
	}
	gone := func(*writer, []string) run.JournalDamage {
		return run.JournalDamage{File: run.SegmentFile + "gone", Expected: "gone", Found: run.Missing}
	}
	history := func(w *writer) Truth { return truth(w.lines, nil) }
	ended, passEnd := run.RunEnd{Status: run.Failed}, run.PassEnd{Pass: numbered(2, "report")}
	for name, row := range map[string]struct {
		kind     run.Kind // empty: the run resumes
		payload  any
		hurt     bool // the third line
		segment  string
		truth    func(*writer) Truth
		verified bool
		damage   func(*writer, []string) run.JournalDamage
		err      error
	}{
		"nothing is wrong":                {segment: "sealed"},
		"a segment is lost":               {segment: "gone", damage: gone},
		"a line that a segment has":       {hurt: true, segment: "sealed", damage: third},
		"a line that the history has":     {hurt: true, truth: history, damage: third},
		"a line, when the run resumes":    {hurt: true, damage: chain},
		"a line, at the end of the run":   {kind: run.KindRunEnd, payload: ended, hurt: true, damage: chain},
		"a line, at the end of a pass":    {kind: run.KindPassEnd, payload: passEnd, hurt: true, damage: chain},
		"damage that the journal records": {hurt: true, verified: true},
		"a history that cannot be read": {hurt: true, err: fs.ErrPermission,
			truth: func(*writer) Truth { return truth(nil, fs.ErrPermission) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := working(t)
			w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
			n := w.last()
			if row.kind == "" {
				row.kind, row.payload = run.KindRunResumed, run.RunResumed{Epoch: 1}
			}
			w.add(row.kind, row.payload)
			d, lines := w.projected(n), w.lines[:n]
			b := w.batch(n+1, n+1)
			b.Head, b.Verified = row.segment, row.verified
			if row.segment == "sealed" {
				sealed, err := w.seal(d, "", 1, n, nil)
				require.NoError(t, err)
				b.Head = sealed.Head
			}
			if row.truth != nil {
				b.Truth = row.truth(w)
			}
			if row.hurt {
				lines = w.hurt(d, 3, n)
			}
			p, err := d.Project(t.Context(), w.store, b)
			require.ErrorIs(t, err, row.err)
			switch {
			case row.err != nil:
			case row.damage == nil:
				require.Equal(t, run.ProjectionWritten, p.Outcome)
			default:
				require.Equal(t, Projected{Outcome: run.ProjectionDamaged, Tail: w.tail(n),
					Damage: []run.JournalDamage{row.damage(w, lines)}}, p)
			}
		})
	}
}

// TestChainOfDamagedLinesStays: batches after a damaged line continue the chain of the lines as they were written, so a
// check still finds the line.
func TestChainOfDamagedLinesStays(t *testing.T) {
	for name, row := range map[string]struct {
		folds *Folds
		state string // state.json before the last batch; empty: it stays
	}{
		"folded again":                 {},
		"in memory":                    {folds: new(Folds)},
		"with another file":            {state: "{"},
		"with another file, in memory": {folds: new(Folds), state: "{"},
	} {
		t.Run(name, func(t *testing.T) {
			w := working(t)
			w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
			n := w.last()
			w.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
			w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
			w.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
			d := w.projected(n)
			d.Folds = row.folds
			w.hurt(d, 3, n)
			for i := n + 1; i <= w.last(); i++ {
				if row.state != "" && i == w.last() {
					write(t, d, StateFile, row.state)
				}
				b := w.batch(i, i)
				b.Verified = true
				p, err := d.Project(t.Context(), w.store, b)
				require.NoError(t, err)
				require.Equal(t, run.ProjectionWritten, p.Outcome)
				meta, err := d.Meta()
				require.NoError(t, err)
				require.Equal(t, w.tail(i), run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain})
			}
		})
	}
}

// TestEpochOfUnseenLines: an epoch counts from the line that begins it, also if a killed worker has exported nothing of it.
func TestEpochOfUnseenLines(t *testing.T) {
	w := working(t)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	n := w.last()
	w.add(run.KindRunResumed, run.RunResumed{Epoch: 2, Waits: true})
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	d := w.projected(n)
	write(t, d, EventsFile, strings.Join(w.lines[:n+1], "\n")+"\n")
	b := w.batch(n+2, n+2)
	b.Epoch = 1
	p, err := d.Project(t.Context(), w.store, b)
	require.NoError(t, err)
	require.Equal(t, run.ProjectionNewer, p.Outcome)
	b.Epoch = 2
	p, err = d.Project(t.Context(), w.store, b)
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
}
