package projector

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestFolderOfCheckpoint: it has the state before the checkpoint, the artifact, the notes, and their hashes. The same
// record is in state.json.
func TestFolderOfCheckpoint(t *testing.T) {
	w := working(t)
	before := contents(t, w.projected(8))
	files := below(contents(t, w.projected(9)), layout.CheckpointDir("cp-S1"))
	require.Equal(t, before[layout.StateFile], files[layout.StateSnapshot])
	require.Equal(t, "page 1", files["artifact.html"])
	require.Equal(t, "entry", files["log.md"])
	require.Len(t, files, 4)
	var got rundir.CheckpointRecord
	require.NoError(t, json.Unmarshal([]byte(files["manifest.json"]), &got))
	want := rundir.CheckpointRecord{ID: "cp-S1", CreatedAt: "2026-01-02T03:04:09.000Z", AtPassNumber: 1,
		CheckpointDir: layout.CheckpointDir("cp-S1"), ArtifactHash: disk.Digest([]byte("page 1")),
		StateHash: disk.Digest([]byte(before[layout.StateFile])), CostAtCheckpoint: 1,
		QualitySnapshot: rundir.QualitySnapshot{ConvictionEntries: 1}}
	require.Equal(t, want, got)
	for last := int64(9); last <= 10; last++ {
		state, err := w.projected(last).State()
		require.NoError(t, err)
		require.Equal(t, []rundir.CheckpointRecord{want}, state.Checkpoints)
	}

	p, batch := &Projector{}, &batchWriter{}
	score := 2.5
	p.records.CurrentArtifactPath, p.records.ConvictionEntryCount, p.records.DiscoveryEntryCount = "page.md", 3, 5
	created := event(t, 5, run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-x", AtPass: 3, AtRound: 2, USD: 7})
	require.NoError(t, p.checkpoint(batch, created, run.State{Score: &score, Passes: run.PassCount{Invalid: 7}}))
	for i, name := range []string{"state-snapshot.json", "manifest.json"} { // a run without an artifact
		require.Equal(t, name, path.Base(batch.files[i].name))
		require.True(t, batch.files[i].evidence, name)
	}
	rec := p.records.Checkpoints[0]
	require.Len(t, rec.StateHash, 64)
	rec.StateHash = ""
	require.Equal(t, rundir.CheckpointRecord{ID: "cp-x", CreatedAt: "2026-01-02T03:04:05.000Z", AtPassNumber: 3,
		AtPACycle: 2, CheckpointDir: layout.CheckpointDir("cp-x"), CostAtCheckpoint: 7,
		QualitySnapshot: rundir.QualitySnapshot{LastPAScore: &score, ValidationFailureCount: 7, ConvictionEntries: 3,
			DiscoveryEntries: 5}}, rec)
}

// TestStateBeforeCheckpoint: state.json is written for the events before a checkpoint of the same batch, and for the
// batch. The first batch, a rebuild and a run of many passes write it once.
func TestStateBeforeCheckpoint(t *testing.T) {
	w := working(t)
	for _, row := range []struct {
		first   int64
		rebuild bool
		want    []int64
	}{{1, false, []int64{10}}, {8, false, []int64{8, 10}}, {9, false, []int64{10}}, {10, false, []int64{10}},
		{8, true, []int64{10}}} {
		d := claimed(t)
		if row.first > 1 {
			w.project(d, row.first-1)
		}
		if row.rebuild {
			require.NoError(t, os.Remove(d.Path(layout.StateFile)))
		}
		require.Equal(t, row.want, w.statesOf(d, 10), "from event %d", row.first)
	}
	w.settle(numbered(2, "report"), "page 2")
	for full, want := range map[int]int{1: 1, 200: 2} {
		d := claimed(t)
		d.FullRecords, d.Memory = full, new(Memory)
		w.project(d, w.last()-1)
		w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S2", AtPass: 2, USD: 2})
		require.Len(t, w.statesOf(d, w.last()), want, "%d records in full", full)
		w.lines = w.lines[:w.last()-1]
	}
}

// statesOf projects the events up to last, and returns the last event of each state.json that was written.
func (w *writer) statesOf(d Dir, last int64) (seqs []int64) {
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpWrite && strings.HasPrefix(path.Base(s.Path), path.Base(layout.StateFile)) {
			var state rundir.PipelineState
			require.NoError(w.t, json.Unmarshal(s.Data, &state))
			seqs = append(seqs, state.LastSeq)
		}
		return nil
	}}
	w.project(d, last)
	return seqs
}

