package workspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

func TestRemakeGitRemovesARepositoryWithoutSource(t *testing.T) {
	for name, of := range map[string]run.Workspace{
		"of a folder":              {Kind: run.WorkspaceDir, Source: t.TempDir()},
		"whose source was removed": {Kind: run.WorkspaceGit, Source: filepath.Join(t.TempDir(), "gone"), Base: "c0ffee"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{".git/config": "[core]\n\tfsmonitor = planted\n", "kept": ""})
			objects, err := workspace.RemakeGit(t.Context(), t.TempDir(), of, dir)
			require.NoError(t, err)
			require.Empty(t, objects)
			require.NoDirExists(t, filepath.Join(dir, ".git"))
			require.FileExists(t, filepath.Join(dir, "kept"))
		})
	}
}
