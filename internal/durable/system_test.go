package durable_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
)

// TestUnsyncedFilesWaitForNoDisk beside others that do: one step makes all of them durable.
func TestUnsyncedFilesWaitForNoDisk(t *testing.T) {
	dir := t.TempDir()
	var synced []string
	d := durable.Disk{Folders: &durable.Folders{}, Hook: func(s durable.Step) error {
		switch s.Op {
		case durable.OpSync, durable.OpSyncFolder, durable.OpSyncSystem:
			name, err := filepath.Rel(dir, s.Path)
			require.NoError(t, err)
			synced = append(synced, string(s.Op)+" "+strings.Split(name, ".tmp.")[0])
		}
		return nil
	}}
	file := func(name string, unsynced bool) durable.File {
		return durable.File{Path: filepath.Join(dir, name), Data: []byte("x"), Perm: 0o600, DirPerm: 0o700,
			Unsynced: unsynced}
	}
	require.NoError(t, d.WriteAll([]durable.File{file("x/a", true), file("y/b", false)}))
	require.ElementsMatch(t, []string{"sync y/b", "sync folder y", "sync folder .", "sync folder .."}, synced)
	synced = nil
	made, err := d.CreateNew(file("x/c", true))
	require.NoError(t, err)
	require.True(t, made)
	_, err = d.AppendUnsynced(filepath.Join(dir, "log"), 0, []byte("x"), 0o600)
	require.NoError(t, err)
	require.Empty(t, synced)
	require.NoError(t, d.SyncFileSystem(dir))
	require.Equal(t, []string{"sync file system ."}, synced)
	synced = nil
	require.NoError(t, d.WriteAll([]durable.File{file("x/d", false)}))
	require.ElementsMatch(t, []string{"sync x/d", "sync folder x", "sync folder ."}, synced,
		"the name of a folder that was made for unsynced files is not taken for durable")
}
