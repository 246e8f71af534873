package projector

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// short is the first part of a digest, as in the names of files that were moved.
func short(text string) string { return disk.Digest([]byte(text))[:8] }

// TestDamagedFilesAreMadeAgain: the next batch makes damaged files again, names them, and keeps what was in the way.
func TestDamagedFilesAreMadeAgain(t *testing.T) {
	w := working(t)
	b := w.batch(1, 9)
	b.Head = "segment"
	fresh := func(m *Memory) Dir {
		d := claimed(t)
		d.Memory = m
		_, err := d.Project(t.Context(), w.store, b)
		require.NoError(t, err)
		return d
	}
	undisturbed := fresh(nil)
	then := contents(t, undisturbed)
	require.Equal(t, 1, strings.Count(then[layout.ErrorsLog], "\n"), "the attempt that the pass recovered")
	w.project(undisturbed, w.last())
	want := contents(t, undisturbed)
	const torn = layout.TornDir
	log, cost := then[layout.TextLog], then[layout.CostLog]
	edited := strings.Replace(then[layout.StateFile], `"turns": 1`, `"turns": 7`, 1)
	require.NotEqual(t, then[layout.StateFile], edited)
	older := strings.Replace(then[layout.StateFile], `"lastSeq": 9`, `"lastSeq": 8`, 1)
	require.NotEqual(t, then[layout.StateFile], older)
	unsealed := func(meta string) string {
		meta, _, _ = strings.Cut(meta, `"digest": `)
		return strings.Replace(meta, `"segment_head": "segment"`, `"segment_head": ""`, 1)
	}
	for name, row := range map[string]struct {
		file, text string // removed if empty
		healed     string
		kept       map[string]string
		lost       bool // the newest segment and the digests
	}{
		"nothing":              {"unknown", "", "", nil, false},
		"meta.json is missing": {layout.MetaFile, "", "", nil, true},
		"meta.json is garbage": {layout.MetaFile, "{", "^.*/meta.json is damaged: ", nil, true},
		"meta.json is of another run": {layout.MetaFile, `{"version":1,"run_id":"other"}`,
			"^.*/meta.json is damaged: it is of run other: made again from events.jsonl$", nil, true},
		"state.json is missing": {layout.StateFile, "", "^open .*state.json: .*: made again from events.jsonl$", nil, false},
		"state.json is garbage": {layout.StateFile, "{", "^.*/state.json is damaged: ", nil, false},
		"state.json is edited": {layout.StateFile, edited, "^.*/state.json is damaged: its checksum is not the one in " +
			"meta.json: made again from events.jsonl$",
			map[string]string{torn + "/state-damaged-" + short(edited) + ".json": edited}, false},
		"state.json is older": {layout.StateFile, older, "", nil, false},
		"a log is shorter": {layout.TextLog, log[:9], "^a log is shorter than its mark in meta.json: made again from ",
			nil, false},
		"a log is missing": {layout.TextLog, "", "^a log is shorter than its mark in meta.json: made again", nil, false},
		"a log is another": {layout.CostLog, "{}\n", "^a log is shorter than its mark in meta.json: made again from ",
			map[string]string{torn + "/cost-damaged-" + short("{}\n") + ".jsonl": "{}\n"}, false},
		"a log has more": {layout.TextLog, log + "more\n", "", map[string]string{
			torn + "/orchestrator-after-" + strconv.Itoa(len(log)) + "-" + short("more\n") + ".log": "more\n"}, false},
		"a log has the next line": {layout.TextLog, want[layout.TextLog], "", nil, false},
		"a log has the next line, and a piece": {layout.TextLog, want[layout.TextLog] + "{", "", map[string]string{
			layout.TextLog: want[layout.TextLog] + "{"}, false},
		"a log has half of the next": {layout.TextLog, want[layout.TextLog][:len(log)+9], "", nil, false},
		"a log without news has more": {layout.CostLog, cost + "more\n", "", map[string]string{
			layout.CostLog: cost + "more\n", layout.SpendFile: cost + "more\n"}, false},
	} {
		for remembers, memory := range map[string]*Memory{"": nil, ", remembered": new(Memory)} {
			t.Run(name+remembers, func(t *testing.T) {
				d := fresh(memory)
				if row.text == "" {
					require.NoError(t, os.RemoveAll(d.Path(row.file)))
				} else {
					write(t, d, row.file, row.text)
				}
				p, err := d.Project(t.Context(), w.store, w.batch(10, 10))
				require.NoError(t, err)
				require.Equal(t, run.ProjectionWritten, p.Outcome)
				if row.healed == "" {
					require.Empty(t, p.Healed)
				} else {
					require.Len(t, p.Healed, 1)
					require.Regexp(t, regexp.MustCompile(row.healed), p.Healed[0])
				}
				got := contents(t, d)
				for file, text := range want {
					if row.lost && file == layout.MetaFile {
						require.Equal(t, unsealed(text), unsealed(got[file]))
						require.Contains(t, got[file], `"segment_head": ""`)
					} else if _, there := row.kept[file]; !there {
						require.Equal(t, text, got[file], file)
					}
				}
				for file, text := range row.kept {
					require.Equal(t, text, got[file], file)
				}
				require.Len(t, got, len(want)+added(row.kept, want))
			})
		}
	}
}

