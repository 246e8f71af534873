package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
)

// TestCleanTempsOf removes what a crash left of the named files, and nothing of anybody else.
func TestCleanTempsOf(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a.tmp.x1", "b.tmp.x2", "my notes.tmp.1", "a.tmp.", "sub/a.tmp.x3"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("text"), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "a.tmp.folder"), 0o700))
	require.NoError(t, durable.Disk{}.CleanTempsOf(filepath.Join(dir, "a"), filepath.Join(dir, "no such folder", "b")))
	require.Equal(t, map[string]string{
		"a": "text", "b.tmp.x2": "text", "my notes.tmp.1": "text", "a.tmp.": "text", "a.tmp.folder/": "", "sub/": "",
		"sub/a.tmp.x3": "text",
	}, look(t, dir))
}
