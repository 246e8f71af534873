package projector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
)

// revert goes back to the state after an event.
func (w *writer) revert(to int64) {
	w.t.Helper()
	fold := run.NewFold(run.State{}, run.History{})
	generation := 0
	for i, line := range w.lines {
		e, err := run.ParseLine(line)
		require.NoError(w.t, err)
		if e.Kind == run.KindRunReverted {
			generation++
		}
		if int64(i) < to {
			fold.Apply(e)
		}
	}
	state := fold.Current().Clone()
	state.Generation = generation + 1
	w.add(run.KindRunReverted, run.RunReverted{To: to, Cause: "revert", State: &state})
}

// below are the files of a folder, without its name.
func below(files map[string]string, folder string) map[string]string {
	in := map[string]string{}
	for name, text := range files {
		if rest, is := strings.CutPrefix(name, folder+"/"); is {
			in[rest] = text
		}
	}
	return in
}

// detour is a run that continues after its checkpoint: a failed attempt, pictures, an artifact, and two checkpoints.
func detour(t *testing.T) *writer {
	w := working(t)
	w.fail(numbered(2, "report"))
	w.begin(numbered(2, "report"), "page 1")
	w.settle(numbered(2, "report"), "")
	shot := w.store.keep(t, "a picture").Digest
	shots, err := json.Marshal([]run.Shot{{Name: "a.png", Digest: shot}})
	require.NoError(t, err)
	w.add(run.KindScreenshots, run.Screenshots{Dir: "shots", Count: 1, Manifest: w.store.keep(t, string(shots))})
	w.begin(numbered(3, "artifact"), "page 1")
	w.settle(numbered(3, "artifact"), "page 3")
	w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-PAUSE-1", AtPass: 3})
	w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S2", AtPass: 3})
	return w
}

// TestFilesOfRevert: a revert moves the evidence that it supersedes to folders with its number, keeps the rest, and
// restores the evidence of events that are in force again.
func TestFilesOfRevert(t *testing.T) {
	w := detour(t)
	far := w.last()
	before := contents(t, w.projected(far))
	w.revert(9)
	first := w.last()
	w.begin(numbered(2, "report"), "page 1")
	w.fail(numbered(2, "report"))
	again := w.last()
	w.revert(far)
	second := w.last()
	half := fmt.Sprintf("half of 002 at %d", again-1)

	for name, ends := range map[string][]int64{"at once": {second}, "one batch each": {far, first, again, second},
		"in the middle": {again, second}} {
		d := claimed(t)
		for _, end := range ends[:len(ends)-1] {
			w.project(d, end)
		}
		if name == "one batch each" {
			w.reverted(t, before, first, again, half)
		}
		w.project(d, second)
		got := contents(t, d)
		require.Equal(t, below(before, layout.PassesDir+"/pass-001"), below(got, layout.PassesDir+"/pass-001"))
		for _, folder := range []string{"passes/pass-002", "passes/pass-003", "shots", "checkpoints/cp-S1",
			"checkpoints/cp-S2", "checkpoints/cp-PAUSE-1"} {
			in := layout.Orchestrator + "/" + folder
			require.Equal(t, below(before, in), below(got, in), "%s: %s is in force again", name, folder)
		}
		for _, folder := range []string{"passes/pass-002", "passes/pass-003", "shots", "checkpoints/cp-S2"} {
			in := layout.Orchestrator + "/" + folder
			require.Equal(t, below(before, in), below(got, in+"~1"), "%s: %s was superseded", name, folder)
		}
		require.Equal(t, map[string]string{"prompt.md": "prompt of 002", "raw-output-FAILED.txt": half},
			below(got, layout.PassesDir+"/pass-002~2"), name)
		require.Equal(t, "page 3", got["page.html"])
		state, err := d.State()
		require.NoError(t, err)
		require.Equal(t, map[string]int{layout.PassesDir + "/pass-002": 2, layout.PassesDir + "/pass-003": 1,
			layout.Orchestrator + "/shots": 1, layout.CheckpointDir("cp-S2"): 1}, state.Superseded, name)
		require.Equal(t, 2, state.Turns)
		var ids []string
		for _, c := range state.Checkpoints {
			ids = append(ids, c.ID)
		}
		require.Equal(t, []string{"cp-S1", "cp-PAUSE-1", "cp-S2"}, ids)
	}
}

