package workspace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func open(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	return s
}

func paths(saved tree.Saved) (all []string) {
	for _, e := range saved.Tree.Entries {
		all = append(all, e.Path)
	}
	return all
}

func TestRulesOfPlan(t *testing.T) {
	require.Equal(t, tree.Rules{}, workspace.RulesOf(&pipeline.Plan{}))
	w := pipeline.Workspace{Ignore: []string{"*.o"}, Secrets: "keep"}
	require.Equal(t, tree.Rules{Ignore: []string{"*.o"}, IncludeSecrets: true, SkipOutside: true, Portable: true},
		workspace.RulesOf(&pipeline.Plan{Workspace: &w}))
	w.Secrets = "skip"
	require.False(t, workspace.RulesOf(&pipeline.Plan{Workspace: &w}).IncludeSecrets)
	plan := &pipeline.Plan{Workspace: &w, Roles: []pipeline.Role{{Name: "coder", Gives: pipeline.GivesChanges}},
		Stages: []pipeline.PlanStage{{Rounds: []pipeline.PlanRound{{Steps: []pipeline.PlanStep{{Role: "coder",
			Limits: &pipeline.Limits{Tree: pipeline.TreeLimits{Size: 7, Files: 3}}}}}}}}}
	first := workspace.FirstRules(plan)
	require.Equal(t, []string{"*.o"}, first.Ignore)
	require.Equal(t, pipeline.TreeLimits{Size: 7, Files: 3}, first.Limits)
}

// TestWorkspaceNow has the newest tree and commit of the run.
func TestWorkspaceNow(t *testing.T) {
	of := run.Workspace{Kind: run.WorkspaceGit, Base: "b", Commit: "c", Tree: run.Blob{Digest: "old"}}
	now := workspace.Current(contract.Tree{Workspace: of, Tree: run.Blob{Digest: "new"}, Commit: "d"})
	require.Equal(t, run.Workspace{Kind: run.WorkspaceGit, Base: "b", Commit: "d", Tree: run.Blob{Digest: "new"}}, now)
	require.Equal(t, "c", workspace.Current(contract.Tree{Workspace: of}).Commit)
}

// TestSaveKeepsWhatTheTreeHas: a file that the run has is not left out because it looks like a secret.
func TestSaveKeepsWhatTheTreeHas(t *testing.T) {
	s, dir := open(t), t.TempDir()
	write(t, dir, map[string]string{"a.txt": "one", "sub/b.txt": "three"})
	first, err := tree.Save(t.Context(), s, dir, tree.Rules{IncludeSecrets: true}, nil)
	require.NoError(t, err)
	require.Equal(t, run.Blob{Digest: string(first.Digest), Size: 8}, workspace.Blob(first))
	write(t, dir, map[string]string{".env": "secret"})
	fresh, err := save(t, s, dir, run.Workspace{Tree: workspace.Blob(first)})
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "sub", "sub/b.txt"}, paths(fresh))

	with, err := tree.Save(t.Context(), s, dir, tree.Rules{IncludeSecrets: true}, nil)
	require.NoError(t, err)
	write(t, dir, map[string]string{"other.pem": "key"})
	again, err := save(t, s, dir, run.Workspace{Tree: workspace.Blob(with)})
	require.NoError(t, err)
	require.Equal(t, []string{".env", "a.txt", "sub", "sub/b.txt"}, paths(again))
	_, err = save(t, s, dir, run.Workspace{Tree: run.Blob{Digest: "gone"}})
	require.Error(t, err)
}

func save(t *testing.T, s *store.Store, dir string, of run.Workspace) (tree.Saved, error) {
	rules, err := workspace.In("").WithGit(t.Context(), s, tree.Rules{}, of)
	if err != nil {
		return tree.Saved{}, err
	}
	return tree.Save(t.Context(), s, dir, rules, nil)
}

