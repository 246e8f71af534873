package rundir

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestFolderOfCheckpoint: it has the state before the checkpoint, the artifact, the notes, and their hashes. The same
// record is in state.json.
func TestFolderOfCheckpoint(t *testing.T) {
	w := working(t)
	before := contents(t, w.projected(8))
	files := below(contents(t, w.projected(9)), CheckpointDir("cp-S1"))
	require.Equal(t, before[StateFile], files[StateSnapshot])
	require.Equal(t, "page 1", files["artifact.html"])
	require.Equal(t, "entry", files["log.md"])
	require.Len(t, files, 4)
	var got CheckpointRecord
	require.NoError(t, json.Unmarshal([]byte(files["manifest.json"]), &got))
	want := CheckpointRecord{ID: "cp-S1", CreatedAt: "2026-01-02T03:04:09.000Z", AtPassNumber: 1,
		CheckpointDir: CheckpointDir("cp-S1"), ArtifactHash: disk.Digest([]byte("page 1")),
		StateHash: disk.Digest([]byte(before[StateFile])), CostAtCheckpoint: 1,
		QualitySnapshot: QualitySnapshot{ConvictionEntries: 1}}
	require.Equal(t, want, got)
	for last := int64(9); last <= 10; last++ {
		state, err := w.projected(last).State()
		require.NoError(t, err)
		require.Equal(t, []CheckpointRecord{want}, state.Checkpoints)
	}

	f := newFold(listed{})
	score := 2.5
	f.State.CurrentArtifactPath, f.State.ConvictionEntryCount, f.State.DiscoveryEntryCount = "page.md", 3, 5
	created := event(t, 5, run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-x", AtPass: 3, AtRound: 2, USD: 7})
	require.NoError(t, f.checkpoint(created, run.State{Score: &score, Passes: run.PassCount{Invalid: 7}}))
	require.Len(t, f.Files, 2, "a run without an artifact")
	rec := f.State.Checkpoints[0]
	require.Len(t, rec.StateHash, 64)
	rec.StateHash = ""
	require.Equal(t, CheckpointRecord{ID: "cp-x", CreatedAt: "2026-01-02T03:04:05.000Z", AtPassNumber: 3,
		AtPACycle: 2, CheckpointDir: CheckpointDir("cp-x"), CostAtCheckpoint: 7,
		QualitySnapshot: QualitySnapshot{LastPAScore: &score, ValidationFailureCount: 7, ConvictionEntries: 3,
			DiscoveryEntries: 5}}, rec)
}
