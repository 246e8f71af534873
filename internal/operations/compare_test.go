package operations

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestContentsComeFromStoreOfRun(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "store")
	d := rundir.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "r", ThreadID: "r", Store: "file://" + folder}))

	missing := OpenContents(t.Context(), d)
	require.ErrorIs(t, missing.Copy("any", io.Discard), os.ErrNotExist)
	missing.Close()
	require.NoFileExists(t, folder, "reading creates no store")

	s := must(store.Open(t.Context(), "file://"+folder))(t)
	digest := must(s.Put(t.Context(), []byte("text")))(t)
	there := OpenContents(t.Context(), d)
	var got bytes.Buffer
	require.NoError(t, there.Copy(string(digest), &got))
	require.Equal(t, "text", got.String())
	there.Close()
}

// changesOf are the changes of a run whose workspace has this tree, or this commit.
func changesOf(t *testing.T, d rundir.Dir) []git.Change {
	t.Helper()
	c, drop, err := Compare(t.Context(), d)
	require.NoError(t, err)
	defer func() { require.NoError(t, drop()) }()
	return must(c.Changes(t.Context()))(t)
}

func changed(t *testing.T, s *store.Store, w run.Workspace, now run.Blob, commit string) rundir.Dir {
	t.Helper()
	return directoryOf(t, s, "r1", entry{run.KindRunStart, run.RunStart{RunID: "r1", ThreadID: "r1", Epoch: 1,
		Workspace: &w}}, entry{run.KindWorkspaceUpdated, run.WorkspaceUpdated{Tree: now, Commit: commit, Changed: 1}})
}

func TestChangesOfAGitWorkspace(t *testing.T) {
	ctx, s, source := t.Context(), testStore(t), t.TempDir()
	write(t, source, map[string]string{"a.txt": "a\n"})
	runGit(t, source, "init", "-q")
	runGit(t, source, "add", "-A")
	runGit(t, source, "commit", "-q", "-m", "first")
	saved := workspace.Blob(must(tree.Save(ctx, s, t.TempDir(), tree.Rules{}, nil))(t)) // commits are compared
	at := run.Workspace{Kind: "git", Source: source, Base: runGit(t, source, "rev-parse", "HEAD"), Branch: "passbook/r1",
		Tree: saved}
	require.Empty(t, changesOf(t, changed(t, s, at, saved, "")), "without a commit of the run")
	runGit(t, source, "switch", "-q", "-c", at.Branch)
	write(t, source, map[string]string{"new.txt": "n\n"})
	runGit(t, source, "add", "-A")
	runGit(t, source, "commit", "-q", "-m", "work")
	d := changed(t, s, at, saved, runGit(t, source, "rev-parse", "HEAD"))
	write(t, source, map[string]string{"a.txt": "by hand\n"})
	require.NoError(t, d.LinkWorkspace(source))
	require.Equal(t, []git.Change{{Path: "new.txt", Kind: git.Added, Added: 1}}, changesOf(t, d),
		"what is not committed is not the run's")

	require.NoError(t, os.RemoveAll(source))
	_, _, err := Compare(ctx, d)
	require.ErrorContains(t, err, "the source with the commits of the run cannot be read")
}

// TestChangesOfAFolder compares the trees of the store. TestFolders of package repo has all kinds of changes.
func TestChangesOfAFolder(t *testing.T) {
	ctx, s, dir := t.Context(), testStore(t), t.TempDir()
	write(t, dir, map[string]string{"a.txt": "a\n", "same.txt": "s\n", "tool": "#!\n"})
	from := must(tree.Save(ctx, s, dir, tree.Rules{}, nil))(t)
	write(t, dir, map[string]string{"a.txt": "a\nb\n"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "tool"), 0o755))
	to := must(tree.Save(ctx, s, dir, tree.Rules{}, nil))(t)
	require.Equal(t, []git.Change{
		{Path: "a.txt", Kind: git.Changed, Added: 1},
		{Path: "tool", Kind: git.Mode},
	}, changesOf(t, changed(t, s, run.Workspace{Kind: "dir", Source: dir, Tree: workspace.Blob(from)},
		workspace.Blob(to), "")))
}
