package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/test/realcli"
)

// TestSituationsOfTheLoop makes the cells that need no server, and so shows that the harness detects what it counts.
func TestSituationsOfTheLoop(t *testing.T) {
	for _, program := range []string{"curl", "git"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no " + program)
		}
	}
	h := harness{dir: t.TempDir()}
	require.NoError(t, h.writeAgent(filepath.Join(h.dir, "bin")))
	for i, want := range map[int]string{
		0: "2 paid, 39 min lost, 0 wrong",
		1: "2 paid, 39 min lost, 0 wrong",
		3: "1 paid, 0 min lost, 1 wrong; the tests fail in a clone",
		5: "2 paid, 0 min lost, 0 wrong",
	} {
		s := situations[i]
		got, err := h.try(t.Context(), s, &loop{worktrees: s.loopOnly})
		require.NoError(t, err, s.name)
		require.Equal(t, want, got.String(), s.name)
	}
	got, err := h.try(t.Context(), situations[4], &loop{})
	require.NoError(t, err)
	require.Contains(t, got.String(), "the operator's edit is committed")
}

// TestVersionsAreThoseOfTheTests: the scripted agent prints what the tested version of Claude Code does.
func TestVersionsAreThoseOfTheTests(t *testing.T) {
	require.Contains(t, scriptedClaude, `"`+realcli.Claude().Version+` (Claude Code)"`)
}