// added is the number of files that are not in want.
func added(kept, want map[string]string) (n int) {
	for file := range kept {
		if _, there := want[file]; !there {
			n++
		}
	}
	return n
}

// TestShorterJournal: a directory that lacks lines of its meta.json has a gap, and the end that was committed counts.
func TestShorterJournal(t *testing.T) {
	w := working(t)
	for name, text := range map[string]string{"shorter": strings.Join(w.lines[:5], "\n") + "\n",
		"in the middle of a line": strings.Join(w.lines, "\n")[:len(strings.Join(w.lines[:9], "\n"))]} {
		d := w.projected(9)
		write(t, d, layout.EventsFile, text)
		n := int64(strings.Count(text, "\n"))
		p, err := d.Project(t.Context(), w.store, w.batch(10, 10))
		require.NoError(t, err)
		require.Equal(t, Projected{Outcome: run.ProjectionGap, Tail: w.tail(n)}, p, name)
		opened, err := d.Open(t.Context(), w.store)
		require.NoError(t, err)
		require.Equal(t, []string{"events.jsonl is shorter than its mark in meta.json: made again from events.jsonl"},
			opened.healed)
		require.Equal(t, int64(9), opened.beyond.Events.Seq)
		require.Equal(t, opened.healed, w.project(d, 10).Healed)
		got, want := contents(t, d), contents(t, w.projected(10))
		for file := range want {
			require.Equal(t, want[file], got[file], name)
		}
	}
	d := w.projected(9)
	write(t, d, layout.MetaFile, `{"version":99}`)
	_, err := d.Open(t.Context(), w.store)
	require.ErrorAs(t, err, new(*layout.NewerError))
}

