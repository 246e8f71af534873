package fsck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// everything is a run that is done, with a file of every kind: an artifact and turns, failed attempts, pictures, a
// decision, a delivery, an edit, a second epoch.
func everything(t testing.TB, id, salt string) *story {
	s := newStory(t)
	s.id, s.salt = id, salt
	inputs, err := json.Marshal(rundir.Inputs{Version: 1,
		Files: []rundir.InputFile{{Path: "corpus/a.md", Digest: s.blobs.keep(salt + "a corpus").Digest}}})
	require.NoError(t, err)
	s.add(run.KindRunStart, run.RunStart{
		Task: "page", RunKind: "pipeline", Pipeline: "page", RunID: id, ThreadID: id, Epoch: 1, CreatedAt: moment(0),
		ConfigHash: "0123456789abcdef",
		Definition: s.blobs.keep("name: " + salt + "\nstages: []\n").Digest,
		Plan:       s.blobs.keep(`{"version":1,"name":"` + salt + `"}`).Digest,
		Policy:     s.blobs.keep(`{"agents":["` + salt + `"]}`).Digest, Inputs: s.blobs.keep(string(inputs)).Digest,
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
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 2, USD: s.state.Total()})
	s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Cause: "edited",
		Artifact: s.blobs.keep(salt + "<html>edited</html>")})
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
	s.phase = ""
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	s.send()
	return s
}

// scene is a directory of everything, with its store.
type scene struct {
	story *story
	dir   projector.Dir
	claim run.Claim
	head  string
	files map[string]string
}

func sceneOf(t *testing.T, id, salt string) scene {
	t.Helper()
	s := everything(t, id, salt)
	sc := scene{story: s, dir: projector.At(filepath.Join(t.TempDir(), id)), claim: claim()}
	sc.claim.RunID, sc.claim.ThreadID = id, id
	require.NoError(t, sc.dir.Take(sc.claim))
	at := slices.IndexFunc(s.lines, func(l string) bool { return strings.Contains(l, `"kind":"run.resumed"`) })
	require.Positive(t, at)
	project(t, sc.dir, s, batch(s.lines, 1, at))
	tail := run.Tail{Seq: int64(at), Chain: run.Chain("").Over(s.lines[:at])}
	owner := rundir.Owner{Epoch: 2, RunID: id, Execution: "execution of " + id, Host: "h", OpenedAt: moment(60)}
	require.NoError(t, fsck.TakeOver(t.Context(), sc.dir, owner, tail))
	b := batch(s.lines, at+1, len(s.lines))
	b.Epoch = 2
	project(t, sc.dir, s, b)
	end := run.Tail{Seq: int64(len(s.lines)), Chain: run.Chain("").Over(s.lines)}
	sealed, err := sc.dir.Seal(t.Context(), s.blobs, projector.Sealing{RunID: id, First: 1, Tail: end})
	require.NoError(t, err)
	sc.head = sealed.Head
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
		if !strings.HasSuffix(name, "/") && text != "" && name != layout.SpendFile {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (sc scene) source() projector.Source {
	return projector.Source{Claim: sc.claim, Head: sc.head,
		Batches: []projector.Batch{batch(sc.story.lines, 1, len(sc.story.lines))}}
}

// copied is the directory once more, without what hurts it.
func (sc scene) copied(t *testing.T) projector.Dir {
	t.Helper()
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, os.CopyFS(d.Root, os.DirFS(sc.dir.Root)))
	return d
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
		return layout.ErrDamaged
	}
	return nil
}

// damages are the ways to damage a file. They give false where there is nothing to damage.
func damages(other scene) []struct {
	name string
	do   func(d projector.Dir, name string, n int) bool
} {
	put := func(d projector.Dir, name string, raw []byte) bool {
		return os.WriteFile(d.Path(name), raw, 0o600) == nil
	}
	read := func(d projector.Dir, name string) []byte {
		raw, err := os.ReadFile(d.Path(name))
		if err != nil {
			return nil
		}
		return raw
	}
	return []struct {
		name string
		do   func(d projector.Dir, name string, n int) bool
	}{
		{"deleted", func(d projector.Dir, name string, _ int) bool { return os.Remove(d.Path(name)) == nil }},
		{"cut", func(d projector.Dir, name string, _ int) bool {
			raw := read(d, name)
			return len(raw) > 1 && put(d, name, raw[:len(raw)/2])
		}},
		{"one byte changed", func(d projector.Dir, name string, n int) bool {
			return put(d, name,
				changedByte(read(d, name), n))
		}},
		{"another run's", func(d projector.Dir, name string, _ int) bool {
			text, there := other.files[strings.ReplaceAll(name, "run-1", "run-2")]
			return there && text != string(read(d, name)) && put(d, name, []byte(text))
		}},
		{"duplicated", func(d projector.Dir, name string, _ int) bool {
			raw := read(d, name)
			return put(d, name, append(bytes.Clone(raw), raw...))
		}},
	}
}

