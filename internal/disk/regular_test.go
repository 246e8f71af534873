package disk_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// kinds make something at a path.
var kinds = []struct {
	name   string
	make   func(t *testing.T, path string)
	below  string // error of Open; empty: none
	direct string // error of OpenFile
}{
	{"a file", func(t *testing.T, path string) { write(t, path, "text") }, "", ""},
	{"nothing", func(*testing.T, string) {}, "no such file", "no such file"},
	{"a named pipe", func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
		"f is a named pipe", "f is a named pipe"},
	{"a directory", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "f is a directory",
		"f is a directory"},
	{"a symlink to a device", func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) },
		"path escapes", "f is a symlink"},
	{"a symlink to a file inside", func(t *testing.T, path string) {
		write(t, path+".other", "text")
		require.NoError(t, os.Symlink("f.other", path))
	}, "", "f is a symlink"},
	{"a symlink to a file outside", func(t *testing.T, path string) {
		require.NoError(t, os.Symlink("/etc/passwd", path))
	}, "path escapes", "f is a symlink"},
	{"a file of another user", func(t *testing.T, path string) {
		if os.Geteuid() != 0 {
			t.Skip("changing the owner needs root")
		}
		write(t, path, "text")
		require.NoError(t, os.Chown(path, 12345, -1))
	}, "f is a file of the user 12345", "f is a file of the user 12345"},
}

func TestOnlyRegularFilesOfThisUserAreOpened(t *testing.T) {
	for _, row := range kinds {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			row.make(t, filepath.Join(dir, "f"))
			root, err := os.OpenRoot(dir)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, root.Close()) })
			below, err := disk.OpenIn(root, "f")
			expect(t, below, err, row.below)
			direct, err := disk.OpenFile(filepath.Join(dir, "f"))
			expect(t, direct, err, row.direct)
		})
	}
}

func expect(t *testing.T, f *os.File, err error, want string) {
	t.Helper()
	if want != "" {
		require.ErrorContains(t, err, want)
		return
	}
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestReadFileIsLimited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "text")
	data, err := disk.ReadFile(path, 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(data))
	_, err = disk.ReadFile(path, 3)
	require.EqualError(t, err, path+" is larger than 3 bytes")
}

// TestWriteFileReplacesAnything: what has the name can neither block the writer or lead elsewhere.
func TestWriteFileReplacesAnything(t *testing.T) {
	for _, row := range kinds {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f")
			row.make(t, path)
			require.NoError(t, disk.WriteFile(path, []byte("new")))
			data, err := disk.ReadFile(path, 10)
			require.NoError(t, err)
			require.Equal(t, "new", string(data))
		})
	}
}