// TestFilesOfBatch: what is written of the queued files.
func TestFilesOfBatch(t *testing.T) {
	store := blobStore{}
	old, page := store.keep(t, "old").Digest, store.keep(t, "page").Digest
	d := At(t.TempDir())
	write(t, d, "a.txt.tmp.left", "a leftover")
	w := &batchWriter{dir: d, load: func(digest string) ([]byte, error) { return store.Get(t.Context(), digest) }}
	w.add(wholeFile{name: "a.txt", digest: old})
	w.add(wholeFile{name: "b/./c/../d.txt", data: []byte("data")})
	w.add(wholeFile{name: "tree.json", tree: "t", load: func() ([]byte, error) { return []byte("tree"), nil }})
	w.add(wholeFile{name: "./a.txt", digest: page})
	require.Len(t, w.files, 3, "a name that is queued already, spelled differently")
	require.NoError(t, w.flush())
	require.Equal(t, map[string]string{"a.txt": "page", "b/d.txt": "data", "tree.json": "tree"}, contents(t, d))
	for name, perm := range map[string]os.FileMode{"a.txt": layout.FilePerm, "b": layout.DirPerm} {
		info, err := d.Stat(name)
		require.NoError(t, err)
		require.Equal(t, perm, info.Mode().Perm(), name)
	}
	require.Empty(t, w.files)
	write(t, d, "a.txt", "later")
	require.NoError(t, w.flush())
	require.Equal(t, "later", contents(t, d)["a.txt"], "nothing is written twice")

	w.add(wholeFile{name: "gone.txt", digest: "gone"})
	require.ErrorContains(t, w.flush(), d.Path("gone.txt")+": ")
	w.spares = true
	w.add(wholeFile{name: "e.txt", digest: page})
	require.NoError(t, w.flush())
	require.Equal(t, []string{"a.txt", "b/d.txt", "e.txt", "tree.json"}, names(contents(t, d)))
	w.add(wholeFile{name: "f.txt", load: func() ([]byte, error) { return nil, os.ErrPermission }})
	require.ErrorIs(t, w.flush(), os.ErrPermission, "only lost files are spared")

	w = &batchWriter{dir: d, evidenceOnly: true}
	w.add(wholeFile{name: "page.html"})
	w.add(wholeFile{name: "evidence.txt", evidence: true})
	w.add(wholeFile{name: "state.json", verify: disk.VerifyState()})
	require.Equal(t, map[string]string{"evidence.txt": "", "state.json": ""}, queued(w))
	for _, deferred := range []bool{true, false} {
		w.defers = deferred
		files, err := w.read(append(slices.Clone(w.files), wholeFile{name: "page.html"}))
		require.NoError(t, err)
		require.Equal(t, deferred, files[0].Unsynced)
		require.False(t, files[1].Unsynced || files[2].Unsynced)
	}
	many := &batchWriter{dir: At(t.TempDir())}
	for i := range 130 { // which are written in several pieces
		many.add(wholeFile{name: "f" + strings.Repeat("x", i), data: []byte{byte(i)}})
	}
	require.NoError(t, many.flush())
	require.Len(t, contents(t, many.dir), 130)
	failing := At(t.TempDir())
	failing.Disk = disk.Disk{Hook: func(disk.Step) error { return os.ErrPermission }}
	w = &batchWriter{dir: failing}
	w.add(wholeFile{name: "a.txt"})
	require.ErrorIs(t, w.flush(), os.ErrPermission)
}

func names(files map[string]string) (all []string) {
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// TestDigestsOfFixedFiles: meta.json keeps the digest of run.json, and that of owner.json of its epoch.
func TestDigestsOfFixedFiles(t *testing.T) {
	digest := func(text string) string { return disk.Digest([]byte(text)) }
	for name, row := range map[string]struct {
		had            map[string]string
		epoch, vouched int
		want           map[string]string
	}{
		"the first time": {nil, 1, 1,
			map[string]string{layout.ClaimFile: digest("claim"), layout.OwnerFile: digest("owner")}},
		"files of the run": {map[string]string{layout.ClaimFile: "c", layout.OwnerFile: "o"}, 2, 2, nil},
		"a new epoch": {map[string]string{layout.ClaimFile: "c", layout.OwnerFile: "o"}, 2, 1,
			map[string]string{layout.ClaimFile: "c", layout.OwnerFile: digest("owner")}},
		"a new file": {map[string]string{layout.ClaimFile: "c"}, 2, 2,
			map[string]string{layout.ClaimFile: "c", layout.OwnerFile: digest("owner")}},
	} {
		d := At(t.TempDir())
		write(t, d, layout.ClaimFile, "claim")
		write(t, d, layout.OwnerFile, "owner")
		p := &Projector{Dir: d, vouched: row.vouched}
		p.meta.Digests, p.meta.Epoch = row.had, row.epoch
		require.NoError(t, p.digestFixed(), name)
		if row.want == nil {
			row.want = row.had
		}
		require.Equal(t, row.want, p.meta.Digests, name)
	}
	p := &Projector{Dir: At(t.TempDir())}
	require.NoError(t, p.digestFixed())
	require.Nil(t, p.meta.Digests, "the key is missing without files")
}
