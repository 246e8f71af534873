package e2e_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// smallDisk is a run directory on a disk of its own, which only root can make.
func smallDisk(t *testing.T, h *house) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making a small disk needs root")
	}
	dir := h.dir("small")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=3m", "passbook-e2e", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %s", out)
	}
	t.Cleanup(func() {
		out, err := exec.Command("umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	return filepath.Join(dir, "run")
}

// fill uses up what room there is, and gives the file to be removed.
func fill(t *testing.T, folder string) string {
	t.Helper()
	name := filepath.Join(folder, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.True(t, errors.Is(err, syscall.ENOSPC) || errors.Is(err, io.ErrShortWrite), err)
	require.NoError(t, f.Close())
	return name
}

// TestAFullDisk fills the disk of the directory in the middle of a call: the run rests, everybody who can be told is told, and with room again it
// ends as if nothing had been.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "PASSBOOK_HEARTBEAT=3s")
	dir := smallDisk(t, h)
	h.spoil(slow("3", "2"))
	h.begin(dir)
	h.mid("003")
	before := read(t, dir+"/events.jsonl")
	filler := fill(t, filepath.Dir(dir))
	until(t, "the workflow says that it rests", func() bool { return h.told(dir).Standing.Live == run.Paused })
	calls := h.count("start", "")
	require.Contains(t, h.starter("status", dir), "running (as recorded; its workflow says paused, and the directory follows when it can be written)")
	whole(t, dir, before)
	require.NoError(t, os.Remove(filler))
	until(t, "the directory says so too", func() bool { return statusIs(dir, run.Paused) })
	require.Equal(t, run.DiskFull, metaOf(t, dir).State.Reason)
	require.Equal(t, calls, h.count("start", ""), "something was called on a full disk")
	h.starter("resume", dir)
	h.finish(dir)
	h.undisturbed(dir, 0)
}
