package fsck_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
)

// TestRepairCopiesWhatItReplaces, and no other file. Two repairs at the same time have a folder each.
func TestRepairCopiesWhatItReplaces(t *testing.T) {
	const cp = cpS1 + "/"
	for name, row := range map[string]struct {
		dir    string
		do     change
		copies []string
		stays  string // a file that is not replaced
	}{
		"a key": {"paused", withKey("status", `"done"`), []string{"meta.json"}, layout.StateFile},
		"half a line": {"paused", with(layout.EventsFile, "{"), []string{"meta.json", "state.json"},
			layout.TracesFile},
		"state.json": {"paused", without(layout.StateFile), []string{"artifact.html", "meta.json"}, ""},
		"a reply": {"paused", withFile(replyFile, "x"),
			[]string{replyFile, "artifact.html", "meta.json", "state.json"}, ""},
		"a lost reply": {"paused", without(replyFile), []string{"artifact.html", "meta.json", "state.json"}, ""},
		"a log": {"paused", withFile(layout.CostLog, "x"),
			[]string{layout.CostLog, "artifact.html", "meta.json", "state.json"}, ""},
		"a checkpoint": {"paused", withFile(cp+"manifest.json", "{}"), []string{cp + "artifact.html",
			cp + "conviction-layer.md", "artifact.html", "meta.json", "state.json"}, ""},
		"the journal": {"stored", swapped(layout.EventsFile, "03:04", "03:05"), []string{"events.jsonl", "meta.json"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, blobs := directoryOf(t, row.dir)
			healthy := look(t, d)
			for _, folder := range []string{"20260103T120000.000Z", "20260103T120000.000Z-2", "20260103T120000.000Z-3"} {
				row.do(t, d)
				hurt := look(t, d)
				before, err := os.Stat(d.Path(row.stays))
				require.NoError(t, err)
				res := repair(t, d, blobs)
				folder = layout.RepairsDir + "/" + folder + "/"
				require.Equal(t, folder+"audit.json", res.AuditPath)
				require.Equal(t, folder+"meta.json", res.BackupPath)
				now := look(t, d)
				var copies []string
				for _, file := range slices.Sorted(maps.Keys(now)) {
					if of, ok := strings.CutPrefix(file, folder); ok && !strings.HasSuffix(file, "/") && of != "audit.json" {
						copies = append(copies, of)
						fi, err := os.Stat(d.Path(file))
						require.NoError(t, err)
						require.EqualValues(t, layout.FilePerm, fi.Mode().Perm())
						require.Contains(t, []string{hurt[of], hurt["_orchestrator/"+of]}, now[file], of)
					}
				}
				require.Equal(t, row.copies, copies)
				if row.stays != "" {
					after, err := os.Stat(d.Path(row.stays))
					require.NoError(t, err)
					require.True(t, os.SameFile(before, after), "%s was replaced", row.stays)
				}
				for file, text := range healthy {
					if file != layout.MetaFile { // the names of segments are in no event
						require.Equal(t, text, now[file], file)
					}
				}
				require.Empty(t, check(t, d).Issues)
			}
		})
	}
}

// brokenBlobs is a store that fails to read one blob.
type brokenBlobs struct {
	fakeBlobs
	digest string
	err    error
}

func (b brokenBlobs) Get(ctx context.Context, digest string) ([]byte, error) {
	if digest == b.digest {
		return nil, b.err
	}
	return b.fakeBlobs.Get(ctx, digest)
}

