package operations

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/repo"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// compared is a run directory of a run that works on a workspace.
func compared(t *testing.T, s *store.Store, w run.Workspace, now run.Blob, commit string) projector.Dir {
	t.Helper()
	d := projector.At(t.TempDir())
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: "r1", ThreadID: "r1", Store: s.URL()}))
	lines := []string{}
	for seq, e := range []struct {
		kind    run.Kind
		payload any
	}{
		{run.KindRunStart, run.RunStart{RunID: "r1", ThreadID: "r1", Epoch: 1, Workspace: &w}},
		{run.KindWorkspaceUpdated, run.WorkspaceUpdated{Tree: now, Commit: commit, Changed: 1}},
	} {
		raw, err := run.Payload(e.payload)
		require.NoError(t, err)
		line, err := run.Event{Seq: int64(seq + 1), TS: "2026-01-02T03:04:05.000Z", Kind: e.kind, Payload: raw}.Line()
		require.NoError(t, err)
		lines = append(lines, line)
	}
	p, err := d.Project(t.Context(), blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	return d
}

func lays(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

func testStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestCompareAGitWorkspace(t *testing.T) {
	ctx, source := t.Context(), t.TempDir()
	lays(t, source, map[string]string{"a.txt": "a\n"})
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=Test", "-c", "user.email=t@localhost", "commit", "-q", "-m", "first"}} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = source
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	r, err := repo.Open(ctx, source)
	require.NoError(t, err)
	base, _, err := r.Head(ctx)
	require.NoError(t, err)
	s := testStore(t)
	empty, err := tree.Save(ctx, s, t.TempDir(), tree.Rules{}, nil)
	require.NoError(t, err)
	saved := workspace.Blob(empty) // what is compared are commits
	at := run.Workspace{Kind: "git", Source: source, Base: base, Branch: "passbook/r1", Tree: saved}
	w, err := r.AddWorktree(ctx, filepath.Join(t.TempDir(), "workspace"), at.Branch, base)
	require.NoError(t, err)
	lays(t, w.Root(), map[string]string{"new.txt": "n\n"})
	commit, err := w.Commit(ctx, "work", "new.txt")
	require.NoError(t, err)
	d := compared(t, s, at, saved, commit)
	added := repo.Change{Path: "new.txt", Kind: repo.Added, Added: 1}

	c, drop, err := Compare(ctx, d)
	require.NoError(t, err)
	changes, err := c.Changes(ctx)
	drop()
	require.NoError(t, err)
	require.Equal(t, []repo.Change{added}, changes, "without its checkout: from its branch")

	require.NoError(t, r.RemoveWorktree(ctx, w.Root(), true))
	w, err = r.AddWorktree(ctx, d.Path(layout.WorkspaceDir), at.Branch, commit)
	require.NoError(t, err)
	lays(t, w.Root(), map[string]string{"a.txt": "by hand\n"})
	c, drop, err = Compare(ctx, d)
	require.NoError(t, err)
	changes, err = c.Changes(ctx)
	drop()
	require.NoError(t, err)
	require.Equal(t, []repo.Change{{Path: "a.txt", Kind: repo.Changed, Added: 1, Removed: 1}, added}, changes)

	require.NoError(t, os.RemoveAll(d.Path(layout.WorkspaceDir)))
	require.NoError(t, os.RemoveAll(source))
	_, _, err = Compare(ctx, d)
	require.ErrorContains(t, err, "neither the run's checkout")
}

func TestCompareAFolder(t *testing.T) {
	ctx, s, dir := t.Context(), testStore(t), t.TempDir()
	lays(t, dir, map[string]string{"a.txt": "a\n", "same.txt": "s\n", "sub/gone.txt": "g\n", "tool": "#!\n"})
	from, err := tree.Save(ctx, s, dir, tree.Rules{}, nil)
	require.NoError(t, err)
	lays(t, dir, map[string]string{"a.txt": "a\nb\n", "deep/er/new.txt": "n\n"})
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "sub")))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	require.NoError(t, os.Chmod(filepath.Join(dir, "tool"), 0o755))
	to, err := tree.Save(ctx, s, dir, tree.Rules{}, nil)
	require.NoError(t, err)
	d := compared(t, s, run.Workspace{Kind: "dir", Source: dir, Tree: workspace.Blob(from)}, workspace.Blob(to), "")

	c, drop, err := Compare(ctx, d)
	require.NoError(t, err)
	defer drop()
	changes, err := c.Changes(ctx)
	require.NoError(t, err)
	require.Equal(t, []repo.Change{
		{Path: "a.txt", Kind: repo.Changed, Added: 1},
		{Path: "deep/er/new.txt", Kind: repo.Added, Added: 1},
		{Path: "link", Kind: repo.Added, Added: 1},
		{Path: "sub/gone.txt", Kind: repo.Removed, Removed: 1},
		{Path: "tool", Kind: repo.Mode},
	}, changes)
}
