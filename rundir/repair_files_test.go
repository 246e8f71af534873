package rundir_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

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
		"the tree of a turn is lost":                {"with turns", rundir.SnapshotManifest(1), nil, false},
		"the tree of a turn is lost, of the second": {"with turns", rundir.SnapshotManifest(2), nil, false},
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
				delete(blobs, digestOf(map[string]string{rundir.SnapshotManifest(1): "tree 1",
					rundir.SnapshotManifest(2): "tree 2"}[row.file]))
			}
			res, err := rundir.Repair(t.Context(), d, rundir.RepairOptions{Apply: true, Blobs: store})
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
			require.Equal(t, row.file+" cannot be made again: the store has lost the content (run starter check --deep "+
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
		if strings.HasPrefix(file, rundir.DecisionsDir+"/h-1") {
			name = file
		}
	}
	whole := sc.files[name]
	damaged := []rundir.Code{rundir.FileDiffers}
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
		folder = rundir.CheckpointsDir + "/" + folder
		write(t, d, folder+"/"+name, "x")
		found := check(t, d)
		require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(found))
		require.Len(t, found.Issues, 1)
		require.Equal(t, folder+"/"+name, planned(repair(t, d, s.blobs)))
		require.Equal(t, healthy[folder+"/"+name], look(t, d)[folder+"/"+name])
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
	require.Equal(t, lost+", "+second+" cannot be made again: the store has lost the content "+
		"(run starter check --deep "+sc.dir.Root+" for details)", res.RepairHint)
	require.Equal(t, sc.files[other], read(t, sc.dir, other))
	require.Equal(t, "x", read(t, sc.dir, lost))
	require.False(t, repair(t, sc.dir, sc.story.blobs).Applied)
}
