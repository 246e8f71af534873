package disk_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

// TestUnsyncedFilesWaitForNoDisk beside others that do: one step makes all of them durable.
func TestUnsyncedFilesWaitForNoDisk(t *testing.T) {
	dir := t.TempDir()
	var synced []string
	d := disk.Disk{Hook: func(s disk.Step) error {
		switch s.Op {
		case disk.OpSync, disk.OpSyncFolder, disk.OpSyncSystem:
			name, err := filepath.Rel(dir, s.Path)
			require.NoError(t, err)
			synced = append(synced, string(s.Op)+" "+strings.Split(name, ".tmp.")[0])
		}
		return nil
	}}
	file := func(name string, unsynced bool) disk.File {
		return disk.File{Path: filepath.Join(dir, name), Data: []byte("x"), Perm: 0o600, DirPerm: 0o700,
			Unsynced: unsynced}
	}
	require.NoError(t, d.WriteAll([]disk.File{file("x/a", true), file("y/b", false)}))
	require.ElementsMatch(t, []string{"sync y/b", "sync folder y", "sync folder .", "sync folder .."}, synced)
	synced = nil
	_, err := d.AppendAll([]disk.Addition{{Path: filepath.Join(dir, "log"), Data: []byte("x"), Perm: 0o600, Unsynced: true}})
	require.NoError(t, err)
	require.Empty(t, synced)
	require.NoError(t, d.SyncFileSystem(dir))
	require.Equal(t, []string{"sync file system ."}, synced)
	synced = nil
	require.NoError(t, d.WriteAll([]disk.File{file("x/d", false)}))
	require.ElementsMatch(t, []string{"sync x/d", "sync folder x", "sync folder ."}, synced,
		"the name of a folder that was made for unsynced files is not taken for durable")
	synced = nil
	require.NoError(t, d.WriteAll([]disk.File{file("u/v/a", true), file("u/v/b", false)}))
	require.ElementsMatch(t, []string{"sync u/v/b", "sync folder u/v", "sync folder u", "sync folder .", "sync folder .."}, synced,
		"folders that both kinds of files need are durable")
}
