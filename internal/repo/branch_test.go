package repo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// delivered is a repository whose run has committed work.
func delivered(t *testing.T) (r *Repo, dir, base, work string) {
	t.Helper()
	r, dir = initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "new.txt": "n\n"})
	work = must(w.Commit(t.Context(), "work", "a.txt", "new.txt"))(t)
	return r, dir, base, work
}

func TestCreateBranch(t *testing.T) {
	t.Parallel()
	r, dir, base, work := delivered(t)
	for range 2 {
		require.NoError(t, r.CreateBranch(t.Context(), "feature/x", work))
		require.Equal(t, work, run(t, dir, "rev-parse", "feature/x"))
	}
	var taken *BranchError
	require.ErrorAs(t, r.CreateBranch(t.Context(), "feature/x", base), &taken)
	require.Equal(t, &BranchError{Branch: "feature/x", At: work}, taken)
	require.ErrorAs(t, r.CreateBranch(t.Context(), "not a name", work), new(*RefusedError))
	require.Equal(t, files{"a.txt": "a\n"}, read(t, dir))
}

func TestFastForwardOtherBranch(t *testing.T) {
	t.Parallel()
	r, dir, base, work := delivered(t)
	run(t, dir, "branch", "release", base)
	require.NoError(t, r.FastForward(t.Context(), "release", work))
	require.Equal(t, work, run(t, dir, "rev-parse", "release"))
	require.Equal(t, files{"a.txt": "a\n"}, read(t, dir))
	require.NoError(t, r.FastForward(t.Context(), "release", base), "it has that commit already")
	require.Equal(t, work, run(t, dir, "rev-parse", "release"))
}

func TestFastForwardRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, branch string
		damage       func(t *testing.T, dir string)
		is           func(error) bool
		message      string
	}{
		{
			"another commit on it", "main",
			func(t *testing.T, dir string) { run(t, dir, "commit", "-q", "--allow-empty", "-m", "mine") },
			isA[*NotForwardError], "is not an ancestor of",
		},
		{"checked out elsewhere", "other", func(t *testing.T, dir string) {
			run(t, dir, "worktree", "add", "-q", "-b", "other", filepath.Join(folder(t), "w"))
		}, isA[*BranchError], "branch other is checked out at"},
		{
			"uncommitted changes in its way", "main",
			writes(files{"a.txt": "mine\n"}), isA[*RefusedError],
			"would be overwritten by merge",
		},
		{
			"an untracked file in its way", "main",
			writes(files{"new.txt": "mine\n"}), isA[*RefusedError],
			"would be overwritten by merge",
		},
		{"no such branch", "nowhere", func(*testing.T, string) {}, isA[error], "no such branch"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir, _, work := delivered(t)
			row.damage(t, dir)
			before, at := read(t, dir), head(t, dir)
			err := r.FastForward(t.Context(), row.branch, work)
			require.ErrorContains(t, err, row.message)
			require.ErrorContains(t, err, "fast-forward branch "+row.branch)
			require.True(t, row.is(err), "%T", err)
			require.Equal(t, before, read(t, dir))
			require.Equal(t, at, head(t, dir))
		})
	}
}

func isA[T error](err error) bool {
	var as T
	return errors.As(err, &as)
}

func TestReset(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, _ := initial(t, files{"a.txt": "a\n", "gone.txt": "g\n", ".gitignore": "cache\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "cache": "c\n"})
	must(w.Commit(ctx, "work", "a.txt"))(t)
	write(t, w.Root(), files{"a.txt": "a3\n", "new/x.txt": "n\n", "inner/i.txt": "i\n"})
	run(t, filepath.Join(w.Root(), "inner"), "init", "-q")
	erase(t, w.Root(), "gone.txt")
	run(t, w.Root(), "add", "a.txt")
	write(t, w.gitDir, files{"index.lock": ""})

	require.NoError(t, w.Reset(ctx, base))
	require.Equal(t, files{"a.txt": "a\n", "gone.txt": "g\n", ".gitignore": "cache\n", "cache": "c\n"},
		read(t, w.Root()))
	require.NoDirExists(t, filepath.Join(w.Root(), "new"))
	require.NoDirExists(t, filepath.Join(w.Root(), "inner"))
	require.Equal(t, base+" passbook/r1",
		head(t, w.Root())+" "+run(t, w.Root(), "branch", "--show-current"))
}

func TestResetRefusesForeignCheckout(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	run(t, dir, "checkout", "-q", "-b", "passbook/mine")
	write(t, dir, files{"a.txt": "mine\n"})
	require.ErrorIs(t, (&Worktree{*r}).Reset(ctx, base), ErrNotOwned, "the source, even on a branch like ours")
	require.Equal(t, files{"a.txt": "mine\n"}, read(t, dir))

	for _, args := range [][]string{{"checkout", "-q", "-b", "taken-over"}, {"checkout", "-q", "--detach"}} {
		run(t, w.Root(), args...)
		write(t, w.Root(), files{"a.txt": "mine\n"})
		require.ErrorIs(t, w.Reset(ctx, base), ErrNotOwned)
		_, err := w.Commit(ctx, "work", "a.txt")
		require.ErrorIs(t, err, ErrNotOwned)
		require.Equal(t, files{"a.txt": "mine\n"}, read(t, w.Root()))
	}
}

func TestOpenWorktree(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	moved := filepath.Join(folder(t), "moved")
	require.NoError(t, os.Rename(w.Root(), moved))
	write(t, moved, files{"a.txt": "b\n"})
	changes := must(must(OpenWorktree(ctx, moved))(t).Changes(ctx, base))(t)
	require.Equal(t, []Change{{Path: "a.txt", Kind: Changed, Added: 1, Removed: 1}}, changes)

	_, err := OpenWorktree(ctx, dir)
	require.ErrorIs(t, err, ErrNotOwned)
	_, err = OpenWorktree(ctx, w.Root())
	require.ErrorIs(t, err, os.ErrNotExist)
}
