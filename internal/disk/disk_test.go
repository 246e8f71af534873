package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

// TestAppend: what is at the offset already is not added again, and other bytes are an error.
func TestAppend(t *testing.T) {
	tests := []struct {
		name   string
		there  string
		offset int64
		data   string
		after  string
		err    error
	}{
		{"at the end", "one\n", 4, "two\n", "one\ntwo\n", nil},
		{"all there already", "one\ntwo\n", 4, "two\n", "one\ntwo\n", nil},
		{"a piece there", "one\ntw", 4, "two\n", "one\ntwo\n", nil},
		{"more follows", "one\ntwo\nthree\n", 4, "two\n", "one\ntwo\nthree\n", nil},
		{"nothing to add", "one\n", 4, "", "one\n", nil},
		{"other bytes", "one\ntxo\n", 4, "two\n", "one\ntxo\n", disk.ErrDiffers},
		{"other piece", "one\nx", 4, "two\n", "one\nx", disk.ErrDiffers},
		{"too short", "on", 4, "two\n", "on", errors.New("it ends at 2, so what comes before 4 is missing")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "log")
			require.NoError(t, os.WriteFile(path, []byte(tt.there), 0o600))
			size, err := disk.Disk{}.Append(path, tt.offset, []byte(tt.data), 0o600)
			if tt.err != nil {
				require.EqualError(t, err, "append to "+path+": "+tt.err.Error())
			} else {
				require.NoError(t, err)
				require.EqualValues(t, len(tt.after), size)
			}
			require.Equal(t, map[string]string{"log": tt.after}, look(t, dir))
		})
	}
	path := filepath.Join(t.TempDir(), "log")
	_, err := disk.Disk{}.Append(path, 4, []byte("two\n"), 0o600)
	require.EqualError(t, err, "append to "+path+": it is missing")
	require.NoFileExists(t, path)
}

func TestCreateExclusiveHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claim")
	var won atomic.Int32
	var winner atomic.Value
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			data := fmt.Sprintf("claim of %d", i)
			created, err := disk.Disk{}.CreateExclusive(path, []byte(data), 0o600)
			if err != nil {
				t.Error(err)
			}
			if created {
				won.Add(1)
				winner.Store(data)
			}
			if got, err := os.ReadFile(path); err != nil || len(got) < len("claim of 0") {
				t.Errorf("caller %d sees %q, %v", i, got, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, won.Load())
	require.Equal(t, map[string]string{"claim": winner.Load().(string)}, look(t, filepath.Dir(path)))
}

func TestCleanTempsOfRemovesOnlyTemporaryFilesOfItsPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"state.json", "state.json.tmp.1", "a.tmp.k3jx9q0abc", "notes.tmp", "x.tmp.d/y",
		"state.json.tmp.", "sub/state.json.tmp.2"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	require.NoError(t, disk.Disk{}.CleanTempsOf(filepath.Join(dir, "state.json"), filepath.Join(dir, "notes.tmp"),
		filepath.Join(dir, "x"), filepath.Join(dir, "missing", "file")))
	require.Equal(t, map[string]string{"state.json": "", "a.tmp.k3jx9q0abc": "", "notes.tmp": "", "x.tmp.d/": "",
		"x.tmp.d/y": "", "state.json.tmp.": "", "sub/": "", "sub/state.json.tmp.2": ""}, look(t, dir))
}

func TestMkdirOverAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorIs(t, disk.Disk{}.Mkdir(path, 0o700), syscall.ENOTDIR)
	require.ErrorIs(t, disk.Disk{}.Mkdir(filepath.Join(path, "below"), 0o700), syscall.ENOTDIR)
}

func TestCutTailNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	log, aside := filepath.Join(dir, "log"), filepath.Join(dir, "aside")
	require.NoError(t, os.WriteFile(log, []byte("one\ntw"), 0o600))
	require.NoError(t, os.WriteFile(aside, []byte("other"), 0o600))
	require.ErrorIs(t, disk.Disk{}.CutTail(log, 4, aside), disk.ErrDiffers)
	require.Equal(t, map[string]string{"log": "one\ntw", "aside": "other"}, look(t, dir))

	require.NoError(t, disk.Disk{}.CutTail(log, 6, aside), "nothing to cut")
	require.Error(t, disk.Disk{}.CutTail(log, 7, aside))
}

// TestNamesOfFoldersAreSynced: each folder is synced once, and so is the name of the folder that existed, because its
// creator may have died before.
func TestNamesOfFoldersAreSynced(t *testing.T) {
	root := t.TempDir()
	var synced []string
	d := disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpSyncFolder {
			rel, err := filepath.Rel(root, s.Path)
			require.NoError(t, err)
			synced = append(synced, rel)
		}
		return nil
	}}
	for _, row := range []struct {
		name string
		want []string
	}{
		{"a/b/file", []string{"..", ".", "a", "a/b"}}, {"a/b/other", []string{"a", "a/b"}},
		{"a/c/file", []string{".", "a", "a/c"}},
	} {
		synced = nil
		require.NoError(t, d.WriteAll([]disk.File{{Path: filepath.Join(root, row.name), Perm: 0o600, DirPerm: 0o700}}))
		require.Equal(t, row.want, synced, row.name)
	}
	synced = nil
	require.NoError(t, d.Mkdir(filepath.Join(root, "a/c"), 0o700))
	require.Equal(t, []string{"a"}, synced)
}

// TestSettleAll syncs every file, and every folder for its names; links lead nowhere.
func TestSettleAll(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "x", "empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x", "f"), []byte("1"), 0o400))
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))
	var steps []string
	d := disk.Disk{Hook: func(s disk.Step) error {
		rel, err := filepath.Rel(dir, s.Path)
		steps = append(steps, string(s.Op)+" "+rel)
		return err
	}}
	require.NoError(t, d.SettleAll(dir))
	require.Equal(t, []string{"sync folder x/empty", "sync x/f", "sync folder x", "sync folder ."}, steps)
	require.ErrorIs(t, disk.Disk{Hook: faultAt(3, "fail")}.SettleAll(dir), errInjected)
}
