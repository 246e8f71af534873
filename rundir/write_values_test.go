package rundir

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// writer writes a journal.
type writer struct {
	t     *testing.T
	lines []string
	phase string
	store blobStore // nil: no test reads blobs
}

func (w *writer) add(kind run.Kind, payload any) int64 {
	w.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(w.t, err)
	seq := int64(len(w.lines) + 1)
	e := run.Event{Seq: seq, TS: fmt.Sprintf("2026-01-02T03:04:%02d.000Z", seq), Kind: kind, Payload: raw}
	if w.phase != "" {
		e.Phase = &w.phase
	}
	line, err := e.Line()
	require.NoError(w.t, err)
	w.lines = append(w.lines, line)
	return seq
}

// dir is a directory with the journal and other files.
func (w *writer) dir(files map[string]string) Dir {
	w.t.Helper()
	d := At(w.t.TempDir())
	text := ""
	for _, line := range w.lines {
		text += line + "\n"
	}
	if text != "" {
		files[EventsFile] = text
	}
	for name, data := range files {
		require.NoError(w.t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
		require.NoError(w.t, os.WriteFile(d.Path(name), []byte(data), 0o600))
	}
	return d
}

// looped is a run of two numbered passes and a loop of two rounds, with a named checkpoint and a revert to it.
func looped(t *testing.T) (w *writer, at map[string]int64) {
	w, at = &writer{t: t}, map[string]int64{}
	w.add(run.KindRunStart, run.RunStart{RunID: "r", Epoch: 1, Wording: run.WordingStages, TotalPasses: 2,
		Budget: run.Budget{CapUSD: 9},
		Stages: []run.StageRef{{Name: "write", Kind: "each"}, {Name: "audit", Kind: "repeat", Rounds: 3}}})
	w.phase = "write"
	w.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	end := func(name string, number int, p run.PassEnd) {
		p.Step, p.Number, p.Outcome = name, number, run.CategoryOK
		at[name] = w.add(run.KindPassEnd, p)
	}
	end("001", 1, run.PassEnd{Spend: run.Spend{USD: 1, Known: run.CostExact}, Next: &run.Place{Round: 1, Step: 1},
		Reply: &run.Blob{Digest: "reply"}})
	end("002", 2, run.PassEnd{Spend: run.Spend{Known: run.CostUnknown}, Next: &run.Place{Round: 1, Step: 2},
		Artifact: &run.Blob{Digest: "page"}, Modified: true, Findings: &run.Findings{Digest: "verdict"},
		Found: &run.Found{Findings: run.Findings{Digest: "found"}}})
	at["artifact"] = w.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: "002", Artifact: run.Blob{Digest: "page"}})
	score := 2.5
	at["cp-S1"] = w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 2, USD: 1, Score: &score})
	w.add(run.KindPhaseEnd, run.PhaseEnd{Key: "write", Outcome: "ok", Next: &run.Place{Stage: 1, Round: 1}})
	w.phase = "audit"
	for round := 1; round <= 2; round++ {
		w.add(run.KindPhaseStart, run.PhaseStart{Key: "audit", Title: "Audit", Round: round})
		end(fmt.Sprintf("audit/%d", round), 0, run.PassEnd{Pass: run.Pass{Round: round}, Reply: &run.Blob{Digest: "reply"},
			Next: &run.Place{Stage: 1, Round: round, Step: 1}})
		at[fmt.Sprintf("closed %d", round)] = w.add(run.KindPhaseEnd, run.PhaseEnd{Key: "audit", Outcome: "ok", Round: round,
			Repeats: true, Next: &run.Place{Stage: 1, Round: round + 1}})
		at[fmt.Sprintf("paused %d", round)] = w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
		w.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
	}
	names, err := CheckpointsOf(w.lines)
	require.NoError(t, err)
	cp, err := FindCheckpoint(t.Context(), names, "r", "cp-S1")
	require.NoError(t, err)
	state := cp.State
	state.Generation = 1
	at["reverted"] = w.add(run.KindRunReverted, run.RunReverted{To: at["cp-S1"], Cause: "revert", State: &state})
	return w, at
}

