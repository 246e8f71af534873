package repo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnWork names the commits that nothing but a run's branch leads to.
func TestOwnWork(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	own := func(besides ...string) OwnWork {
		t.Helper()
		o, err := r.OwnWork(t.Context(), "passbook/r1", besides...)
		require.NoError(t, err)
		return o
	}
	require.Equal(t, OwnWork{At: base}, own(), "a branch at its base holds nothing of its own")

	write(t, w.Root(), files{"a.txt": "b\n"})
	_, err := w.Commit(t.Context(), "Add b", "a.txt")
	require.NoError(t, err)
	at := run(t, w.Root(), "rev-parse", "HEAD")
	short := run(t, w.Root(), "rev-parse", "--short", "HEAD")
	require.Equal(t, OwnWork{At: at, Only: []string{short + " Add b"}}, own())

	run(t, dir, "branch", "passbook/r2", at)
	require.Empty(t, own().Only, "another branch has it")
	require.NotEmpty(t, own("passbook/r2").Only, "that goes, too")
	run(t, dir, "merge", "-q", "--ff-only", "passbook/r1")
	require.Empty(t, own("passbook/r2").Only, "it is merged")

	run(t, dir, "branch", "-D", "passbook/r2")
	require.True(t, r.Holds(t.Context(), at, "passbook/r1"))
	run(t, dir, "reset", "-q", "--hard", base)
	require.False(t, r.Holds(t.Context(), at, "passbook/r1"))
	require.False(t, r.Holds(t.Context(), "0123456789012345678901234567890123456789"))

	o, err := r.OwnWork(t.Context(), "passbook/none")
	require.NoError(t, err)
	require.Zero(t, o)
}

func TestRemoveBranch(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	var there *BranchError
	require.ErrorAs(t, r.RemoveBranch(t.Context(), "passbook/r1", base), &there, "it is checked out")
	require.ErrorIs(t, r.RemoveBranch(t.Context(), "main", base), ErrNotOurs)

	require.NoError(t, os.RemoveAll(w.Root())) // by hand: git still lists it
	paths, err := r.Checkouts(t.Context(), "passbook/r1")
	require.NoError(t, err)
	require.Equal(t, []string{w.Root()}, paths)
	require.ErrorAs(t, r.RemoveBranch(t.Context(), "passbook/r1", "0000000"), &there, "it is at another commit than was looked at")
	require.NoError(t, r.RemoveBranch(t.Context(), "passbook/r1", base))
	require.NoError(t, r.RemoveBranch(t.Context(), "passbook/r1", base), "it is gone already")
	require.NotContains(t, run(t, dir, "worktree", "list"), "passbook/")
	require.Equal(t, "main", run(t, dir, "branch", "--format=%(refname:short)"))
}

func TestWorktreeDirt(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, _ := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "b\n", "new.txt": "new\n"})
	d, err := WorktreeDirt(t.Context(), w.Root())
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "new.txt"}, d.Paths())
	source, err := SourceOf(t.Context(), w.Root())
	require.NoError(t, err)
	require.Equal(t, dir, source)

	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(w.Root(), link))
	_, err = WorktreeDirt(t.Context(), link)
	require.ErrorIs(t, err, ErrNotOurs)
	_, err = WorktreeDirt(t.Context(), dir)
	require.ErrorIs(t, err, ErrNotOurs)
	_, err = WorktreeDirt(t.Context(), folder(t))
	require.ErrorIs(t, err, os.ErrNotExist, "a folder inside of nothing, or of another repository")
}
