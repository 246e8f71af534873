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

// TestWhoHasLeftTheGroupIsEndedToo: by the mark that it carries, of this child alone.
func TestWhoHasLeftTheGroupIsEndedToo(t *testing.T) {
	other := commandIn(t.TempDir(), "wait")
	other.Mark = other.Dir
	stays := start(t, other)
	c := commandIn(t.TempDir(), "emigrate")
	c.Mark = c.Dir
	exit := result(t, start(t, c))
	require.Zero(t, exit.Code)
	_, emigrant := pids(t, c)
	requireGone(t, emigrant)
	require.True(t, stays.Identity().Alive())
	stays.Kill("test")
	result(t, stays)
}

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