func TestCheckpointsOfJournal(t *testing.T) {
	w, at := looped(t)
	names, err := CheckpointsOf(w.lines)
	require.NoError(t, err)
	find := func(id string) int64 {
		c, err := FindCheckpoint(t.Context(), names, "r", id)
		if err != nil {
			return 0
		}
		require.Equal(t, c.Seq, c.State.Seq)
		require.Equal(t, run.Chain("").Over(w.lines[:c.Seq]), c.Chain)
		require.Equal(t, c.Seq == 1, c.Start != nil, "only the first has what the run was given")
		return c.Seq
	}
	for id, want := range map[string]int64{
		"cp-1": 1, "cp-S1": at["cp-S1"], run.UnnamedID(at["001"]): at["001"],
		run.UnnamedID(at["002"]): 0, run.UnnamedID(at["artifact"]): at["artifact"], // behind what the pass left
		"pass-1": 1, "pass-2": at["001"], "pass-3": 0, "pass-0": 0, "pass-x": 0, "other-1": 0, "round-0": 0,
		"cycle-1": 0, "round-1": at["cp-S1"], "round-2": at["paused 1"], "cycle-2": at["paused 1"], "cycle-3": at["paused 2"],
		"round-9": 0,
	} {
		require.Equal(t, want, find(id), id)
	}
	var none *NoCheckpointError
	_, err = FindCheckpoint(t.Context(), names, "r", run.UnnamedID(at["002"]))
	require.ErrorAs(t, err, &none)
	require.Equal(t, []string{run.UnnamedID(at["001"]), run.UnnamedID(at["artifact"])}, none.Near)
	_, err = FindCheckpoint(t.Context(), names, "other", "cp-1")
	require.ErrorAs(t, err, &none)
	marks, err := Marks(t.Context(), names, "r")
	require.NoError(t, err)
	for i, m := range marks {
		require.True(t, i == 0 || marks[i-1].Seq < m.Seq)
		require.Len(t, m.Sum, 16)
		c, err := m.Load(t.Context(), names, "r", m.ID)
		require.NoError(t, err)
		require.Equal(t, m.ID, c.ID)
		require.Equal(t, m.Seq, c.Seq)
		m.Sum = "0123456789abcdef"
		_, err = m.Load(t.Context(), names, "r", "x")
		require.ErrorIs(t, err, disk.ErrDamaged)
		m.Name = "gone"
		_, err = m.Load(t.Context(), names, "r", "x")
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	first, err := FindCheckpoint(t.Context(), names, "r", "cp-1")
	require.NoError(t, err)
	require.Equal(t, run.Budget{CapUSD: 9}, first.Start.Budget)
	require.Equal(t, "id-"+disk.Digest([]byte("a b"))[:16], MarkID("a b"))
	require.Equal(t, "a.b_c-d~1", MarkID("a.b_c-d~1"))
}

func TestListOfCheckpoints(t *testing.T) {
	w, at := looped(t)
	d := w.dir(map[string]string{})
	named, err := ListCheckpoints(d, false)
	require.NoError(t, err)
	score := 2.5
	want := Listed{ID: "cp-S1", CreatedAt: "2026-01-02T03:04:06.000Z", AtPass: 2, CostUSD: 1, Unknown: 1, Score: &score,
		ValidationFailures: 2, Seq: at["cp-S1"], InForce: true, Artifact: "page"}
	require.Equal(t, []Listed{want}, named)
	all, err := ListCheckpoints(d, true)
	require.NoError(t, err)
	inForce := map[int64]bool{}
	for _, l := range all {
		inForce[l.Seq] = l.InForce
		if l.Seq == at["reverted"] {
			require.Equal(t, 1, l.Generation)
		}
	}
	for seq, want := range map[int64]bool{1: true, at["001"]: true, at["cp-S1"]: true, at["paused 1"]: false,
		at["reverted"]: true} {
		require.Equal(t, want, inForce[seq], "event %d", seq)
	}
	empty, err := ListCheckpoints((&writer{t: t}).dir(map[string]string{}), true)
	require.NoError(t, err)
	require.Equal(t, []Listed{}, empty)
}

func TestFilesOfDigests(t *testing.T) {
	w, _ := looped(t)
	w.add("other", run.PassEnd{Pass: run.Pass{Number: 9}, Reply: &run.Blob{Digest: "reply"}}) // not of a pass
	pass := func(step string, number, round int) run.Pass {
		return run.Pass{Step: step, Number: number, Round: round}
	}
	state := NewState()
	state.CurrentArtifactPath, state.RunID = "page.html", "r"
	raw, err := json.Marshal(state)
	require.NoError(t, err)
	digest := func(text string) string { return disk.Digest([]byte(text)) }
	d := w.dir(map[string]string{StateFile: string(raw), "page.html": "page", DeliveryPatch: "patch"})
	for want, file := range map[string]string{digest("page"): "page.html", digest("patch"): DeliveryPatch,
		digest("other"): "", "reply": ReplyFile(pass("audit/2", 0, 2)), "": "",
		"verdict": VerdictFile(pass("002", 2, 0)), "found": FoundFile(pass("002", 2, 0))} {
		got, err := FileOf(d, want)
		require.NoError(t, err)
		require.Equal(t, file, got)
	}
	for _, row := range []struct {
		gives        string
		tree, before *run.Blob
		want         string
		ok           bool
	}{
		{"changes", &run.Blob{Digest: "new"}, &run.Blob{Digest: "old"}, "new", true},
		{"changes", nil, &run.Blob{Digest: "old"}, "old", true},
		{"changes", &run.Blob{Digest: "new"}, nil, "", false},
		{"report", &run.Blob{Digest: "new"}, &run.Blob{Digest: "old"}, "", false},
	} {
		tree, ok := TreeAfter(run.PassEnd{Pass: run.Pass{Gives: row.gives}, Tree: row.tree}, run.State{Tree: row.before})
		require.Equal(t, row.want, tree)
		require.Equal(t, row.ok, ok)
	}
}

func TestIntegrityOfCheckpointDirectory(t *testing.T) {
	dir := CheckpointDir("cp-S1")
	manifest := func(artifact, state string) string {
		return fmt.Sprintf(`{"artifactHash":%q,"stateHash":%q}`, artifact, disk.Digest([]byte(state)))
	}
	page := disk.Digest([]byte("page"))
	for want, files := range map[string]map[string]string{
		"":  {dir + "/manifest.json": manifest("", "state"), dir + "/" + StateSnapshot: "state"},
		" ": {}, // a directory that the checkpoint has none in
		"checkpoint cp-S1: manifest integrity check failed": {dir + "/manifest.json": "{"},
		"the one of its manifest (" + page[:12] + ")": {dir + "/manifest.json": manifest(page, "state"),
			dir + "/" + StateSnapshot: "state", dir + "/artifact.html": "other"},
		"state-snapshot.json is not the one of its manifest (" + disk.Digest([]byte("state"))[:12] + ")": {
			dir + "/manifest.json":    manifest("", "state"),
			dir + "/" + StateSnapshot: "other"},
	} {
		err := VerifyCheckpoint((&writer{t: t}).dir(files), "cp-S1")
		if len(want) < 2 {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, VerifyCheckpoint((&writer{t: t}).dir(map[string]string{}), "../x"))
	require.ErrorContains(t, VerifyCheckpoint((&writer{t: t}).dir(map[string]string{
		dir + "/manifest.json": manifest("", "state")}), "cp-S1"), "state integrity check failed")
}
