package rundir_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

var allDamages = flag.Bool("damages.all", false, "all damages of files and attacks, not a sample")

// everything is a run that is done, with a file of every kind: an artifact and turns, failed attempts, pictures, a
// decision, an amendment, a delivery, an edit, a second epoch.
func everything(t testing.TB, id, salt string) *story {
	s := newStory(t)
	s.id, s.salt = id, salt
	inputs := func(text string) string {
		raw, err := json.Marshal(rundir.Inputs{Version: 1,
			Files: []rundir.InputFile{{Path: "corpus/a.md", Digest: s.blobs.keep(salt + text).Digest}}})
		require.NoError(t, err)
		return s.blobs.keep(string(raw)).Digest
	}
	s.add(run.KindRunStart, run.RunStart{
		Task: "page", RunKind: "pipeline", Pipeline: "page", RunID: id, ThreadID: id, Epoch: 1, CreatedAt: moment(0),
		ConfigHash: "0123456789abcdef",
		Definition: s.blobs.keep("name: " + salt + "\nstages: []\n").Digest,
		Plan:       s.blobs.keep(`{"version":1,"name":"` + salt + `"}`).Digest,
		Policy:     s.blobs.keep(`{"agents":["` + salt + `"]}`).Digest, Inputs: inputs("a corpus"),
		Artifact:  &run.ArtifactRef{File: "artifact.html", Seed: s.blobs.keep(salt + "<html>seed</html>")},
		Workspace: &run.Workspace{Kind: "dir", Source: "/elsewhere", Tree: s.blobs.keep(salt + "tree 0")},
		Notes:     []run.NoteRef{{Name: "conviction", File: "conviction-layer.md"}},
		Budget:    run.Budget{CapUSD: 1000, WarnUSD: 800}, TotalPasses: 4, MaxRounds: 6,
	})
	s.phase = "write"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	s.pass(1)
	s.begin(about(2), 1)
	s.fail(about(2), 1)
	s.begin(about(2), 2)
	s.end(about(2), "ok", 2)
	s.checkpoint("cp-S1", 2)
	s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Cause: "edited",
		Artifact: s.blobs.keep(salt + "<html>edited</html>")})
	s.add(run.KindRunAmended, run.RunAmended{Terms: run.PlanTerms{TotalPasses: 4}, By: "op", New: run.PlanRef{
		Definition: s.blobs.keep("stages: [] # amended" + salt + "\n").Digest,
		Plan:       s.blobs.keep(`{"version":1,"amended":"` + salt + `"}`).Digest,
		Policy:     s.blobs.keep(`{"agents":["amended` + salt + `"]}`).Digest, Inputs: inputs("an amended corpus"),
		ConfigHash: "fedcba9876543210"}})
	s.pass(3)
	s.add(run.KindErrorNoted, run.ErrorNoted{Category: "file-io", Message: salt + "a disk", Recovered: true,
		Attempt: 1})
	s.turn(1, "ok", salt+"tree 1")
	s.add(run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "h-1", Phase: "write",
		Type: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved})
	s.add(run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: "continue",
		Note: salt, DecidedBy: "an operator", DecidedAt: moment(50)})
	s.cycle(1, 3.5)
	s.add(run.KindRunInterrupted, run.RunInterrupted{Reason: "gone", At: moment(99)})
	state := s.state
	s.add(run.KindRunResumed, run.RunResumed{Epoch: 2, From: run.Interrupted, State: &state})
	s.add(run.KindDeliveryCompleted, run.DeliveryCompleted{ID: "d-1", Action: "apply", Delivered: true,
		Diff: s.blobs.keep(salt + "a patch").Digest})
	s.finish(run.Done)
	return s
}

// scene is a directory of everything, with its store.
type scene struct {
	story *story
	dir   rundir.Dir
	claim run.Claim
	head  string
	files map[string]string
}

