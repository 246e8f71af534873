package disk_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/disk"
)

// hostile returns a folder beside a secret file, with every kind of entry that leads out of it or blocks.
func hostile(t *testing.T) disk.Folder {
	t.Helper()
	above := t.TempDir()
	f := disk.Folder{Root: filepath.Join(above, "run")}
	require.NoError(t, os.MkdirAll(f.Path("in/side"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(above, "secret"), []byte("canary"), 0o600))
	require.NoError(t, os.WriteFile(f.Path("in/file"), []byte("data"), 0o600))
	for name, to := range map[string]string{"out": "../secret", "absolute": filepath.Join(above, "secret"), "up": "..",
		"in/out": "../../secret", "loop": "loop", "nowhere": "missing", "fine": "in/file", "there": "in"} {
		require.NoError(t, os.Symlink(to, f.Path(name)))
	}
	require.NoError(t, unix.Mkfifo(f.Path("fifo"), 0o600))
	l, err := net.Listen("unix", f.Path("s"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return f
}

// TestNothingOutsideIsOpened opens names and links that lead out of the folder, in every way that reads or writes.
func TestNothingOutsideIsOpened(t *testing.T) {
	f := hostile(t)
	for _, name := range []string{"out", "absolute", "up/secret", "in/out", "../secret", "in/../../secret", "loop",
		"there/out", filepath.Join(filepath.Dir(f.Root), "secret")} {
		_, err := f.ReadFile(name)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, fs.ErrNotExist, name)
		_, err = disk.Disk{}.In(f.Root).Append(f.Path(name), 0, []byte("x"), 0o600)
		require.Error(t, err, name)
		require.False(t, f.Has(name), name)
	}
	_, err := f.ReadFile("out")
	require.ErrorContains(t, err, f.Path("out")+" is a name that leads out of "+f.Root)
	_, err = f.ReadDir("up")
	require.Error(t, err)
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(f.Root), "secret"))
	require.NoError(t, err)
	require.Equal(t, "canary", string(raw))
	for _, name := range []string{"fine", "there/file", "in/file"} {
		raw, err := f.ReadFile(name)
		require.NoError(t, err, name)
		require.Equal(t, "data", string(raw))
	}
	for _, f := range []disk.Folder{{}, {Trust: true}} {
		_, err = f.ReadFile("/etc/hostname")
		require.ErrorIs(t, err, fs.ErrNotExist, "no root is no folder")
	}
	_, err = f.ReadFile("nowhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, f.Path("nowhere"))
}

// TestOnlyRegularFilesAreOpened never waits for a writer of a FIFO.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	f := hostile(t)
	for name, kind := range map[string]string{"fifo": "a named pipe", "s": "a socket"} {
		_, err := f.ReadFile(name)
		require.EqualError(t, err, f.Path(name)+" is "+kind+"; remove it, or name another directory")
		_, err = disk.Disk{}.In(f.Root).Append(f.Path(name), 0, []byte("x"), 0o600)
		require.ErrorContains(t, err, f.Path(name)+" is "+kind)
		_, err = disk.Disk{}.Append(f.Path(name), 0, []byte("x"), 0o600)
		require.ErrorContains(t, err, f.Path(name)+" is "+kind)
	}
	_, err := f.ReadFile("in")
	require.ErrorContains(t, err, f.Path("in")+" is a directory")
	_, err = f.ReadDir("fifo")
	require.ErrorIs(t, err, unix.ENOTDIR)
	_, err = disk.Folder{Root: f.Path("fifo")}.ReadFile("x")
	require.ErrorIs(t, err, unix.ENOTDIR)
}

// TestHugeFilesAreRefused reads no file whose size is beyond the limit.
func TestHugeFilesAreRefused(t *testing.T) {
	f := hostile(t)
	require.NoError(t, os.Truncate(f.Path("in/file"), 1<<40))
	_, err := f.ReadFile("in/file")
	require.ErrorContains(t, err, f.Path("in/file")+" is larger than 1073741824 bytes")
}

// TestWalkIsBounded visits links without following them, and ends in a tree of folders that is too deep.
func TestWalkIsBounded(t *testing.T) {
	f := hostile(t)
	var seen []string
	visit := func(name string, _ fs.DirEntry, err error) error {
		seen = append(seen, name)
		return err
	}
	require.NoError(t, f.Walk(".", visit))
	require.Contains(t, seen, "in/side")
	require.Contains(t, seen, "up")
	require.NotContains(t, seen, "up/secret")
	require.NoError(t, os.MkdirAll(f.Path(strings.Repeat("d/", disk.MaxDepth+2)), 0o700))
	require.ErrorContains(t, f.Walk(".", visit), "is more than 256 folders deep")
}

// TestOtherOwnersAreRefused needs root, to give files away.
func TestOtherOwnersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	f := hostile(t)
	const other = 54321
	require.NoError(t, os.Chown(f.Path("in/file"), other, other))
	_, err := f.ReadFile("in/file")
	var owner *disk.OwnerError
	require.ErrorAs(t, err, &owner)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.EqualError(t, err, "open "+f.Path("in/file")+": it belongs to user 54321; run the command as 54321, or "+
		"read it with --trust if you trust 54321. No option lets a command write there")
	raw, err := disk.Folder{Root: f.Root, Trust: true}.ReadFile("in/file")
	require.NoError(t, err)
	require.Equal(t, "data", string(raw))

	require.NoError(t, os.Chown(f.Path("in/file"), 0, 0))
	require.NoError(t, os.Chown(f.Root, other, other))
	_, err = f.ReadFile("in/file")
	require.True(t, errors.As(err, &owner))
	require.ErrorContains(t, err, "open run directory "+f.Root+": it belongs to user 54321")
}
