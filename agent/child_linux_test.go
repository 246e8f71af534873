package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKilledWorkerTakesItsChildAlong(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), playing+"=worker "+dir)
	require.NoError(t, worker.Start())
	defer worker.Wait()
	defer worker.Process.Kill()
	var pid int
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "pid"))
		pid, _ = strconv.Atoi(string(data))
		return err == nil
	}, bound, 5*time.Millisecond)
	require.True(t, alive(pid))
	require.NoError(t, worker.Process.Kill())
	requireGone(t, pid)
}