// changedByte changes a letter or digit near the n-th quarter; the size stays.
func changedByte(raw []byte, n int) []byte {
	out := bytes.Clone(raw)
	for i := range out {
		at := (len(out)*n/4 + i) % len(out)
		if c := out[at]; c >= 'a' && c <= 'y' || c >= '0' && c <= '8' {
			out[at]++
			return out
		}
	}
	return nil
}

// class names a file as testdata/injuries.md does.
func class(name string) string {
	switch {
	case strings.HasPrefix(name, "_orchestrator/logs/"), name == layout.TracesFile, name == layout.ProvenanceFile:
		return "logs, traces.jsonl, provenance.jsonl"
	case strings.HasPrefix(name, "_orchestrator/checkpoints/"):
		return "checkpoints/<id>/*"
	case strings.HasPrefix(name, "snapshots/"):
		return "snapshots/turn-N/manifest.json"
	case strings.HasPrefix(name, "_orchestrator/passes/"), strings.HasPrefix(name, "_orchestrator/screenshots/"),
		strings.HasPrefix(name, "_orchestrator/steps/"):
		return "evidence of passes, pictures"
	case path.Dir(name) == "_orchestrator" && name != layout.StateFile && name != layout.OwnerFile,
		strings.HasPrefix(name, layout.InputsDir), strings.HasPrefix(name, "_orchestrator/edits/"),
		strings.HasPrefix(name, "phase_handoff_decisions/"),
		name == layout.ResultFile, name == layout.DeliveryPatch:
		return "plan, policy, definition, inputs, notes, edits, decisions, result.json, delivery.patch"
	}
	return name
}

// cell is what one damage to one file comes to.
type cell struct {
	codes  []fsck.Code // of a check; nil: it finds nothing
	failed bool        // the check cannot read the directory, and names the file
	whole  bool        // after a repair the file is as it was
}

// unseen are the damages that leave nothing to compare with.
func unseen(name, how string) bool {
	return name == layout.PromotionsFile && (how == "deleted" || how == "one byte changed" || how == "another run's") ||
		name == layout.PromotionsFile && how == "cut"
}

// TestDamages damages every file of a directory in every way, and runs what can be run without a server: check and
// check --deep name it, status and promote give nothing wrong, repair-state and rebuild make it again as it was, and
// whatever only reads changes nothing.
func TestDamages(t *testing.T) {
	sc, other := sceneOf(t, "run-1", ""), sceneOf(t, "run-2", "other ")
	healthy, err := fsck.Check(t.Context(), sc.dir.Dir, fsck.CheckOptions{ReadTree: readTree, Deep: sc.story.blobs})
	require.NoError(t, err)
	require.Empty(t, healthy.Issues)
	classes := map[string]bool{}
	for _, name := range sc.names() {
		classes[class(name)] = true
		for _, how := range damages(other) {
			t.Run(name+"/"+how.name, func(t *testing.T) {
				t.Parallel()
				d := sc.copied(t)
				if !how.do(d, name, 2) {
					return
				}
				sc.damaged(t, d, name, how.name)
			})
		}
	}
	require.Len(t, classes, 12, "%v", slices.Sorted(maps.Keys(classes)))
}

// damaged runs every verb on a damaged directory.
func (sc scene) damaged(t *testing.T, d projector.Dir, name, how string) cell {
	hurt := look(t, d)
	c := sc.checks(t, d, name, how)
	sc.reads(t, d, name)
	require.Equal(t, hurt, look(t, d), "what only reads changes nothing")
	sc.rebuilds(t, d, name, how)
	if c.failed {
		return c
	}
	sc.repairs(t, d, name, &c)
	return c
}

// checks wants both checks to name the damage.
func (sc scene) checks(t *testing.T, d projector.Dir, name, how string) (c cell) {
	plain, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{ReadTree: readTree})
	if err != nil {
		require.Equal(t, layout.ClaimFile, name)
		require.ErrorContains(t, err, layout.ClaimFile)
		return cell{failed: true}
	}
	if unseen(name, how) {
		return c
	}
	require.False(t, plain.OK, "check finds nothing")
	output := ""
	for _, i := range plain.Issues {
		output += i.Message + "\n"
	}
	deep, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{ReadTree: readTree, Deep: sc.story.blobs})
	require.NoError(t, err)
	require.Subset(t, codesOf(deep), codesOf(plain))
	require.Contains(t, output, path.Base(name), "it names the file")
	c.codes = codesOf(plain)
	return c
}

