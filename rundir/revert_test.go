package rundir

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		require.Equal(t, below(before, PassesDir+"/pass-001"), below(got, PassesDir+"/pass-001"))
		for _, folder := range []string{"passes/pass-002", "passes/pass-003", "shots", "checkpoints/cp-S1",
			"checkpoints/cp-S2", "checkpoints/cp-PAUSE-1"} {
			in := Orchestrator + "/" + folder
			require.Equal(t, below(before, in), below(got, in), "%s: %s is in force again", name, folder)
		}
		for _, folder := range []string{"passes/pass-002", "passes/pass-003", "shots", "checkpoints/cp-S2"} {
			in := Orchestrator + "/" + folder
			require.Equal(t, below(before, in), below(got, in+"~1"), "%s: %s was superseded", name, folder)
		}
		require.Equal(t, map[string]string{"prompt.md": "prompt of 002", "raw-output-FAILED.txt": half},
			below(got, PassesDir+"/pass-002~2"), name)
		require.Equal(t, "page 3", got["page.html"])
		state, err := d.State()
		require.NoError(t, err)
		require.Equal(t, map[string]int{PassesDir + "/pass-002": 2, PassesDir + "/pass-003": 1,
			Orchestrator + "/shots": 1, CheckpointDir("cp-S2"): 1}, state.Superseded, name)
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
		in := Orchestrator + "/" + folder
		require.NotEmpty(t, below(before, in), folder)
		if moved {
			require.Empty(t, below(got, in), folder)
			in += "~1"
		}
		require.Equal(t, below(before, strings.TrimSuffix(in, "~1")), below(got, in), folder)
	}
	require.Equal(t, "page 1", got["page.html"])
	require.Equal(t, map[string]string{"prompt.md": "prompt of 002", "raw-output-FAILED.txt": half},
		below(contents(t, w.projected(again)), PassesDir+"/pass-002"))
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
	const dir = PassesDir + "/pass-002"
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
	in := claimed(t)
	in.Folds = new(Folds)
	d.project(in, d.last()-1)
	edited := map[string]string{PassesDir + "/pass-001/prompt.md": "an edit",
		CheckpointDir("cp-PAUSE-1") + "/log.md": "an edit"}
	for name, text := range edited {
		write(t, in, name, text)
	}
	d.project(in, d.last())
	got = contents(t, in)
	for name, text := range edited {
		require.Equal(t, text, got[name], "it was not superseded, so it is not replaced")
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
		require.Equal(t, below(before, PassesDir), below(got, PassesDir))
		require.Equal(t, below(before, CheckpointsDir), below(got, CheckpointsDir))
		records, err := d.State()
		require.NoError(t, err)
		require.Len(t, records.Checkpoints, 1)
		require.Len(t, records.PassRecords, 1)
		require.Len(t, records.PendingErrors, 1)
	}
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
}

func TestLastingCheckpoints(t *testing.T) {
	for id, want := range map[string]bool{"cp-PAUSE-1": true, "cp-REVERT-1": true, "cp-S1": false, "cp-4": false} {
		require.Equal(t, want, Lasting(id), id)
	}
}