// TestStateBehindMeta: in a run of many passes state.json is written at occasions, and meta.json has the records
// without their lists.
func TestStateBehindMeta(t *testing.T) {
	w := working(t)
	w.settle(numbered(2, "report"), "") // 11
	w.begin(numbered(3, "report"), "page 1")
	w.settle(numbered(3, "report"), "") // 13
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	w.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
	want := contents(t, w.projected(14))
	behind := func(d Dir) int64 {
		meta, err := d.Meta()
		require.NoError(t, err)
		if meta.Behind == nil {
			return 0
		}
		r := meta.Behind.Records
		for _, list := range []int{len(r.PassRecords), len(r.PACycleRecords), len(r.ArtifactBackups), len(r.Checkpoints),
			len(r.ErrorHistory), len(r.Cost.BySubset), len(r.Cost.ByPACycle)} {
			require.Zero(t, list)
		}
		require.True(t, r.Valid())
		require.Equal(t, "r", r.RunID)
		return meta.Behind.Seq
	}
	fresh := func() Dir {
		d := claimed(t)
		d.FullRecords = 1
		w.project(d, 10)
		require.Zero(t, behind(d))
		for last := int64(11); last < 14; last++ {
			w.project(d, last)
			require.Equal(t, int64(10), behind(d))
		}
		return d
	}
	whole := contents(t, fresh())
	for name, row := range map[string]struct {
		hurt   func(d Dir)
		healed string
	}{
		"nothing": {func(Dir) {}, ""},
		"state.json is missing": {func(d Dir) { require.NoError(t, os.Remove(d.Path(layout.StateFile))) },
			"state.json: no such"},
		"state.json is edited": {func(d Dir) {
			write(t, d, layout.StateFile, strings.Replace(whole[layout.StateFile], `"turns": 1`, `"turns": 7`, 1))
		}, "its checksum is not the one in meta.json"},
		"a log is shorter": {func(d Dir) { write(t, d, layout.TextLog, whole[layout.TextLog][:9]) },
			"a log is shorter than its mark in meta.json"},
	} {
		d := fresh()
		row.hurt(d)
		p := w.project(d, 14)
		require.Zero(t, behind(d), name)
		require.Contains(t, strings.Join(p.Healed, "\n"), row.healed, name)
		require.Equal(t, row.healed == "", len(p.Healed) == 0, name)
		got := contents(t, d)
		for file := range want {
			require.Equal(t, want[file], got[file], "%s: %s", name, file)
		}
		w.project(d, 15)
		require.Equal(t, int64(14), behind(d), "a resumed run")
	}
	d := claimed(t)
	d.FullRecords = 1
	w.project(d, 12)
	require.Zero(t, behind(d), "the first batch")
	d = claimed(t)
	d.FullRecords = 1
	w.project(d, 10)
	w.project(d, 12)
	require.NoError(t, os.Remove(d.Path(layout.StateFile)))
	p, err := d.Project(t.Context(), w.store, w.batch(13, 13))
	require.NoError(t, err)
	require.Empty(t, p.Healed, "meta.json has what the batch needs")
	require.NoFileExists(t, d.Path(layout.StateFile))
	d = claimed(t)
	d.FullRecords = 1
	w.project(d, 10)
	w.project(d, 12)
	write(t, d, layout.TextLog, whole[layout.TextLog][:9])
	require.Len(t, w.project(d, 13).Healed, 1)
	require.Zero(t, behind(d), "it was made again from the first event")
	require.Equal(t, whole[layout.TextLog], contents(t, d)[layout.TextLog])
}

// TestOccasionsOfState: when a batch writes state.json.
func TestOccasionsOfState(t *testing.T) {
	passes := run.PassCount{LastSettled: 6}
	for name, row := range map[string]struct {
		s    run.State
		kind run.Kind
		most int
		want bool
	}{
		"few passes":            {run.State{Status: run.Running, Passes: passes, Rounds: 4}, run.KindPassEnd, 10, true},
		"many passes":           {run.State{Status: run.Running, Passes: passes, Rounds: 4}, run.KindPassEnd, 9, false},
		"many passes, replayed": {run.State{Status: run.Replaying, Passes: passes, Rounds: 4}, run.KindPassEnd, 9, false},
		"a pause":               {run.State{Status: run.Paused, Passes: passes}, run.KindPassEnd, 1, true},
		"a checkpoint":          {run.State{Status: run.Running, Passes: passes}, run.KindCheckpointCreated, 1, true},
		"a start":               {run.State{Status: run.Running, Passes: passes}, run.KindRunStart, 1, true},
		"a revert":              {run.State{Status: run.Running, Passes: passes}, run.KindRunReverted, 1, true},
		"the usual maximum": {run.State{Status: run.Running, Passes: run.PassCount{LastSettled: 200}}, run.KindNoteAppended,
			0, true},
		"more than that": {run.State{Status: run.Running, Passes: run.PassCount{LastSettled: 201}}, run.KindNoteAppended, 0,
			false},
	} {
		p := &Projector{Dir: Dir{FullRecords: row.most}}
		p.meta.State = row.s
		if row.kind != run.KindPassEnd { // the fold of an event may change the state
			p.unseen = []run.Event{{Kind: "other"}, {Kind: row.kind}}
		}
		require.Equal(t, row.want, p.due(), name)
	}
}

