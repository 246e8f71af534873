package keyfile_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/keyfile"
)

func file(t *testing.T) keyfile.File {
	return keyfile.File{Path: filepath.Join(t.TempDir(), "state", "test.key"), Replace: "remove it"}
}

func TestConcurrentLoadsMakeOneKey(t *testing.T) {
	f := file(t)
	var keys [8][]byte
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() { keys[i], _ = f.Load() })
	}
	group.Wait()
	for _, key := range keys {
		require.Len(t, key, keyfile.Size)
		require.Equal(t, keys[0], key)
	}
	require.NotEqual(t, make([]byte, keyfile.Size), keys[0])
	for path, mode := range map[string]os.FileMode{f.Path: 0o600, filepath.Dir(f.Path): 0o700} {
		fi, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, fi.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(f.Path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestUnusableKeysAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		damage  func(path string) error
		message string
	}{
		"empty":          {func(p string) error { return os.Truncate(p, 0) }, "does not contain 32 bytes in Base64"},
		"short":          {func(p string) error { return os.Truncate(p, 20) }, "does not contain 32 bytes in Base64"},
		"public":         {func(p string) error { return os.Chmod(p, 0o604) }, "can be read by other users (mode 0604)"},
		"writable group": {func(p string) error { return os.Chmod(p, 0o620) }, "can be read by other users (mode 0620)"},
		"a symlink": {func(p string) error {
			if err := os.Rename(p, p+".moved"); err != nil {
				return err
			}
			return os.Symlink(p+".moved", p)
		}, "is a symlink"},
		"a named pipe": {func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return syscall.Mkfifo(p, 0o600)
		}, "is a named pipe"},
		"of another user": {func(p string) error {
			if os.Geteuid() != 0 {
				t.Skip("needs root, to give a file to another user")
			}
			return os.Chown(p, 12345, -1)
		}, "is a file of the user 12345"},
		"huge": {func(p string) error { return os.Truncate(p, 1<<30) }, "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			f := file(t)
			_, err := f.Load()
			require.NoError(t, err)
			require.NoError(t, row.damage(f.Path))
			_, err = f.Load()
			require.ErrorContains(t, err, f.Path+" "+row.message)
			require.True(t, strings.HasSuffix(err.Error(), ": remove it"), err)
		})
	}
}

// TestSharedKeysAreNotWritableByEveryUser: any other mode is what an orchestrator chose.
func TestSharedKeysAreNotWritableByEveryUser(t *testing.T) {
	f := file(t)
	_, err := f.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
	text, err := keyfile.New()
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Dir(f.Path), 0o755))
	require.NoError(t, os.WriteFile(f.Path, []byte(text+"\n"), 0o444))
	key, err := f.Read()
	require.NoError(t, err)
	require.Equal(t, text, base64.StdEncoding.EncodeToString(key))
	require.NoError(t, os.Chmod(f.Path, 0o666))
	_, err = f.Read()
	require.ErrorContains(t, err, f.Path+" can be written by every user (mode 0666): ")
	key, err = f.ReadAny()
	require.NoError(t, err)
	require.Len(t, key, keyfile.Size)
}
