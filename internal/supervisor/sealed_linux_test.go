package supervisor_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/supervisor"
)

// TestAgentCannotChangeItsPrompt: through the descriptor of its standard input.
func TestAgentCannotChangeItsPrompt(t *testing.T) {
	p := waiting(t)
	prompt := filepath.Join(t.TempDir(), "prompt")
	require.NoError(t, os.WriteFile(prompt, []byte("Say hello.\n"), 0o600))
	c := supervisor.Call{
		Path: "/bin/sh", Argv: []string{"sh", "-c", "cat; for how in '>' '>>' '1<>'; do sh -c \"echo bad $how/proc/$$/fd/0\"; done 2>/dev/null; echo end"},
		Dir: p.Dir(), Stdin: prompt, Grace: 2 * time.Second, Timeout: time.Minute,
	}
	c.Stdout, c.Stderr = filepath.Join(p.Dir(), "stdout"), filepath.Join(p.Dir(), "stderr")
	for _, path := range []string{c.Stdout, c.Stderr} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	require.NoError(t, p.StartAgent(c, []string{"PATH=" + os.Getenv("PATH")}))
	require.Zero(t, ended(t, p).Code)
	out, err := os.ReadFile(c.Stdout)
	require.NoError(t, err)
	require.Equal(t, "Say hello.\nend\n", string(out))
	left, err := os.ReadFile(prompt)
	require.NoError(t, err)
	require.Equal(t, "Say hello.\n", string(left))
}