// TestLogsWithOtherContents: rows that do not belong to the run are moved, also from a log that was empty.
func TestLogsWithOtherContents(t *testing.T) {
	w := working(t)
	d := w.projected(3)
	write(t, d, layout.CostLog, "mine\n")
	w.project(d, 4)
	got, want := contents(t, d), contents(t, w.projected(4))
	moved := layout.TornDir + "/cost-after-0-" + short("mine\n") + ".jsonl"
	require.Equal(t, "mine\n", got[moved])
	delete(got, moved)
	require.Equal(t, want, got)
	d = w.projected(3)
	require.NoError(t, os.Remove(d.Path(layout.CostLog)))
	require.Empty(t, w.project(d, 4).Healed, "an empty log is missing")
	require.Equal(t, want, contents(t, d))

	p := &Projector{last: 7}
	after := func(c run.Chain) run.Chain { return c.Over([]string{"row"}) }
	for name, row := range map[string]struct{ mark, want rundir.DerivedMark }{
		"the first rows": {rundir.DerivedMark{}, rundir.DerivedMark{Size: 4, Seq: 7, Chain: after("")}},
		"rows": {rundir.DerivedMark{Size: 9, Chain: "c"},
			rundir.DerivedMark{Size: 13, Seq: 7, Chain: after("c")}},
		"of an earlier release": {rundir.DerivedMark{Size: 1, Seq: 2}, rundir.DerivedMark{Size: 5, Seq: 7}},
	} {
		p.meta.Derived = nil
		row.mark.File, row.want.File = "log", "log"
		p.setMark(row.mark)
		require.Equal(t, row.want, p.grown("log", []byte("row\n")), name)
	}
}

// TestLostBlobs: a batch whose files the store lacks is an error, and nothing is committed.
func TestLostBlobs(t *testing.T) {
	w := working(t)
	delete(w.store, disk.Digest([]byte("page 1")))
	for _, first := range []int64{1, 7} {
		d := claimed(t)
		if first > 1 {
			w.project(d, first-1)
		}
		before := contents(t, d)
		_, err := d.Project(t.Context(), w.store, w.batch(first, 7))
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, d.Path("page.html")+": ")
		require.Equal(t, before[layout.MetaFile], contents(t, d)[layout.MetaFile])
	}
	d := w.projected(6)
	bad := event(t, 7, run.KindScreenshots, run.Screenshots{Count: 1, Manifest: run.Blob{Digest: "gone"}})
	line, err := bad.Line()
	require.NoError(t, err)
	b := w.batch(7, 7)
	b.Lines = []string{line}
	_, err = d.Project(t.Context(), w.store, b)
	require.ErrorContains(t, err, "write what follows from event 7 (screenshots")
}

// TestDigestsOfRebuiltDirectories: the digest of run.json is that of its first batch, although everything else is made
// again.
func TestDigestsOfRebuiltDirectories(t *testing.T) {
	w := working(t)
	d := w.projected(9)
	claim := contents(t, d)[layout.ClaimFile]
	write(t, d, layout.ClaimFile, claim+"\n")
	require.NoError(t, os.Remove(d.Path(layout.StateFile)))
	_, err := d.Project(t.Context(), w.store, w.batch(10, 10))
	require.NoError(t, err)
	meta, err := d.Meta()
	require.NoError(t, err)
	require.Equal(t, map[string]string{layout.ClaimFile: disk.Digest([]byte(claim))}, meta.Digests)
}