// reverted checks the directory after the first revert, and after the pass that was repeated.
func (w *writer) reverted(t *testing.T, before map[string]string, first, again int64, half string) {
	t.Helper()
	got := contents(t, w.projected(first))
	for folder, moved := range map[string]bool{"passes/pass-001": false, "passes/pass-002": true, "passes/pass-003": true,
		"shots": true, "checkpoints/cp-S1": false, "checkpoints/cp-S2": true, "checkpoints/cp-PAUSE-1": false} {
		in := layout.Orchestrator + "/" + folder
		require.NotEmpty(t, below(before, in), folder)
		if moved {
			require.Empty(t, below(got, in), folder)
			in += "~1"
		}
		require.Equal(t, below(before, strings.TrimSuffix(in, "~1")), below(got, in), folder)
	}
	require.Equal(t, "page 1", got["page.html"])
	require.Equal(t, map[string]string{"prompt.md": "prompt of 002", "raw-output-FAILED.txt": half},
		below(contents(t, w.projected(again)), layout.PassesDir+"/pass-002"))
}

// TestFailedOutputsOfRevert: outputs of attempts that are still in force keep their numbers and places.
func TestFailedOutputsOfRevert(t *testing.T) {
	w := working(t)
	pass2 := numbered(2, "report")
	w.fail(pass2) // 11
	w.fail(pass2)
	w.add(run.KindPassAttempt, run.PassAttempt{Pass: pass2, Category: run.CategoryAgentTimeout})
	late := w.store.keep(t, "late")
	w.add(run.KindPassAttempt, run.PassAttempt{Pass: pass2, Category: run.CategorySuperseded, Output: &late, Late: 1})
	to := w.last()
	w.fail(pass2)
	w.revert(to)
	got := contents(t, w.projected(w.last()))
	const dir = layout.PassesDir + "/pass-002"
	require.Equal(t, map[string]string{"prompt.md": "prompt of 002", "raw-output-FAILED.txt": "half of 002 at 10",
		"raw-output-FAILED-2.txt": "half of 002 at 11", "raw-output-SUPERSEDED-1.txt": "late"}, below(got, dir))
	require.Equal(t, map[string]string{"raw-output-FAILED-3.txt": "half of 002 at 14"}, below(got, dir+"~1"))

	one := working(t)
	one.fail(pass2)
	one.revert(10)
	one.revert(11)
	got = contents(t, one.projected(one.last()))
	require.Equal(t, map[string]string{"prompt.md": "prompt of 002", "raw-output-FAILED.txt": "half of 002 at 10"},
		below(got, dir), "one event is in force again")
	require.Equal(t, map[string]string{"raw-output-FAILED.txt": "half of 002 at 10"}, below(got, dir+"~1"))

	d := detour(t)
	far := d.last()
	d.revert(9)
	d.begin(pass2, "page 1")
	d.revert(far)
	in := d.projected(d.last() - 1)
	edited := map[string]string{layout.PassesDir + "/pass-001/prompt.md": "an edit",
		layout.CheckpointDir("cp-PAUSE-1") + "/log.md": "an edit"}
	for name, text := range edited {
		write(t, in, name, text)
	}
	d.project(in, d.last())
	got = contents(t, in)
	for name, text := range edited {
		require.Equal(t, text, got[name], "it was not superseded, so it is not replaced")
	}
	in = d.projected(d.last() - 1)
	write(t, in, dir+"~2", "a file in the way")
	_, err := in.Project(t.Context(), d.store, d.batch(d.last(), d.last()))
	require.ErrorContains(t, err, "move "+dir+"/prompt.md aside: ")
}

