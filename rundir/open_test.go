package rundir

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// short is the first part of a digest, as in the names of files that were moved.
func short(text string) string { return disk.Digest([]byte(text))[:8] }

// TestDamagedFilesAreMadeAgain: the next batch makes damaged files again, names them, and keeps what was in the way.
func TestDamagedFilesAreMadeAgain(t *testing.T) {
	w := working(t)
	b := w.batch(1, 9)
	b.Head = "segment"
	fresh := func(m *Folds) Dir {
		d := claimed(t)
		d.Folds = m
		_, err := d.Project(t.Context(), w.store, b)
		require.NoError(t, err)
		return d
	}
	undisturbed := fresh(nil)
	then := contents(t, undisturbed)
	require.Equal(t, 1, strings.Count(then[ErrorsLog], "\n"), "the attempt that the pass recovered")
	w.project(undisturbed, w.last())
	want := contents(t, undisturbed)
	const torn, prompt = TornDir, PassesDir + "/pass-001/prompt.md"
	const writer, another, other = ", in the same process", ", in another process", `{"version":1,"run_id":"other"}`
	log, cost := then[TextLog], then[CostLog]
	edited := strings.Replace(then[StateFile], `"turns": 1`, `"turns": 7`, 1)
	require.NotEqual(t, then[StateFile], edited)
	older := strings.Replace(then[StateFile], `"lastSeq": 9`, `"lastSeq": 8`, 1)
	require.NotEqual(t, then[StateFile], older)
	unsealed := func(meta string) string {
		return strings.Replace(meta, `"segment_head": "segment"`, `"segment_head": ""`, 1)
	}
	for name, row := range map[string]struct {
		file, text string // removed if empty
		healed     string
		kept       map[string]string
		lost       bool   // the newest segment
		only       string // in a process that has written the directory, or in another one
	}{
		"nothing":              {"unknown", "", "", nil, false, ""},
		"meta.json is missing": {MetaFile, "", "", nil, true, ""},
		"meta.json is garbage": {MetaFile, "{", "^.*/meta.json is damaged: ",
			map[string]string{torn + "/meta-damaged-" + short("{") + ".json": "{"}, true, ""},
		"meta.json is of another run": {MetaFile, other,
			"^.*/meta.json is damaged: it is of run other: made again from the events$",
			map[string]string{torn + "/meta-damaged-" + short(other) + ".json": other}, true, ""},
		"state.json is missing": {StateFile, "", "^_orchestrator/state.json is missing: made again from the events$",
			nil, false, ""},
		"state.json is garbage": {StateFile, "{", "^.*/state.json is damaged: ",
			map[string]string{torn + "/_orchestrator-state-damaged-" + short("{") + ".json": "{"}, false, ""},
		"state.json is edited": {StateFile, edited, "^_orchestrator/state.json is not what was written: made again " +
			"from the events$",
			map[string]string{torn + "/_orchestrator-state-damaged-" + short(edited) + ".json": edited}, false, ""},
		"state.json is older": {StateFile, older, "is not what was written",
			map[string]string{torn + "/_orchestrator-state-damaged-" + short(older) + ".json": older}, false, ""},
		"a log is shorter": {TextLog, log[:9], "orchestrator.log .*: made again from ", nil, false, ""},
		"a log is missing": {TextLog, "", "orchestrator.log .*: made again from ", nil, false, ""},
		"a log is another": {CostLog, "{}\n", "cost.jsonl is shorter than what was written: made again from ",
			map[string]string{torn + "/_orchestrator-logs-cost-damaged-" + short("{}\n") + ".jsonl": "{}\n"}, false, ""},
		"a log has more": {TextLog, log + "more\n", "log has other rows than were written: made again from ", map[string]string{
			torn + "/_orchestrator-logs-orchestrator-damaged-" + short(log+"more\n") + ".log": log + "more\n"}, false, ""},
		"a log has the next line": {TextLog, want[TextLog], "", nil, false, ""},
		"a log has the next line, and a piece": {TextLog, want[TextLog] + "{", "", map[string]string{
			TextLog: want[TextLog] + "{"}, false, writer},
		"a log has the next line, a piece": {TextLog, want[TextLog] + "{", "has other rows", map[string]string{
			torn + "/_orchestrator-logs-orchestrator-damaged-" + short(want[TextLog]+"{") + ".log": want[TextLog] + "{"},
			false, another},
		"a log has half of the next": {TextLog, want[TextLog][:len(log)+9], "", nil, false, ""},
		"a log without news has more": {CostLog, cost + "more\n", "", map[string]string{
			CostLog: cost + "more\n", SpendFile: cost + "more\n"}, false, writer},
		"a log without news has other rows": {CostLog, cost + "more\n", "has other rows", map[string]string{
			torn + "/_orchestrator-logs-cost-damaged-" + short(cost+"more\n") + ".jsonl": cost + "more\n"}, false, another},
		"a prompt was changed": {prompt, "mine", "pass-001/prompt.md is not what the run recorded: ", map[string]string{
			torn + "/" + strings.ReplaceAll(strings.TrimSuffix(prompt, ".md"), "/", "-") + "-damaged-" + short("mine") +
				".md": "mine"}, false, another},
	} {
		for process, memory := range map[string]*Folds{another: nil, writer: new(Folds)} {
			if row.only != "" && row.only != process {
				continue
			}
			t.Run(name+process, func(t *testing.T) {
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
					if row.lost && file == MetaFile {
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
		write(t, d, EventsFile, text)
		n := int64(strings.Count(text, "\n"))
		p, err := d.Project(t.Context(), w.store, w.batch(10, 10))
		require.NoError(t, err)
		require.Equal(t, Projected{Outcome: run.ProjectionBehind, Tail: w.tail(n)}, p, name)
		require.Equal(t, []string{"events.jsonl is shorter than its mark in meta.json: made again from the events"},
			w.project(d, 10).Healed)
		got, want := contents(t, d), contents(t, w.projected(10))
		for file := range want {
			require.Equal(t, want[file], got[file], name)
		}
	}
	d := w.projected(9)
	write(t, d, MetaFile, `{"version":99}`)
	_, err := d.Project(t.Context(), w.store, w.batch(10, 10))
	require.ErrorAs(t, err, new(*NewerError))
}

// TestOccasionsOfState: when a batch writes state.json.
func TestOccasionsOfState(t *testing.T) {
	running := func(passes int) run.State {
		return run.State{Status: run.Running, Passes: run.PassCount{LastSettled: passes}}
	}
	paused := running(2001)
	paused.Status = run.Paused
	for name, row := range map[string]struct {
		s    run.State
		kind run.Kind
		want bool
	}{
		"1,000 passes":            {running(1000), run.KindPassEnd, true},
		"1,001 passes":            {running(1001), run.KindPassEnd, false},
		"1,002 passes":            {running(1002), run.KindPassEnd, true},
		"2,001 passes, a third":   {running(2001), run.KindPassEnd, true},
		"2,002 passes":            {running(2002), run.KindPassEnd, false},
		"passes and rounds":       {run.State{Status: run.Replaying, Passes: run.PassCount{LastSettled: 1000}, Rounds: 3}, "x", false},
		"a pause":                 {paused, run.KindPassEnd, true},
		"a checkpoint":            {running(1001), run.KindCheckpointCreated, true},
		"a start":                 {running(1001), run.KindRunStart, true},
		"a revert":                {running(1001), run.KindRunReverted, true},
		"an event beside a pause": {running(2002), run.KindNoteAppended, false},
	} {
		w := &exporter{fold: newFold(listed{}), wrote: map[string]bool{}}
		require.NoError(t, w.take([]string{`{"kind":"other"}`, `{"kind":"` + string(row.kind) + `"}`}))
		w.fold.Header.State = row.s
		require.Equal(t, row.want, w.due(), name)
	}
}

// TestLogsWithOtherContents: rows that do not belong to the run are moved, also from a log that was empty.
func TestLogsWithOtherContents(t *testing.T) {
	w := working(t)
	d := w.projected(3)
	write(t, d, CostLog, "mine\n")
	w.project(d, 4)
	got, want := contents(t, d), contents(t, w.projected(4))
	moved := TornDir + "/_orchestrator-logs-cost-damaged-" + short("mine\n") + ".jsonl"
	require.Equal(t, "mine\n", got[moved])
	delete(got, moved)
	require.Equal(t, want, got)
	d = w.projected(3)
	require.NoError(t, os.Remove(d.Path(CostLog)))
	require.Empty(t, w.project(d, 4).Healed, "an empty log is missing")
	require.Equal(t, want, contents(t, d))
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
		require.Equal(t, before[MetaFile], contents(t, d)[MetaFile])
	}
	d := w.projected(6)
	bad := event(t, 7, run.KindScreenshots, run.Screenshots{Count: 1, Manifest: run.Blob{Digest: "gone"}})
	line, err := bad.Line()
	require.NoError(t, err)
	b := w.batch(7, 7)
	b.Lines = []string{line}
	_, err = d.Project(t.Context(), w.store, b)
	require.ErrorContains(t, err, "what follows from event 7 (screenshots")
}
