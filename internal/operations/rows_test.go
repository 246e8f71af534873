package operations

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
)

// aged sets the times of a directory's files to one in the past, so that they are remembered.
func aged(t testing.TB, dir string) {
	t.Helper()
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range rowFiles {
		if err := os.Chtimes(filepath.Join(dir, name), then, then); !os.IsNotExist(err) {
			require.NoError(t, err)
		}
	}
}

func TestRowsAreReadAgainAfterAChange(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	dir := filepath.Join(root, "a")
	wrote(t, dir, "a", "small", "begun")
	aged(t, dir)
	var r Rows
	stage := func() string {
		rows, _, err := r.Here(state, root)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		return rows[0].Stage
	}
	require.Equal(t, "build", stage())
	events := filepath.Join(dir, layout.EventsFile)
	raw, err := os.ReadFile(events)
	require.NoError(t, err)
	changed := bytes.ReplaceAll(raw, []byte("build"), []byte("build2"))
	require.NoError(t, os.WriteFile(events, changed, 0o600))
	require.Equal(t, "build2", stage())

	changed = bytes.ReplaceAll(raw, []byte("build"), []byte("build3"))
	require.NoError(t, os.WriteFile(events, changed, 0o600))
	require.Equal(t, "build3", stage(), "the same size, and perhaps the same time")

	aged(t, dir)
	require.Equal(t, "build3", stage())
	require.NoError(t, os.WriteFile(events, []byte("{"), 0o600))
	require.NoError(t, os.Truncate(events, int64(len(changed))))
	aged(t, dir)
	require.Equal(t, "build3", stage(), "remembered: the files have the same sizes and times")
	require.NoError(t, os.RemoveAll(dir))
	rows, _, err := r.Here(state, root)
	require.NoError(t, err)
	require.Empty(t, rows)
}