// TestRepairNeedsTheContents: what the store has lost or has damaged is taken from another file of the directory. If
// none has it, the repair leaves the file, or the whole checkpoint, and names it.
func TestRepairNeedsTheContents(t *testing.T) {
	failure := errors.New("the store does not answer")
	for name, row := range map[string]struct {
		dir, file string
		err       error // of the store
		repaired  bool
	}{
		"lost, and a checkpoint has it":             {"done", "artifact.html", os.ErrNotExist, true},
		"damaged, and a checkpoint has it":          {"done", "artifact.html", disk.ErrDamaged, true},
		"lost, and the artifact has it":             {"done", cpPA2 + "/artifact.html", os.ErrNotExist, true},
		"the reply is lost":                         {"done", replyFile, os.ErrNotExist, false},
		"the reply is damaged":                      {"done", replyFile, disk.ErrDamaged, false},
		"a note of a checkpoint is lost":            {"done", cpS1 + "/conviction-layer.md", os.ErrNotExist, false},
		"the store fails, and a checkpoint has it":  {"done", "artifact.html", failure, false},
		"the tree of a turn is lost":                {"with turns", layout.SnapshotManifest(1), nil, false},
		"the tree of a turn is lost, of the second": {"with turns", layout.SnapshotManifest(2), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, blobs := directoryOf(t, row.dir)
			healthy := look(t, d)
			write(t, d, row.file, "x")
			if row.file == "artifact.html" {
				remove(t, d, row.file)
			}
			const other = "_orchestrator/state.json" // is rebuilt in any case
			remove(t, d, other)
			store := brokenBlobs{blobs, digestOf(healthy[row.file]), row.err}
			if row.err == nil {
				delete(blobs, digestOf(map[string]string{layout.SnapshotManifest(1): "tree 1",
					layout.SnapshotManifest(2): "tree 2"}[row.file]))
			}
			res, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Blobs: store, Now: noon})
			if errors.Is(row.err, failure) {
				require.ErrorIs(t, err, failure)
				return
			}
			require.NoError(t, err)
			require.Equal(t, healthy[other], look(t, d)[other])
			if row.repaired {
				require.Empty(t, res.RepairHint)
				require.Equal(t, healthy[row.file], look(t, d)[row.file])
				require.Empty(t, check(t, d).Issues)
				return
			}
			require.Equal(t, other, planned(res))
			require.Equal(t, row.file+" cannot be rebuilt: the store has lost its contents (run starter check --deep "+
				d.Root+" for details)", res.RepairHint)
			require.Equal(t, "x", look(t, d)[row.file])
		})
	}
}

// TestKeysOfFiles: a JSON file has all of its keys, and no other.
func TestKeysOfFiles(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	name := ""
	for file := range sc.files {
		if strings.HasPrefix(file, layout.DecisionsDir+"/h-1") {
			name = file
		}
	}
	whole := sc.files[name]
	damaged := []fsck.Code{fsck.DerivedFileDamaged}
	for line := range strings.Lines(whole) {
		key, value, ok := strings.Cut(strings.TrimRight(line, ",\n"), ": ")
		if !ok || strings.Contains("{[", value) {
			continue
		}
		bare := strings.Replace(whole, line, "", 1)
		if !strings.HasSuffix(line, ",\n") {
			bare = strings.Replace(whole, ",\n"+line, "\n", 1)
		}
		write(t, sc.dir, name, bare)
		require.Equal(t, damaged, codesOf(check(t, sc.dir)), "without %s", key)
	}
	for _, text := range []string{strings.Replace(whole, "{", `{"further": 0,`, 1), "[]", "{", whole + "x",
		strings.Replace(whole, `"h-1"`, `"h-2"`, 1), strings.ReplaceAll(whole, "\n", "\n ")} {
		write(t, sc.dir, name, text)
		require.Equal(t, damaged, codesOf(check(t, sc.dir)), text)
	}
}