// TestIgnoredByGit: the accepted tree decides what git ignores, whatever the folder contains now, and then the operator's
// files of rules. What the tree has is neither ignored nor a secret.
func TestIgnoredByGit(t *testing.T) {
	source, dir, s := t.TempDir(), t.TempDir(), open(t)
	git(t, source, "init", "-q")
	git(t, source, "commit", "-qm", "first", "--allow-empty")
	write(t, source, map[string]string{".git/info/exclude": "*.mine\n"})
	write(t, dir, map[string]string{".gitignore": "build/\n*.log\n", "tracked.pem": "key", "kept.log": "log"})
	accepted, err := tree.Save(t.Context(), s, dir, tree.Rules{IncludeSecrets: true}, nil)
	require.NoError(t, err)
	of := run.Workspace{Kind: run.WorkspaceGit, Source: source, Tree: workspace.Blob(accepted)}
	write(t, dir, map[string]string{".gitignore": "*.txt\n", "new.txt": "n", "new.pem": "key", "new.log": "l",
		"build/out": "x", "a.mine": "m"})
	saves := func(of run.Workspace) []string {
		saved, err := save(t, s, dir, of)
		require.NoError(t, err)
		return paths(saved)
	}
	require.Equal(t, []string{".gitignore", "kept.log", "new.txt", "tracked.pem"}, saves(of))

	rules, err := workspace.In("").WithGit(t.Context(), s, tree.Rules{Ignore: []string{"*.o"}}, of)
	require.NoError(t, err)
	require.Equal(t, []string{"*.o"}, rules.Ignore)
	require.Equal(t, []string{".gitignore", "kept.log", "tracked.pem"}, rules.Tracked)
	of.Source = filepath.Join(source, "none")
	require.Equal(t, []string{".gitignore", "a.mine", "kept.log", "new.txt", "tracked.pem"}, saves(of),
		"the repository is gone")
	of.Kind = run.WorkspaceDir
	require.Equal(t, []string{".gitignore", "a.mine", "build", "build/out", "kept.log", "new.log", "new.txt",
		"tracked.pem"}, saves(of))
	_, err = workspace.In("").WithGit(t.Context(), s, tree.Rules{}, run.Workspace{Tree: run.Blob{Digest: "gone"}})
	require.Error(t, err)
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// TestOmissionsAreListed: refused names are first, secrets precede ignored files, folders have a slash, and the rest is counted.
func TestOmissionsAreListed(t *testing.T) {
	var saved tree.Saved
	add := func(path string, folder bool, why tree.Reason) {
		saved.Skipped = append(saved.Skipped, tree.Skipped{Path: path, Folder: folder, Reason: why})
	}
	add(".git", true, tree.ReasonGit)
	add("build", true, tree.ReasonIgnored)
	add("id_rsa", false, tree.ReasonSecret)
	add("bad\xff", false, tree.ReasonSpecial)
	add("two\nlines", false, tree.ReasonName)
	first, count := workspace.Skipped(saved)
	want := []run.LeftOut{{Path: `two\nlines`, Reason: "name"}, {Path: "id_rsa", Reason: "secret"}, {Path: "bad\uFFFD", Reason: "special"},
		{Path: "build/", Reason: "ignored"}}
	require.Equal(t, want, first)
	require.Equal(t, 4, count)
	require.Equal(t, []string{`left out of the tree: two\nlines (name)`, "left out of the tree: id_rsa (secret)", "left out of the tree: bad\uFFFD (special)"},
		workspace.LeftOut(saved))
	require.Equal(t, "left out of the tree: build/ (ignored)", workspace.Describe(first, count, true)[3])
	for i := range 25 {
		add(fmt.Sprintf("key-%02d", i), false, tree.ReasonSecret)
	}
	lines := workspace.LeftOut(saved)
	require.Len(t, lines, 21)
	require.Equal(t, "left out of the tree: 9 more", lines[20])
	require.Empty(t, workspace.Describe(nil, 0, true))
}
