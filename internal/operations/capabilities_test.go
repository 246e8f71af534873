package operations

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
)

func TestCapabilities(t *testing.T) {
	bin := t.TempDir()
	program := func(name, script string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o755))
	}
	program("claude", "[ \"$*\" = --version ] && echo '2.1.3 (Claude Code)' && echo more; echo x >> "+
		filepath.Join(bin, "asked"))
	program("codex", "exit 1")
	program("my-agent", "touch "+filepath.Join(bin, "called"))
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	agents := []pipeline.Agent{
		{Run: []string{"claude", "-p"}}, {Run: []string{"claude", "-p", "--model", "x"}}, {Run: []string{"codex"}},
		{Run: []string{"scripted"}},
		{Run: []string{filepath.Join(bin, "my-agent")}}, {},
	}
	require.Equal(t, []string{"claude 2.1.3 (Claude Code)", "codex", "scripted v1", "my-agent"},
		capabilities(t.Context(), agents, "v1"))
	asked, err := os.ReadFile(filepath.Join(bin, "asked"))
	require.NoError(t, err)
	require.Equal(t, "x\n", string(asked), "two agents with one program")
	_, err = os.Stat(filepath.Join(bin, "called"))
	require.ErrorIs(t, err, os.ErrNotExist, "a program that is not known is not called")
}