// TestStartsInForce: a start whose attempt has failed does not keep the prompt, because a later start has replaced it.
func TestStartsInForce(t *testing.T) {
	start := event(t, 1, run.KindPassStart, run.PassStart{Call: "a"})
	attempt := func(a run.PassAttempt) run.Event { return event(t, 2, run.KindPassAttempt, a) }
	other := event(t, 3, run.KindPhaseEnd, run.PhaseEnd{})
	next := event(t, 4, run.KindPassStart, run.PassStart{Call: "b", Agent: "a"})
	for name, row := range map[string]struct {
		attempt run.Event
		kept    bool
	}{
		"it has failed":      {attempt(run.PassAttempt{Call: "a", Attempt: 1, Output: blob("out")}), false},
		"another has failed": {attempt(run.PassAttempt{Call: "c", Message: "a", Output: blob("out")}), true},
		"it has no output":   {attempt(run.PassAttempt{Call: "a", Prompt: blob("asked")}), true},
		"it was too late":    {attempt(run.PassAttempt{Call: "a", Late: 1, Output: blob("out")}), true},
		"it has ended":       {event(t, 2, run.KindPassEnd, run.PassEnd{Call: "a"}), true},
	} {
		want := []int64{1, 2, 3, 4}
		if !row.kept {
			want = want[1:]
		}
		var seqs []int64
		for _, e := range lastStarts([]run.Event{start, row.attempt, other, next}) {
			seqs = append(seqs, e.Seq)
		}
		require.Equal(t, want, seqs, name)
	}
}

// TestRevertToLaterEvent: a damaged revert that names itself or a later event goes back to the event before it.
func TestRevertToLaterEvent(t *testing.T) {
	for _, ahead := range []int64{0, 1, 90} {
		w := working(t)
		w.fail(numbered(2, "report"))
		before := contents(t, w.projected(11))
		state := run.State{RunID: "r", Epoch: 1, Generation: 1, Status: run.Running}
		w.add(run.KindRunReverted, run.RunReverted{To: 12 + ahead, Cause: "revert", State: &state})
		d := w.projected(12)
		got := contents(t, d)
		require.Equal(t, below(before, layout.PassesDir), below(got, layout.PassesDir))
		require.Equal(t, below(before, layout.CheckpointsDir), below(got, layout.CheckpointsDir))
		records, err := d.State()
		require.NoError(t, err)
		require.Len(t, records.Checkpoints, 1)
		require.Len(t, records.PassRecords, 1)
		require.Len(t, records.PendingErrors, 1)
	}
}

// TestNumbersOfSupersededFolders: the folder of a checkpoint counts although a crash came after all of its files were
// moved, and one that an event in force has too stays.
func TestNumbersOfSupersededFolders(t *testing.T) {
	created := func(id string) run.Event {
		return event(t, 1, run.KindCheckpointCreated, run.CheckpointCreated{ID: id})
	}
	d := At(t.TempDir())
	both := layout.CheckpointDir("cp-both")
	write(t, d, both+"/manifest.json", "{}")
	p := &Projector{Dir: d}
	p.records.Superseded = map[string]int{layout.CheckpointDir("cp-gone"): 2}
	require.NoError(t, p.supersede([]run.Event{created("cp-gone"), created("cp-both")}, []run.Event{created("cp-both")},
		nil))
	require.Equal(t, map[string]int{layout.CheckpointDir("cp-gone"): 3}, p.records.Superseded)
	require.Equal(t, map[string]string{both + "/manifest.json": "{}"}, contents(t, d))
}

