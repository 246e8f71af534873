package fsck_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArchiveKeepsTheWorkspace: what the next run would write over goes into the archive.
func TestArchiveKeepsTheWorkspace(t *testing.T) {
	d := written(t, whole(t))
	lays(t, d.Root, "workspace/precious.txt", "snapshots/turn-1/manifest.json", "delivery.patch")
	to, err := d.Archive(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"workspace/precious.txt", "snapshots/turn-1/manifest.json", "delivery.patch"} {
		require.FileExists(t, filepath.Join(d.Path(to), filepath.FromSlash(name)))
		require.NoFileExists(t, d.Path(name))
	}
}
