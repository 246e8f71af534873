package activities

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestFullStoreIsReported(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a small disk needs root")
	}
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.Mkdir(dir, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "passbook-store",
		dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", dir).Run()) })
	h := newHarness(t, "")
	in := h.startsAs(filepath.Join(h.dir, "run"))
	require.NoError(t, os.CopyFS(dir, os.DirFS(strings.TrimPrefix(h.s.URL(), "file://"))))
	filler, err := os.Create(filepath.Join(dir, "filler"))
	require.NoError(t, err)
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	require.True(t, errors.Is(err, syscall.ENOSPC) || errors.Is(err, io.ErrShortWrite), err)
	require.NoError(t, filler.Close())

	in.Store = "file://" + dir
	_, _, err = h.project(in, nil)
	require.ErrorContains(t, err, "no space left on device (file system "+dir+": 0 B of 256.0 KiB free)")
	require.ErrorContains(t, err, dir+"/")

	require.NoError(t, os.Remove(filepath.Join(dir, "filler")))
	res, _, err := h.project(in, nil)
	require.NoError(t, err, "with space again the same batch is written")
	require.Equal(t, run.ProjectionWritten, res.Outcome)
}