// TestRecordsOfRevert: a revert restores the records of its target, except for facts that it does not undo.
func TestRecordsOfRevert(t *testing.T) {
	w := working(t)
	w.fail(numbered(2, "report")) // 11
	w.begin(numbered(2, "report"), "page 1")
	w.fail(numbered(2, "report")) // 13
	w.revert(11)
	d := w.projected(w.last())
	got, err := d.State()
	require.NoError(t, err)
	then, err := w.projected(11).State()
	require.NoError(t, err)
	now, err := w.projected(13).State()
	require.NoError(t, err)
	require.Len(t, then.PendingErrors, 1)
	require.Len(t, now.PendingErrors, 2)
	require.Equal(t, then.PendingErrors, got.PendingErrors, "its pass has not ended")
	require.Equal(t, append(now.ErrorHistory, now.PendingErrors[1]), got.ErrorHistory)
	require.Equal(t, then.PassRecords, got.PassRecords)
	require.Equal(t, then.FailedOutputs, got.FailedOutputs)
	require.Equal(t, then.Checkpoints, got.Checkpoints)
	require.Equal(t, 1, got.Turns)

	p := &Projector{Dir: d}
	p.records.Turns = 8
	require.NoError(t, p.revertRecords(event(t, 14, run.KindRunReverted, run.RunReverted{To: 3})))
	require.Equal(t, 8, p.records.Turns, "a revert without a state changes nothing")
	past, err := p.recordsAt(100)
	require.NoError(t, err)
	require.Equal(t, w.last(), past.LastSeq)
	for last, want := range map[int64]int{0: 0, 8: 0, 9: 1, 13: 1} {
		past, err := p.recordsAt(last)
		require.NoError(t, err)
		require.Len(t, past.Checkpoints, want)
		require.Equal(t, last, past.LastSeq)
	}
}