// TestRevertedCheckpointIsKept with its files, under another name.
func TestRevertedCheckpointIsKept(t *testing.T) {
	s := newStory(t)
	s.start()
	first := s.state
	s.pass(1)
	s.pass(2)
	s.pass(4) // is not made again, and neither is its checkpoint
	s.checkpoint("cp-REVERT-20260102T030405Z", 4)
	s.revert(first)
	s.salt = "another "
	s.pass(1)
	s.pass(2)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	healthy := look(t, d)
	for folder, name := range map[string]string{"cp-S1~1": "artifact.html", "cp-S1": "conviction-layer.md",
		"cp-REVERT-20260102T030405Z": "artifact.html"} {
		folder = layout.CheckpointsDir + "/" + folder
		write(t, d, folder+"/"+name, "x")
		found := check(t, d)
		require.Equal(t, []fsck.Code{fsck.CheckpointDamaged}, codesOf(found))
		require.Len(t, found.Issues, 1)
		require.Equal(t, folder, planned(repair(t, d, s.blobs)))
		require.Equal(t, healthy[folder+"/"+name], look(t, d)[folder+"/"+name])
	}
}

// TestRewriteDerived makes each kind of derived file again, and changes nothing else.
func TestRewriteDerived(t *testing.T) {
	for code, row := range map[fsck.Code]struct {
		dir, file string
		do        change
	}{
		fsck.DerivedFileBehind:  {"paused", layout.StateFile, without(layout.StateFile)},
		fsck.DerivedFileDamaged: {"paused", layout.CostLog, oneByte(layout.CostLog)},
		fsck.LogRowUnreadable:   {"paused", layout.CostLog, with(layout.CostLog, "x")},
		fsck.EvidenceDamaged:    {"paused", replyFile, withFile(replyFile, "x")},
		fsck.CheckpointDamaged:  {"paused", cpS1 + "/conviction-layer.md", withFile(cpS1+"/conviction-layer.md", "x")},
		fsck.SnapshotDamaged:    {"with turns", layout.SnapshotManifest(1), withFile(layout.SnapshotManifest(1), "x")},
		fsck.ChainMismatch:      {"paused", "", swapped(layout.EventsFile, "03:04", "03:05")},
		"":                      {"paused", "", nothing},
	} {
		t.Run(string(code), func(t *testing.T) {
			d, blobs := directoryOf(t, row.dir)
			healthy := look(t, d)
			row.do(t, d)
			hurt := look(t, d)
			if code != "" {
				require.Equal(t, []fsck.Code{code}, codesOf(check(t, d)))
			}
			require.NoError(t, fsck.RewriteDerived(t.Context(), d, blobs, readTree))
			now := look(t, d)
			if row.file == "" {
				require.Equal(t, hurt, now)
				return
			}
			require.Equal(t, healthy[row.file], now[row.file])
			require.Empty(t, check(t, d).Issues)
			audits, err := filepath.Glob(d.Path(layout.RepairsDir + "/*/audit.json"))
			require.NoError(t, err)
			require.Len(t, audits, 1)
			raw, err := os.ReadFile(audits[0])
			require.NoError(t, err)
			require.Contains(t, string(raw), `"by": "rebuild"`)
		})
	}
}

// TestRepairNamesWhatIsLost: a repair makes again what it can, and names what neither the store nor the directory has.
func TestRepairNamesWhatIsLost(t *testing.T) {
	sc := sceneOf(t, "run-1", "")
	const lost, other = "_orchestrator/passes/pass-001/raw-output.txt", "_orchestrator/passes/pass-002/prompt.md"
	delete(sc.story.blobs, digestOf(sc.files[lost]))
	const prompt, second = "_orchestrator/passes/pass-001/prompt.md", "_orchestrator/passes/pass-003/raw-output.txt"
	delete(sc.story.blobs, digestOf(sc.files[second]))
	for _, name := range []string{lost, other, prompt, second} {
		write(t, sc.dir, name, "x")
	}
	res := repair(t, sc.dir, sc.story.blobs)
	require.True(t, res.Applied)
	require.Equal(t, prompt+" "+other, planned(res))
	require.Equal(t, lost+", "+second+" cannot be rebuilt: the store has lost its contents "+
		"(run starter check --deep "+sc.dir.Root+" for details)", res.RepairHint)
	require.Equal(t, sc.files[other], read(t, sc.dir, other))
	require.Equal(t, "x", read(t, sc.dir, lost))
	require.False(t, repair(t, sc.dir, sc.story.blobs).Applied)
}
