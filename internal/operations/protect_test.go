package operations

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/rundir"
)

// What a start reads, and what of it lies in the workspace. What roles work on is not among it.
func TestDefinitionWithin(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	home := filepath.Join(root, "passbook")
	require.NoError(t, os.MkdirAll(home, 0o700))
	def := Definition{Home: home, Parsed: &pipeline.Definition{File: "passbook/pipeline.yaml"}, Plan: &pipeline.Plan{
		Roles: []pipeline.Role{{Prompt: "prompts/b.md", Schema: "b.json"}, {Prompt: "prompts/a.md"},
			{Prompt: "prompts/a.md"}},
		Projects:   []pipeline.Project{{Pipeline: "lib.yaml"}},
		AlwaysRead: []pipeline.File{{Path: "about.md"}},
		Sets:       []pipeline.Set{{Files: []pipeline.File{{Path: "set.md"}}}},
		Artifact:   &pipeline.Artifact{Seed: "seed.html"},
		Workspace:  &pipeline.Workspace{Git: "worktree"},
	}}
	all := []string{".worktreeinclude", "passbook/about.md", "passbook/b.json", "passbook/lib.yaml", "passbook/pipeline.yaml", "passbook/prompts/a.md",
		"passbook/prompts/b.md"}
	require.Equal(t, all, def.within(root))
	require.Equal(t, all[:1], def.within(t.TempDir()), "the workspace is elsewhere")
	def.Home = ""
	require.Empty(t, def.within(root))
	def.Follow = &Follow{Workspace: &rundir.Workspace{Definition: all}}
	require.Equal(t, all, def.within(root), "as of the run that it follows")
}
