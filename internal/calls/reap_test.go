package calls

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// TestMain lets the test binary be a supervisor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Verb {
		os.Exit(supervisor.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestReapEndsSetups: the worker of a setup was killed, and the next delivery is about to use the same folder.
func TestReapEndsSetups(t *testing.T) {
	require.NoError(t, Reap(t.Context(), filepath.Join(t.TempDir(), "none")))
	for _, part := range []string{"", SetupPrefix + "1", SetupPrefix + "2"} {
		dir := t.TempDir()
		own := filepath.Join(dir, part)
		require.NoError(t, os.MkdirAll(own, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(own, "prompt"), nil, 0o600))
		program, err := os.Executable()
		require.NoError(t, err)
		p, err := supervisor.Start([]string{program, supervisor.Verb}, own, nil)
		require.NoError(t, err)
		child, err := agent.Start(p, agent.Command{Argv: []string{"/bin/sh", "-c", "sleep 60"}, Shell: true, Dir: dir, Mark: own,
			Timeout: time.Minute, Prompt: filepath.Join(own, "prompt"), Stdout: filepath.Join(own, "stdout"),
			Stderr: filepath.Join(own, "stderr")})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, begun, err := supervisor.ReadRecord(own)
			return begun && err == nil
		}, time.Minute, time.Millisecond)
		require.NoError(t, Reap(t.Context(), dir))
		<-child.Done()
		exit, err := child.Result()
		require.NoError(t, err)
		require.True(t, exit.Killed, part)
		require.Less(t, exit.Duration, 50*time.Second)
	}
}