// reads wants status to say what it says of the healthy run, unless what it reads is damaged, and promote to give the
// result or nothing.
func (sc scene) reads(t *testing.T, d projector.Dir, name string) {
	now, err := d.Now()
	switch name {
	case layout.EventsFile, layout.MetaFile, layout.ClaimFile:
	default:
		require.NoError(t, err)
		require.Equal(t, run.Done, now.State.Status)
	}
	r, err := d.Result(t.Context(), sc.story.blobs)
	if err != nil {
		require.Contains(t, []string{layout.EventsFile, layout.MetaFile, layout.ClaimFile, layout.ResultFile}, name,
			"promote: %v", err)
		return
	}
	raw, err := d.ResultBytes(t.Context(), sc.story.blobs, r)
	require.NoError(t, err)
	require.Equal(t, sc.files["artifact.html"], string(raw))
}

// repairs wants a repair to bring back what follows from the events, and a second one to change nothing.
func (sc scene) repairs(t *testing.T, from projector.Dir, name string, c *cell) {
	d := projector.At(filepath.Join(t.TempDir(), "repaired"))
	require.NoError(t, os.CopyFS(d.Root, os.DirFS(from.Root)))
	o := fsck.RepairOptions{Apply: true, Blobs: sc.story.blobs, Now: noon, By: "tests", ReadTree: readTree}
	_, err := fsck.Repair(t.Context(), d, o)
	require.NoError(t, err)
	c.whole = sc.whole(t, d, name)
	after, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{ReadTree: readTree})
	require.NoError(t, err)
	switch name {
	case layout.PromotionsFile: // no event gives it
	case layout.ClaimFile, layout.OwnerFile, "artifact.html":
		require.Equal(t, c.whole, after.OK)
	default:
		require.True(t, c.whole, "%s is not as it was", name)
		require.Empty(t, after.Issues)
	}
	repaired := look(t, d)
	again, err := fsck.Repair(t.Context(), d, o)
	require.NoError(t, err)
	require.False(t, again.Applied)
	require.Equal(t, repaired, look(t, d), "a second repair writes nothing")
}

// whole says that a file is as it was; of meta.json, that nothing in it is different but the segment that it names.
func (sc scene) whole(t *testing.T, d projector.Dir, name string) bool {
	raw, err := os.ReadFile(d.Path(name))
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return false
	}
	if name != layout.MetaFile {
		return string(raw) == sc.files[name]
	}
	bare := func(text string) string {
		var m map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		delete(m, "segment_head")
		delete(m, "digest")
		out, err := json.Marshal(m)
		require.NoError(t, err)
		return string(out)
	}
	return bare(sc.files[name]) == bare(string(raw))
}

// rebuilds wants a rebuild from history to make the same again, or to refuse and write nothing.
func (sc scene) rebuilds(t *testing.T, from projector.Dir, name, how string) {
	d := projector.At(filepath.Join(t.TempDir(), "rebuilt"))
	require.NoError(t, os.CopyFS(d.Root, os.DirFS(from.Root)))
	hurt := look(t, d)
	_, err := d.Rebuild(t.Context(), sc.story.blobs, sc.source())
	if err == nil {
		err = fsck.RewriteDerived(t.Context(), d, sc.story.blobs, readTree)
	}
	switch {
	case err != nil:
		require.Contains(t, []string{layout.EventsFile, layout.ClaimFile, layout.OwnerFile}, name, "rebuild: %v", err)
		now := look(t, d)
		for file, text := range hurt {
			require.Equal(t, text, now[file], file)
		}
	case slices.Contains([]string{layout.ClaimFile, layout.OwnerFile, layout.PromotionsFile, "artifact.html"}, name):
	case name == layout.EventsFile && how == "duplicated": // history never shortens a directory
		require.Equal(t, hurt[name], look(t, d)[name])
	default:
		require.True(t, sc.whole(t, d, name), "%s %s: not rebuilt", name, how)
	}
}

