package volume_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/volume"
)

func TestPackageOf(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	there, err := volume.Of(dir)
	require.NoError(t, err)
	require.Equal(t, dir, there.Path)
	require.Positive(t, there.Size)
	require.False(t, there.Full())
	require.DirExists(t, there.Mount)

	later, err := volume.Of(filepath.Join(dir, "not", "there", "yet"))
	require.NoError(t, err)
	require.Equal(t, dir, later.Path)
	require.Equal(t, there.Mount, later.Mount)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err = volume.Of(filepath.Join(dir, "file", "below"))
	require.Error(t, err)
}

func TestFull(t *testing.T) {
	for _, row := range []struct {
		name    string
		info    volume.Info
		full    bool
		message string
	}{
		{"enough", volume.Info{Mount: "/x", Free: 3 << 30, Size: 8 << 30}, false,
			"3.0 GiB of 8.0 GiB free"},
		{"nothing left", volume.Info{Mount: "/x", Size: 3 << 20}, true, "0 B of 3.0 MiB free"},
		{"a few blocks left", volume.Info{Mount: "/x", Free: 8 << 10, Size: 3 << 20}, true, "8.0 KiB of 3.0 MiB free"},
		{
			"no inodes", volume.Info{Mount: "/x", Free: 1 << 30, Size: 8 << 30, NoFiles: true}, true,
			"1.0 GiB of 8.0 GiB free, no inodes left",
		},
		{
			"read-only", volume.Info{Mount: "/x", Free: 1 << 30, Size: 8 << 30, ReadOnly: true}, true,
			"1.0 GiB of 8.0 GiB free, mounted read-only",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.full, row.info.Full())
			require.Equal(t, "file system /x: "+row.message, row.info.String())
		})
	}
}

func TestExplain(t *testing.T) {
	dir := t.TempDir()
	info, err := volume.Of(dir)
	require.NoError(t, err)
	path := filepath.Join(dir, "events.jsonl")
	for _, row := range []struct {
		name      string
		err       error
		explained bool
		message   string
	}{
		{
			"full", &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}, true,
			"no space left on device (file system " + info.Mount + ": ",
		},
		{"quota", &fs.PathError{Op: "write", Path: path, Err: syscall.EDQUOT}, true, "your quota is used up)"},
		{
			"read-only", &fs.PathError{Op: "open", Path: path, Err: syscall.EROFS}, true,
			"read-only file system (file system " + info.Mount + ": ",
		},
		{"rename", &os.LinkError{Op: "rename", Old: "x", New: path, Err: syscall.ENOSPC}, true,
			"file system " + info.Mount},
		{
			"permission", &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}, false,
			"open " + path + ": permission denied",
		},
		{"no path", syscall.ENOSPC, false, "no space left on device"},
		{
			"a relative path", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, false,
			"write x: no space left on device",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			wrapped := fmt.Errorf("append events 4 to 6: %w", row.err)
			got := volume.Explain(wrapped)
			require.Contains(t, got.Error(), row.message)
			require.ErrorIs(t, got, row.err)
			var explained *volume.Error
			require.Equal(t, row.explained, errors.As(got, &explained))
			require.Equal(t, got.Error(), volume.Explain(got).Error(), "once is enough")
		})
	}
	require.NoError(t, volume.Explain(nil))
}

func TestMessageNamesTheRemedy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for cause, end := range map[syscall.Errno]string{
		syscall.ENOSPC: " free). Free space there, then try again", syscall.EACCES: "permission denied",
		syscall.EDQUOT: "quota is used up). Free space there, then try again",
	} {
		got := volume.Message(fmt.Errorf("write it: %w", &fs.PathError{Op: "open", Path: path, Err: cause}))
		require.True(t, strings.HasSuffix(got, end), got)
	}
}
