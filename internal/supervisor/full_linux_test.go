package supervisor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/supervisor"
)

func TestExitRecordOnFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a small disk needs root")
	}
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "passbook-scratch",
		disk).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", disk).Run()) })
	dir := filepath.Join(disk, "call", "1")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := supervisor.Start([]string{self, supervisor.Verb}, dir, nil)
	require.NoError(t, err)
	begin(t, p, "echo Done.; cat /dev/zero >filler; exit 7")
	require.Equal(t, 7, ended(t, p).Code)
	out, err := os.ReadFile(filepath.Join(dir, "stdout"))
	require.NoError(t, err)
	require.Equal(t, "Done.\n", string(out))
}