// TestCheckSeesEqualSizeEdits changes one byte of each file at three places: no edit that keeps a file's size goes
// unnoticed.
func TestCheckSeesEqualSizeEdits(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	var missed []string
	for _, name := range sc.names() {
		for n := range 3 {
			raw := changedByte([]byte(sc.files[name]), n)
			if raw == nil || name == layout.PromotionsFile {
				continue
			}
			require.NoError(t, os.WriteFile(sc.dir.Path(name), raw, 0o600))
			r, err := fsck.Check(t.Context(), sc.dir.Dir, fsck.CheckOptions{ReadTree: readTree})
			if err == nil && r.OK {
				missed = append(missed, fmt.Sprintf("%s at %d/4", name, n))
			}
		}
		require.NoError(t, os.WriteFile(sc.dir.Path(name), []byte(sc.files[name]), 0o600))
	}
	require.Empty(t, missed)
	require.Empty(t, check(t, sc.dir).Issues)
}

// TestCheckMissesBothMainFiles: with events.jsonl and meta.json gone, a directory that holds more than a claim is
// damaged.
func TestCheckMissesBothMainFiles(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	remove(t, sc.dir, layout.EventsFile)
	remove(t, sc.dir, layout.MetaFile)
	require.Contains(t, codesOf(check(t, sc.dir)), fsck.StreamMissing)
	claimed := projector.At(t.TempDir())
	require.NoError(t, claimed.Take(claim()))
	require.Empty(t, check(t, claimed).Issues)
}

// TestCheckDeep reads the store: what is lost or damaged there is named, and nothing else.
func TestCheckDeep(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	healthy := maps.Clone(sc.story.blobs)
	for _, name := range slices.Sorted(maps.Keys(healthy)) {
		blobs := maps.Clone(healthy)
		delete(blobs, name)
		r, err := fsck.Check(t.Context(), sc.dir.Dir, fsck.CheckOptions{ReadTree: readTree, Deep: blobs})
		require.NoError(t, err)
		// of a note: the file has the whole of them
		entries := strings.Count(sc.files[layout.EventsFile], `"entry":{"digest":"`+name)
		if used := strings.Count(sc.files[layout.EventsFile], name) > entries ||
			strings.HasPrefix(name, "checkpoints/") || name == sc.head; used {
			require.Contains(t, codesOf(r), fsck.StoreDamaged, name)
		}
		if !strings.HasPrefix(name, "checkpoints/") {
			continue
		}
		blobs[name] = changedByte(healthy[name], 2)
		r, err = fsck.Check(t.Context(), sc.dir.Dir, fsck.CheckOptions{ReadTree: readTree, Deep: blobs})
		require.NoError(t, err)
		require.Equal(t, []fsck.Code{fsck.StoreDamaged}, codesOf(r), name)
		require.Contains(t, r.Issues[0].Message, "checkpoint "+name+" is damaged in the store: ")
	}
}

// TestOldDirectoriesHaveNoDigests: of a directory that an earlier release wrote nothing is said that only digests say.
func TestOldDirectoriesHaveNoDigests(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	var meta map[string]any
	require.NoError(t, json.Unmarshal([]byte(sc.files[layout.MetaFile]), &meta))
	delete(meta, "digest")
	delete(meta, "digests")
	delete(meta, "records")
	for _, m := range meta["derived"].([]any) {
		delete(m.(map[string]any), "chain")
	}
	raw, err := json.Marshal(meta)
	require.NoError(t, err)
	write(t, sc.dir, layout.MetaFile, string(raw))
	require.Empty(t, check(t, sc.dir).Issues)
}

// TestUnreferencedContentIsNamed: a repair makes again what it can, and names what neither the store nor the directory
// holds.
func TestUnreferencedContentIsNamed(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	const lost, other = "_orchestrator/passes/pass-001/raw-output.txt", "_orchestrator/passes/pass-002/prompt.md"
	delete(sc.story.blobs, digestOf(sc.files[lost]))
	const prompt, second = "_orchestrator/passes/pass-001/prompt.md", "_orchestrator/passes/pass-003/raw-output.txt"
	delete(sc.story.blobs, digestOf(sc.files[second]))
	for _, name := range []string{lost, other, prompt, second} {
		write(t, sc.dir, name, "x")
	}
	o := fsck.RepairOptions{Apply: true, Blobs: sc.story.blobs, Now: noon, ReadTree: readTree}
	res, err := fsck.Repair(t.Context(), sc.dir, o)
	require.NoError(t, err)
	require.True(t, res.Applied)
	require.Equal(t, prompt+" "+other, planned(res))
	require.Equal(t, lost+", "+second+" cannot be rebuilt: the store has lost its contents "+
		"(run starter check --deep "+sc.dir.Root+" for details)", res.RepairHint)
	require.Equal(t, sc.files[other], look(t, sc.dir)[other])
	require.Equal(t, "x", look(t, sc.dir)[lost])
	again, err := fsck.Repair(t.Context(), sc.dir, o)
	require.NoError(t, err)
	require.False(t, again.Applied)
}
