package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExchangeWithoutTheKernel: systems that cannot exchange two folders at once do it in three steps.
func TestExchangeWithoutTheKernel(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"new", "old"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "f"), []byte(name), 0o600))
	}
	require.NoError(t, Disk{}.byWayOf(filepath.Join(dir, "new"), filepath.Join(dir, "old"), filepath.Join(dir, "spare")))
	for name, want := range map[string]string{"new": "old", "old": "new"} {
		text, err := os.ReadFile(filepath.Join(dir, name, "f"))
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	require.NoDirExists(t, filepath.Join(dir, "spare"))
	require.Error(t, Disk{}.byWayOf(filepath.Join(dir, "none"), filepath.Join(dir, "old"), filepath.Join(dir, "spare")))
}
