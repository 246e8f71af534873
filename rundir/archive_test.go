package rundir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArchiveKeepsTheWorkspace: what the run after it would write over goes into the archive. A checkout of git stays: git knows where it is.
func TestArchiveKeepsTheWorkspace(t *testing.T) {
	d := written(t, whole(t))
	lays(t, d.Root, "workspace/precious.txt", "snapshots/turn-1/manifest.json", "delivery.patch")
	to, err := d.Archive(t.Context())
	require.NoError(t, err)
	for _, name := range []string{"workspace/precious.txt", "snapshots/turn-1/manifest.json", "delivery.patch"} {
		require.FileExists(t, filepath.Join(d.Path(to), filepath.FromSlash(name)))
		require.NoFileExists(t, d.Path(name))
	}

	d = written(t, whole(t))
	lays(t, d.Root, "workspace/.git")
	_, err = d.Archive(t.Context())
	require.NoError(t, err)
	_, err = os.Stat(d.Path("workspace/.git"))
	require.NoError(t, err)
}
