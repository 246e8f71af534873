package tree

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesThatGitRefuses compares the rule with git, which adds no such file on any system.
func TestNamesThatGitRefuses(t *testing.T) {
	dir := t.TempDir()
	git := func(stdin string, args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"},
			args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	_, err := git("", "init", "-q")
	require.NoError(t, err)
	blob, err := git("x", "hash-object", "-w", "--stdin")
	require.NoError(t, err)
	for _, name := range []string{".git", ".GIT", ".git ", ".git.", ".git . .", "git~1", "GIT~1", "git~1 ", ".git:x",
		"git~1::$INDEX", `.git\x`, `a\.git`, `a\git~1\b`, ".g\u200cit", ".\u200dGI\ufeffT", ".gitx", "git~2", "git", "agit~1",
		".git~1", " .git", "..git", ".gitmodules", ".gitattributes", "a:b", `a\b`, "\u200c", ".git\u200c "} {
		for mode, link := range map[string]bool{"100644": false, "120000": true} {
			_, err := git("", "update-index", "--add", "--cacheinfo", mode+","+blob+","+name)
			require.Equal(t, err != nil, isGit(name) || refusedByGit(name, link), "%q as %s", name, mode)
			_, err = git("", "read-tree", "--empty")
			require.NoError(t, err)
		}
	}
	for _, name := range []string{".gitmodules", ".GITMODULES ", "gitmod~1", "gi7eba~1", ".gitmodules:x", ".git\u200cmodules"} {
		require.True(t, refusedByGit(name, true), name)
		require.False(t, refusedByGit(name, false), name)
	}
}
