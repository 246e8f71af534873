package operations

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// TestNewestCheckpointUntilATime: also where a revert has led to a second checkpoint of the same name, or where one is
// damaged.
func TestNewestCheckpointUntilATime(t *testing.T) {
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	names := blobs.Of(s)
	at := func(seq int64) string { return fmt.Sprintf("2026-11-27T10:%02d:00.000Z", seq) }
	repeated := map[int64]string{6: "cp-S1", 11: "cp-S2", 36: "cp-S1", 37: "cp-S2"}
	for seq := int64(1); seq <= 40; seq++ {
		id := run.UnnamedID(seq)
		if name := repeated[seq]; name != "" {
			id = name
		}
		state := run.State{Version: run.StateVersion, RunID: "r", Seq: seq,
			Checkpoint: &run.CheckpointRef{ID: id, Seq: seq, TS: at(seq)}}
		require.NoError(t, projector.KeepCheckpoint(t.Context(), names,
			run.Checkpoint{Version: run.CheckpointVersion, RunID: "r", ID: id, Seq: seq, State: state}))
	}
	for seq := int64(1); seq <= 40; seq++ {
		id, err := newestUntil(t.Context(), names, "r", at(seq))
		require.NoError(t, err)
		require.Equal(t, run.UnnamedID(seq), id)
		c, err := projector.LoadCheckpoint(t.Context(), names, "r", id)
		require.NoError(t, err)
		require.Equal(t, seq, c.Seq, "a named one also has the name of its event")
	}
	id, err := newestUntil(t.Context(), names, "r", "")
	require.NoError(t, err)
	require.Equal(t, "cp-40", id)
	id, err = newestUntil(t.Context(), names, "r", "2026-11-27T09:00:00.000Z")
	require.NoError(t, err)
	require.Empty(t, id)

	marks, err := projector.Marks(t.Context(), names, "r")
	require.NoError(t, err)
	for _, i := range []int{19, 29, 9} { // where the search looks
		require.NoError(t, names.Replace(t.Context(), marks[i].Name, []byte("{}")))
	}
	for _, seq := range []int64{8, 15, 25, 35} {
		id, err := newestUntil(t.Context(), names, "r", at(seq))
		require.NoError(t, err)
		require.Equal(t, run.UnnamedID(seq), id)
	}
}
