package process_test

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
)

// carrier is a process with that much of an environment.
func carrier(t *testing.T, env ...string) process.Identity {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	id, err := process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return id
}

func TestKillWithEnv(t *testing.T) {
	mark := "/scratch/" + t.Name() + "/1"
	path := "PATH=" + os.Getenv("PATH")
	marked := []process.Identity{carrier(t, path, "MARK="+mark), carrier(t, "MARK="+mark, path)}
	strangers := []process.Identity{
		carrier(t, path, "MARK="+mark+"0"), carrier(t, path, "MARK="+mark[:len(mark)-1]),
		carrier(t, path, "XMARK="+mark),
		carrier(t, path),
		carrier(t, path, "OTHER=MARK="+mark),
	}
	found, err := process.WithEnv("MARK", mark)
	require.NoError(t, err)
	require.ElementsMatch(t, marked, found)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, process.KillWithEnv(ctx, "MARK", mark))
	for _, id := range marked {
		require.False(t, id.Alive())
	}
	for _, id := range strangers {
		require.True(t, id.Alive())
	}
}
