package fsck_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
)

// TestCheckpointsDoNotDependOnBatches: a checkpoint in the store has the state at its event, whatever comes after it in
// the same batch. Its name has the digest of its bytes.
func TestCheckpointsDoNotDependOnBatches(t *testing.T) {
	s := whole(t)
	names := func(size int) map[string]bool {
		blobs := maps.Clone(s.blobs)
		d := projector.At(t.TempDir())
		for first := 1; first <= len(s.lines); first += size {
			_, err := d.Project(context.Background(), blobs, batch(s.lines, first, min(first+size-1, len(s.lines))))
			require.NoError(t, err)
		}
		list, err := blobs.ListNames(context.Background(), "checkpoints/")
		require.NoError(t, err)
		all := map[string]bool{}
		for _, name := range list {
			all[name] = true
		}
		return all
	}
	alone, together := names(1), names(len(s.lines))
	require.NotEmpty(t, together)
	for name := range together {
		require.True(t, alone[name], "%s is the checkpoint of another state", name)
	}
}
