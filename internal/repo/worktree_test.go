package repo

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddWorktree(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n", "sub/b.txt": "b\n"})
	path, base := filepath.Join(folder(t), "run", "workspace"), head(t, dir)
	w := must(r.AddWorktree(t.Context(), path, "passbook/r1", "HEAD"))(t)
	require.Equal(t, path, w.Root())
	require.Equal(t, files{"a.txt": "a\n", "sub/b.txt": "b\n"}, read(t, path))
	require.Equal(t, "passbook/r1", run(t, path, "branch", "--show-current"))
	require.Equal(t, "main", run(t, dir, "branch", "--show-current"))

	write(t, path, files{"a.txt": "committed\n", "sub/b.txt": "changed\n"})
	must(w.Commit(t.Context(), "work", "a.txt"))(t)
	require.Equal(t, path, must(r.AddWorktree(t.Context(), path, "passbook/r1", base))(t).Root())
	require.Equal(t, files{"a.txt": "committed\n", "sub/b.txt": "changed\n"}, read(t, path), "an existing one stays")

	run(t, dir, "checkout", "-q", "--detach")
	must(r.AddWorktree(t.Context(), filepath.Join(folder(t), "workspace"), "passbook/r2", "HEAD"))(t)
}

func TestAddWorktreeRefuses(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	first := head(t, dir)
	run(t, dir, "branch", "passbook/taken")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
	second := head(t, dir)
	elsewhere := filepath.Join(folder(t), "elsewhere")
	run(t, dir, "worktree", "add", "-q", "-b", "passbook/away", elsewhere)
	full := folder(t)
	write(t, full, files{"mine.txt": "mine\n"})
	other, _ := initial(t, nil)
	stranger, _ := worktree(t, other)

	path := filepath.Join(folder(t), "workspace")
	for _, row := range []struct{ name, path, branch, commit, message string }{
		{"a branch that is not a run's", path, "main", first, "must start with passbook/"},
		{
			"a branch at another commit", path, "passbook/taken", second,
			"branch passbook/taken already exists at commit " + first,
		},
		{
			"a branch that is checked out elsewhere", path, "passbook/away", second,
			"branch passbook/away is checked out at " + elsewhere,
		},
		{"a folder with something in it", full, "passbook/new", second, "already exists"},
		{"the source itself", dir, "passbook/new", second, "it is a separate repository"},
		{"a worktree on another branch", elsewhere, "passbook/new", second,
			`it has branch "passbook/away" checked out`},
		{"a worktree of another repository", stranger.Root(), "passbook/r1", second, "it belongs to the repository"},
		{
			"no such commit", path, "passbook/new", "0123456789012345678901234567890123456789",
			"find commit 0123456789012345678901234567890123456789",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := r.AddWorktree(t.Context(), row.path, row.branch, row.commit)
			require.ErrorContains(t, err, row.message)
			require.NoDirExists(t, path)
		})
	}
	require.Equal(t, files{"mine.txt": "mine\n"}, read(t, full))
}

func TestAddWorktreeAfterFolderRemoval(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, path string }{
		{"same place", "workspace"}, {"another place", "elsewhere/workspace"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir := initial(t, files{"a.txt": "a\n"})
			parent := folder(t)
			must(r.AddWorktree(t.Context(), filepath.Join(parent, "workspace"), "passbook/r1", "HEAD"))(t)
			other, _ := filepath.Abs(filepath.Join(parent, "other"))
			must(r.AddWorktree(t.Context(), other, "passbook/r2", "HEAD"))(t)
			erase(t, parent, "workspace")
			erase(t, parent, "other")

			w := must(r.AddWorktree(t.Context(), filepath.Join(parent, row.path), "passbook/r1", "HEAD"))(t)
			require.Equal(t, files{"a.txt": "a\n"}, read(t, w.Root()))
			require.Contains(t, run(t, dir, "worktree", "list"), other, "the disk of another run may only be away")
		})
	}
}

func TestAddWorktreeInMovedDirectory(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	parent := folder(t)
	must(r.AddWorktree(t.Context(), filepath.Join(parent, "old", "workspace"), "passbook/r1", "HEAD"))(t)
	write(t, filepath.Join(parent, "old", "workspace"), files{"a.txt": "kept\n"})
	require.NoError(t, os.Rename(filepath.Join(parent, "old"), filepath.Join(parent, "new")))

	w := must(r.AddWorktree(t.Context(), filepath.Join(parent, "new", "workspace"), "passbook/r1", "HEAD"))(t)
	require.Equal(t, files{"a.txt": "kept\n"}, read(t, w.Root()))
	require.Contains(t, run(t, dir, "worktree", "list"), filepath.Join(parent, "new", "workspace"))
	require.NotContains(t, run(t, dir, "worktree", "list"), filepath.Join(parent, "old"))
}

func TestAddWorktreeAfterInterruption(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n", "b.txt": "b\n"})
	w, base := worktree(t, r)
	erase(t, w.Root(), "b.txt")
	write(t, filepath.Join(dir, ".git", "worktrees", "workspace"), files{"locked": "initializing"})

	w = must(r.AddWorktree(t.Context(), w.Root(), "passbook/r1", base))(t)
	require.Equal(t, files{"a.txt": "a\n", "b.txt": "b\n"}, read(t, w.Root()))
}

func TestConcurrentAddWorktree(t *testing.T) {
	t.Parallel()
	r, _ := initial(t, files{"a.txt": "a\n"})
	parent := folder(t)
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wait.Go(func() {
			_, errs[i] = r.AddWorktree(t.Context(), filepath.Join(parent, fmt.Sprint(i), "workspace"),
				fmt.Sprintf("passbook/r%d", i), "HEAD")
		})
	}
	wait.Wait()
	for i, err := range errs {
		require.NoError(t, err)
		require.Equal(t, files{"a.txt": "a\n"}, read(t, filepath.Join(parent, fmt.Sprint(i), "workspace")))
	}
}

func TestAddWorktreeFromMovedSource(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "kept\n"})
	moved := filepath.Join(folder(t), "moved")
	require.NoError(t, os.Rename(dir, moved))
	r = must(Open(t.Context(), moved))(t)
	must(r.AddWorktree(t.Context(), w.Root(), "passbook/r1", base))(t)
	require.Equal(t, "M a.txt", status(t, w.Root()))
}

func TestSubmodule(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n"})
	submodule(t, dir)
	write(t, dir, files{"a.txt": "mine\n"})
	w, _ := worktree(t, r)
	base := must(w.ImportChanges(ctx, r, true))(t)
	require.Equal(t, "mine\n", read(t, w.Root())["a.txt"])
	require.Empty(t, must(w.Changes(ctx, base))(t))

	write(t, w.Root(), files{"b.txt": "b\n"})
	patch := patchSince(t, w, base)
	must(w.Commit(ctx, "work", "b.txt"))(t)
	require.Equal(t, ".gitmodules a.txt b.txt lib", words(run(t, w.Root(), "ls-tree", "-r", "--name-only", "HEAD")))
	require.NoError(t, r.Apply(ctx, patch))
	require.Equal(t, "l\n", read(t, dir)["lib/l.txt"])
	require.NoError(t, w.Reset(ctx, base))
	require.NoError(t, r.RemoveWorktree(ctx, w.Root(), false))
	require.NoDirExists(t, w.Root())
}