func sceneOf(t *testing.T, id, salt string) scene {
	t.Helper()
	s := everything(t, id, salt)
	sc := scene{story: s, dir: rundir.At(filepath.Join(t.TempDir(), id)), claim: claim()}
	sc.claim.RunID, sc.claim.ThreadID = id, id
	require.NoError(t, sc.dir.Take(sc.claim))
	at := slices.IndexFunc(s.lines, func(l string) bool { return strings.Contains(l, `"kind":"run.resumed"`) })
	require.Positive(t, at)
	project(t, sc.dir, s, batch(s.lines, 1, at))
	owner := rundir.Owner{Epoch: 2, RunID: id, Execution: "execution of " + id, Host: "h", OpenedAt: moment(60)}
	require.NoError(t, rundir.TakeOver(t.Context(), sc.dir, owner, tailOf(s.lines[:at])))
	b := batch(s.lines, at+1, len(s.lines))
	b.Epoch = 2
	project(t, sc.dir, s, b)
	sc.head = seal(t, s, sc.dir, len(s.lines))
	r, err := sc.dir.Result(t.Context(), s.blobs)
	require.NoError(t, err)
	require.NoError(t, sc.dir.Promoting(t.Context(), noon, func() (run.DeliveryCompleted, error) {
		return run.DeliveryCompleted{ID: "promotion-1", Action: "promote", Delivered: true, To: "file",
			Target: "/to/" + salt, Files: 1, Result: r.Digest}, nil
	}))
	sc.files = look(t, sc.dir)
	return sc
}