// TestFilesThatAreSuperseded: which files the events of a pass have written.
func TestFilesThatAreSuperseded(t *testing.T) {
	store := blobStore{}
	shots := store.keep(t, `[{"name":"a.png"},{"name":"b.png"}]`)
	bad := store.keep(t, "{")
	pass := numbered(7, "artifact")
	group := run.Pass{Step: "audit", Member: "A", Role: "auditor", Gives: "report", Dir: "c1"}
	const dir, round = layout.PassesDir + "/pass-007/", layout.Orchestrator + "/c1/"
	out := blob("out")
	event := func(kind run.Kind, payload any) run.Event { return event(t, 1, kind, payload) }
	attempt := func(late int, out *run.Blob) run.Event {
		return event(run.KindPassAttempt, run.PassAttempt{Pass: pass, Output: out, Late: late})
	}
	failed := func(n string) []string {
		return []string{dir + "raw-output-" + n + ".txt", dir + "prompt-" + n + ".md", dir + "agent-" + n + ".jsonl"}
	}
	for name, row := range map[string]struct {
		events  []run.Event
		before  int
		names   []string
		folders []string
	}{
		"a start": {events: []run.Event{event(run.KindPassStart, run.PassStart{Pass: pass})},
			names: []string{dir + "prompt.md", dir + "artifact-backup.html"}},
		"a start of a report": {events: []run.Event{event(run.KindPassStart, run.PassStart{Pass: group})},
			names: []string{round + "A-prompt.md"}},
		"the same start again": {events: []run.Event{event(run.KindPassStart, run.PassStart{Pass: group}),
			event(run.KindPassStart, run.PassStart{Pass: group})}, names: []string{round + "A-prompt.md"}},
		"attempts": {events: []run.Event{attempt(0, out), attempt(0, nil), attempt(3, out), attempt(0, out)}, before: 4,
			names: slices.Concat(failed("FAILED-5"), failed("SUPERSEDED-3"), failed("FAILED-6"))},
		"a late attempt after others": {events: []run.Event{attempt(0, out), attempt(0, out), attempt(1, out)},
			names: slices.Concat(failed("FAILED"), failed("FAILED-2"), failed("SUPERSEDED-1"))},
		"the first attempt": {events: []run.Event{attempt(0, out)}, names: failed("FAILED")},
		"an end": {events: []run.Event{event(run.KindPassEnd, run.PassEnd{Pass: group})},
			names: []string{round + "A-report.md", round + "A-agent.jsonl", round + "A-verdict.json",
				round + "A-findings.json"}},
		"pictures": {events: []run.Event{event(run.KindScreenshots, run.Screenshots{Dir: "c1", Count: 2, Manifest: shots})},
			names: []string{round + "manifest.json", round + "a.png", round + "b.png"}},
		"no pictures": {events: []run.Event{event(run.KindScreenshots, run.Screenshots{Dir: "c1", Manifest: shots})}},
		"lost pictures": {events: []run.Event{event(run.KindScreenshots, run.Screenshots{Dir: "c1", Count: 1,
			Manifest: run.Blob{Digest: "gone"}})}},
		"checkpoints": {events: []run.Event{event(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1"}),
			event(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-PAUSE-2"}),
			event(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-none"})},
			names:   []string{layout.CheckpointDir("cp-S1") + "/manifest.json"},
			folders: []string{layout.CheckpointDir("cp-S1"), layout.CheckpointDir("cp-none")}},
		"others": {events: []run.Event{event(run.KindArtifactUpdated, run.ArtifactUpdated{}),
			event(run.KindNoteAppended, run.NoteAppended{File: "log.md"})}},
	} {
		d := At(t.TempDir())
		write(t, d, layout.CheckpointDir("cp-S1")+"/manifest.json", "{}")
		write(t, d, layout.CheckpointDir("cp-S1")+"/folder/file", "an operator's")
		p := &Projector{Ctx: t.Context(), Dir: d, Blobs: store}
		p.records.CurrentArtifactPath = "page.html"
		got, err := p.evidenceFiles(row.events, map[string]int{records.FailedKey(pass): row.before})
		require.NoError(t, err, name)
		require.Equal(t, row.names, got.names, name)
		require.Equal(t, row.folders, got.folders, name)
	}
	p := &Projector{Ctx: t.Context(), Blobs: store}
	damaged := event(run.KindScreenshots, run.Screenshots{Count: 1, Manifest: bad})
	require.ErrorContains(t, p.supersede([]run.Event{damaged}, nil, nil), "manifest of pictures "+bad.Digest+": ")
	require.ErrorContains(t, p.supersede(nil, []run.Event{damaged}, nil), "manifest of pictures "+bad.Digest+": ")
	for id, want := range map[string]bool{"cp-PAUSE-1": true, "cp-REVERT-1": true, "cp-S1": false, "cp-4": false} {
		require.Equal(t, want, Lasting(id), id)
	}
	for _, kind := range run.Kinds() {
		require.Equal(t, slices.Contains([]run.Kind{run.KindPassStart, run.KindPassAttempt, run.KindPassEnd,
			run.KindScreenshots, run.KindCheckpointCreated}, kind), evident(kind), kind)
	}
}

// TestMovesAfterCrash: a move that was made is not made again, and a superseded file is replaced only in a rebuild.
func TestMovesAfterCrash(t *testing.T) {
	const from, to = layout.PassesDir + "/pass-002/prompt.md", layout.PassesDir + "/pass-002~1/prompt.md"
	for name, row := range map[string]struct {
		files map[string]string
		anew  bool
		want  map[string]string
	}{
		"a move":              {map[string]string{from: "old"}, false, map[string]string{to: "old"}},
		"a move that is made": {map[string]string{to: "old"}, false, map[string]string{to: "old"}},
		"another file there":  {map[string]string{from: "new", to: "old"}, false, map[string]string{from: "new", to: "old"}},
		"a rebuild":           {map[string]string{from: "new", to: "old"}, true, map[string]string{to: "new"}},
	} {
		d := At(t.TempDir())
		for file, text := range row.files {
			write(t, d, file, text)
		}
		require.NoError(t, (&Projector{Dir: d, anew: row.anew}).moveSuperseded(from, to), name)
		require.Equal(t, row.want, contents(t, d), name)
	}
	d := At(t.TempDir())
	write(t, d, from, "old")
	write(t, d, layout.PassesDir+"/pass-002~1", "a file in the way")
	p := &Projector{Dir: d}
	p.records.Superseded = map[string]int{}
	err := p.supersede([]run.Event{event(t, 3, run.KindPassStart, run.PassStart{Pass: numbered(2, "report")})}, nil, nil)
	require.ErrorContains(t, err, "move "+from+" aside: ")
}