// names are the files that are damaged: all but the empty lock, and the link to a file that is among them.
func (sc scene) names() []string {
	var out []string
	for name, text := range sc.files {
		if !strings.HasSuffix(name, "/") && text != "" && name != rundir.SpendFile {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (sc scene) source() rundir.Source {
	return rundir.Source{Claim: sc.claim, Head: sc.head,
		Batches: []rundir.Batch{batch(sc.story.lines, 1, len(sc.story.lines))}}
}

// readTree reads the manifest of a tree that is kept as a text.
func readTree(raw []byte) error {
	var m struct {
		Tree    string   `json:"tree"`
		Entries []string `json:"entries"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	if len(m.Entries) != 1 || digestOf(m.Entries[0]) != m.Tree ||
		fmt.Sprintf("{\"version\":1,\n\"tree\":\"%s\",\n\"entries\":[\n%q\n]}\n", m.Tree, m.Entries[0]) != string(raw) {
		return disk.ErrDamaged
	}
	return nil
}

// class is the kind of a file.
func class(name string) string {
	switch {
	case strings.HasPrefix(name, "_orchestrator/logs/"), name == rundir.TracesFile, name == rundir.ProvenanceFile:
		return "logs"
	case strings.HasPrefix(name, "_orchestrator/checkpoints/"):
		return "checkpoints"
	case strings.HasPrefix(name, "snapshots/"):
		return "manifests of turns"
	case strings.HasPrefix(name, "_orchestrator/passes/"), strings.HasPrefix(name, "_orchestrator/screenshots/"),
		strings.HasPrefix(name, "_orchestrator/steps/"):
		return "evidence"
	case strings.HasPrefix(name, "_orchestrator/amended-"):
		return "amendments"
	case path.Dir(name) == "_orchestrator" && name != rundir.StateFile && name != rundir.OwnerFile,
		strings.HasPrefix(name, rundir.InputsDir), strings.HasPrefix(name, "_orchestrator/edits/"),
		strings.HasPrefix(name, "phase_handoff_decisions/"),
		name == rundir.ResultFile, name == rundir.DeliveryPatch:
		return "other files of the run"
	}
	return name
}

// damageKinds are the ways to damage a file: its text afterwards; removed: there is none.
var damageKinds = map[string]func(text, of2 string) (after string, removed bool){
	"deleted":          func(string, string) (string, bool) { return "", true },
	"cut":              func(text, _ string) (string, bool) { return text[:len(text)/2], false },
	"one byte changed": func(text, _ string) (string, bool) { return string(changedByte([]byte(text), 2)), false },
	"of another run":   func(_, of2 string) (string, bool) { return of2, false },
	"duplicated":       func(text, _ string) (string, bool) { return text + text, false },
}

// TestDamages damages a file of each kind in each way, and runs what can be run without a server: check and check
// --deep report it, status and promote return nothing wrong, repair-state and rebuild make it again as it was, and a
// command that only reads changes nothing. With -damages.all it damages every file.
func TestDamages(t *testing.T) {
	sc, other := sceneOf(t, "run-1", ""), sceneOf(t, "run-2", "other ")
	healthy := checkWith(t, sc.dir, rundir.CheckOptions{ReadTree: readTree, Deep: sc.story.blobs})
	require.Empty(t, healthy.Issues)
	classes := map[string][]string{}
	for _, name := range sc.names() {
		classes[class(name)] = append(classes[class(name)], name)
	}
	require.Len(t, classes, 13, "%v", slices.Sorted(maps.Keys(classes)))
	for _, names := range classes {
		for i, kind := range slices.Sorted(maps.Keys(damageKinds)) {
			for j, name := range names {
				if !*allDamages && j != (i*7)%len(names) {
					continue
				}
				text := sc.files[name]
				after, removed := damageKinds[kind](text, other.files[strings.ReplaceAll(name, "run-1", "run-2")])
				if !removed && (after == "" || after == text) {
					continue // this damage does not exist
				}
				t.Run(name+"/"+kind, func(t *testing.T) {
					t.Parallel()
					d := copyOf(t, sc.dir)
					if write(t, d, name, after); removed {
						remove(t, d, name)
					}
					sc.damaged(t, d, name, kind)
				})
			}
		}
	}
}

// damaged runs every command on a damaged directory.
func (sc scene) damaged(t *testing.T, d rundir.Dir, name, kind string) {
	hurt := look(t, d)
	readable := sc.checks(t, d, name, kind)
	sc.reads(t, d, name)
	require.Equal(t, hurt, look(t, d), "a command that only reads changes nothing")
	sc.rebuilds(t, copyOf(t, d), name, kind)
	if readable {
		sc.repairs(t, d, name)
	}
}

// checks requires both checks to report the damage; false: they cannot read the directory.
func (sc scene) checks(t *testing.T, d rundir.Dir, name, kind string) bool {
	plain, err := rundir.Check(t.Context(), d, rundir.CheckOptions{ReadTree: readTree})
	if err != nil {
		require.Equal(t, rundir.ClaimFile, name)
		require.ErrorContains(t, err, rundir.ClaimFile)
		return false
	}
	if name == rundir.PromotionsFile && kind != "duplicated" {
		return true // there is nothing to compare it with
	}
	require.False(t, plain.OK, "check finds nothing")
	output := ""
	for _, i := range plain.Issues {
		output += i.Message + "\n"
	}
	deep := checkWith(t, d, rundir.CheckOptions{ReadTree: readTree, Deep: sc.story.blobs})
	require.Subset(t, codesOf(deep), codesOf(plain))
	require.Contains(t, output, path.Base(name), "it names the file")
	return true
}

// reads requires the status of the healthy run, unless what it follows from is damaged, and its result or an error.
func (sc scene) reads(t *testing.T, d rundir.Dir, name string) {
	now, err := d.Now()
	sources := []string{rundir.EventsFile, rundir.MetaFile, rundir.ClaimFile}
	if !slices.Contains(sources, name) {
		require.NoError(t, err)
		require.Equal(t, run.Done, now.State.Status)
	}
	r, err := d.Result(t.Context(), sc.story.blobs)
	if err != nil {
		require.Contains(t, append(sources, rundir.ResultFile), name, "promote: %v", err)
		return
	}
	raw, err := d.ResultBytes(t.Context(), sc.story.blobs, r)
	require.NoError(t, err)
	require.Equal(t, sc.files["artifact.html"], string(raw))
}

// repairs requires a repair to restore what follows from the events, and a second one to change nothing.
func (sc scene) repairs(t *testing.T, d rundir.Dir, name string) {
	repair(t, d, sc.story.blobs)
	after := checkWith(t, d, rundir.CheckOptions{ReadTree: readTree})
	whole := sc.whole(t, d, name)
	switch name {
	case rundir.PromotionsFile: // follows from no event
	case rundir.ClaimFile, rundir.OwnerFile, "artifact.html":
		require.Equal(t, whole, after.OK)
	default:
		require.True(t, whole, "%s is not as it was", name)
		require.Empty(t, after.Issues)
	}
	repaired := look(t, d)
	require.False(t, repair(t, d, sc.story.blobs).Applied)
	require.Equal(t, repaired, look(t, d), "a second repair writes nothing")
}

// whole reports whether a file is as it was; of meta.json, whether only its segment differs.
func (sc scene) whole(t *testing.T, d rundir.Dir, name string) bool {
	raw, err := os.ReadFile(d.Path(name))
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return false
	}
	if name != rundir.MetaFile {
		return string(raw) == sc.files[name]
	}
	bare := func(text string) (m map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		delete(m, "segment_head")
		return m
	}
	require.Equal(t, bare(sc.files[name]), bare(string(raw)))
	return true
}

// rebuilds requires a rebuild from history to make the file again, or to refuse and write nothing.
func (sc scene) rebuilds(t *testing.T, d rundir.Dir, name, kind string) {
	hurt := look(t, d)
	_, err := d.Rebuild(t.Context(), sc.story.blobs, sc.source())
	switch {
	case err != nil:
		require.Contains(t, []string{rundir.EventsFile, rundir.ClaimFile, rundir.OwnerFile}, name, "rebuild: %v", err)
		require.Subset(t, look(t, d), hurt)
	case slices.Contains([]string{rundir.ClaimFile, rundir.OwnerFile, rundir.PromotionsFile, "artifact.html"}, name):
	case name == rundir.EventsFile && kind == "duplicated": // history never shortens a directory
		require.Equal(t, hurt[name], read(t, d, name))
	default:
		require.True(t, sc.whole(t, d, name), "not rebuilt")
	}
}

// TestCheckFindsEveryDamagedFile deletes each file, and changes one byte of it at two places.
func TestCheckFindsEveryDamagedFile(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	found := func() bool {
		r, err := rundir.Check(t.Context(), sc.dir, rundir.CheckOptions{ReadTree: readTree})
		return err != nil || !r.OK
	}
	for _, name := range sc.names() {
		if name == rundir.PromotionsFile {
			continue
		}
		remove(t, sc.dir, name)
		require.True(t, found(), "%s is deleted", name)
		for _, n := range []int{0, 3} {
			if raw := changedByte([]byte(sc.files[name]), n); raw != nil {
				write(t, sc.dir, name, string(raw))
				require.True(t, found(), "%s at %d/4", name, n)
			}
		}
		write(t, sc.dir, name, sc.files[name])
	}
	require.Empty(t, check(t, sc.dir).Issues)
}

// TestCheckDeep reports what is lost or damaged in the store, and nothing else.
func TestCheckDeep(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	healthy := maps.Clone(sc.story.blobs)
	for _, name := range slices.Sorted(maps.Keys(healthy)) {
		blobs := maps.Clone(healthy)
		delete(blobs, name)
		r := checkWith(t, sc.dir, rundir.CheckOptions{ReadTree: readTree, Deep: blobs})
		// of a note: the file has the whole of them
		entries := strings.Count(sc.files[rundir.EventsFile], `"entry":{"digest":"`+name)
		if used := strings.Count(sc.files[rundir.EventsFile], name) > entries ||
			strings.HasPrefix(name, "checkpoints/") || name == sc.head; used {
			require.Contains(t, codesOf(r), rundir.StoreDamaged, name)
		}
		if !strings.HasPrefix(name, "checkpoints/") {
			continue
		}
		blobs[name] = changedByte(healthy[name], 2)
		r = checkWith(t, sc.dir, rundir.CheckOptions{ReadTree: readTree, Deep: blobs})
		require.Equal(t, []rundir.Code{rundir.StoreDamaged}, codesOf(r), name)
		require.Regexp(t, `^checkpoint \S+ of event \d+ is damaged in the store: `, r.Issues[0].Message)
	}
}

// TestFindingsComeInTheOrderOfNames.
func TestFindingsComeInTheOrderOfNames(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	var missing []string
	want := []string{"_orchestrator/conviction-layer.md", "_orchestrator/inputs/corpus/a.md",
		"_orchestrator/pipeline.yaml", "_orchestrator/plan.json"}
	for _, name := range want {
		remove(t, sc.dir, name)
	}
	for _, i := range check(t, sc.dir).Issues {
		missing = append(missing, strings.TrimSuffix(i.Message, " is missing"))
	}
	require.Equal(t, want, missing)
}
