package repo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBranchContent(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	own := func(besides ...string) BranchContent {
		t.Helper()
		o := must(r.OwnWork(t.Context(), "passbook/r1", besides...))(t)
		return o
	}
	require.Equal(t, BranchContent{At: base}, own(), "a branch at its base has no commits")

	write(t, w.Root(), files{"a.txt": "b\n"})
	must(w.Commit(t.Context(), "Add b", "a.txt"))(t)
	at := head(t, w.Root())
	short := run(t, w.Root(), "rev-parse", "--short", "HEAD")
	require.Equal(t, BranchContent{At: at, Only: []string{short + " Add b"}}, own())

	run(t, dir, "branch", "passbook/r2", at)
	require.Empty(t, own().Only, "another branch has it")
	require.NotEmpty(t, own("passbook/r2").Only, "that goes, too")
	run(t, dir, "merge", "-q", "--ff-only", "passbook/r1")
	require.Empty(t, own("passbook/r2").Only, "it is merged")

	run(t, dir, "branch", "-D", "passbook/r2")
	require.True(t, r.Contains(t.Context(), at, "passbook/r1"))
	run(t, dir, "reset", "-q", "--hard", base)
	require.False(t, r.Contains(t.Context(), at, "passbook/r1"))
	require.False(t, r.Contains(t.Context(), "0123456789012345678901234567890123456789"))

	require.Zero(t, must(r.OwnWork(t.Context(), "passbook/none"))(t))
}

func TestRemoveBranch(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	var there *BranchError
	require.ErrorAs(t, r.RemoveBranch(t.Context(), "passbook/r1", base), &there, "it is checked out")
	require.ErrorIs(t, r.RemoveBranch(t.Context(), "main", base), ErrNotOwned)

	require.NoError(t, os.RemoveAll(w.Root())) // by hand: git still lists it
	require.Equal(t, []string{w.Root()}, must(r.Checkouts(t.Context(), "passbook/r1"))(t))
	require.ErrorAs(t, r.RemoveBranch(t.Context(), "passbook/r1", "0000000"), &there,
		"it is at another commit")
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
	d := must(WorktreeDirt(t.Context(), w.Root()))(t)
	require.Equal(t, []string{"a.txt", "new.txt"}, d.Paths())
	require.Equal(t, dir, must(SourceOf(t.Context(), w.Root()))(t))

	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(w.Root(), link))
	_, err := WorktreeDirt(t.Context(), link)
	require.ErrorIs(t, err, ErrNotOwned)
	_, err = WorktreeDirt(t.Context(), dir)
	require.ErrorIs(t, err, ErrNotOwned)
	_, err = WorktreeDirt(t.Context(), folder(t))
	require.ErrorIs(t, err, ErrLost, "a folder inside of nothing, or of another repository")
	_, err = WorktreeDirt(t.Context(), filepath.Join(folder(t), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)

	d = Dirt{Unstaged: []string{"a.txt", "deleted.txt"}, Staged: []string{"staged.txt"}, Untracked: []string{"new.txt"}}
	require.Equal(t, []string{"a.txt", "new.txt", "staged.txt"}, d.Unsaved(w.Root()))
}

func TestLostCheckout(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, r *Repo, dir string, w *Worktree) string{
		"moved, and another run has its place": func(t *testing.T, r *Repo, _ string, w *Worktree) string {
			away := filepath.Join(folder(t), "workspace")
			require.NoError(t, os.Rename(w.Root(), away))
			other := must(r.AddWorktree(t.Context(), w.Root(), "passbook/r2", "HEAD"))(t)
			write(t, other.Root(), files{"other.txt": "other\n"})
			return away
		},
		"pruned": func(t *testing.T, _ *Repo, dir string, w *Worktree) string {
			away := filepath.Join(folder(t), "workspace")
			require.NoError(t, os.Rename(w.Root(), away))
			run(t, dir, "worktree", "prune")
			return away
		},
		"without .git": func(t *testing.T, _ *Repo, _ string, w *Worktree) string {
			require.NoError(t, os.Remove(filepath.Join(w.Root(), ".git")))
			return w.Root()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := initial(t, files{"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.o\n"})
			w, _ := worktree(t, r)
			path := lose(t, r, dir, w)
			_, err := WorktreeDirt(t.Context(), path)
			require.ErrorIs(t, err, ErrLost)
			paths := must(r.Unsaved(t.Context(), path, "passbook/r1"))(t)
			require.Empty(t, paths)
			write(t, path, files{"a.txt": "edited\n", "new.txt": "new\n", "made.o": "object\n"})
			require.NoError(t, os.Remove(filepath.Join(path, "b.txt")))
			before := read(t, path)
			paths = must(r.Unsaved(t.Context(), path, "passbook/r1"))(t)
			require.Equal(t, []string{"a.txt", "new.txt"}, paths)
			_, err = r.Unsaved(t.Context(), path, "passbook/none")
			require.ErrorContains(t, err, "no such branch")
			require.Equal(t, before, read(t, path))
			if path != w.Root() {
				_, err = OpenWorktree(t.Context(), path)
				require.Error(t, err)
				require.Error(t, r.RemoveWorktree(t.Context(), path, true))
			}
			if name[0] == 'm' {
				require.ErrorIs(t, err, ErrLost)
				d, err := WorktreeDirt(t.Context(), w.Root())
				require.NoError(t, err, "the other run keeps its record")
				require.Equal(t, []string{"other.txt"}, d.Untracked)
			}
		})
	}
}

func TestOpenRefs(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	_, base := worktree(t, r)
	for name, damage := range map[string][]string{
		"bare":   {"config", "core.bare", "true"},
		"unborn": {"symbolic-ref", "HEAD", "refs/heads/none"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, dir, damage...)
			_, err := Open(t.Context(), dir)
			require.Error(t, err)
			own := must(must(OpenRefs(t.Context(), dir))(t).OwnWork(t.Context(), "passbook/r1"))(t)
			require.Equal(t, BranchContent{At: base}, own)
			run(t, dir, "config", "core.bare", "false")
		})
	}
	_, err := OpenRefs(t.Context(), folder(t))
	require.ErrorIs(t, err, ErrNotRepository)
}

func TestRemoveWorktree(t *testing.T) {
	t.Parallel()
	removes := func(name string) func(*testing.T, string) {
		return func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(filepath.Join(path, name))) }
	}
	for name, row := range map[string]struct {
		damage func(t *testing.T, path string)
		keep   bool
		want   string // the branches that are left
	}{
		"with its branch":     {func(*testing.T, string) {}, false, "main"},
		"without its branch":  {func(*testing.T, string) {}, true, "main passbook/r1"},
		"dirty":               {writes(files{"new.txt": "n\n"}), false, "main"},
		"gone already":        {removes(""), false, "main"},
		"some files are gone": {removes("a.txt"), false, "main"},
		".git is gone":        {removes(".git"), false, "main"},
		"set aside": {func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+"~1")) }, false,
			"main"},
		"an earlier one is aside": {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path+"~1", 0o700)) },
			false, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := initial(t, files{"a.txt": "a\n", "b.txt": "b\n"})
			w, _ := worktree(t, r)
			row.damage(t, w.Root())
			for range 2 {
				require.NoError(t, r.RemoveWorktree(t.Context(), w.Root(), row.keep))
				require.NoDirExists(t, w.Root())
				require.NotContains(t, run(t, dir, "worktree", "list"), w.Root())
				require.Equal(t, row.want, words(run(t, dir, "branch", "--format=%(refname:short)")))
			}
		})
	}
}

func TestRemoveWorktreeRefuses(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	theirs := filepath.Join(folder(t), "theirs")
	run(t, dir, "worktree", "add", "-q", "-b", "feature", theirs)
	for _, path := range []string{theirs, dir} {
		require.ErrorIs(t, r.RemoveWorktree(t.Context(), path, false), ErrNotOwned)
		require.Equal(t, files{"a.txt": "a\n"}, read(t, path))
	}
	w, _ := worktree(t, r)
	run(t, dir, "worktree", "lock", w.Root())
	require.ErrorContains(t, r.RemoveWorktree(t.Context(), w.Root(), false), "lock")
	require.FileExists(t, filepath.Join(w.Root(), "a.txt"))

	run(t, dir, "worktree", "unlock", w.Root())
	run(t, w.Root(), "switch", "-q", "--detach")
	require.ErrorIs(t, r.RemoveWorktree(t.Context(), w.Root(), true), ErrNotOwned)
	require.NoError(t, r.DiscardWorktree(t.Context(), w.Root()), "whatever it has checked out")
	require.NoDirExists(t, w.Root())
	require.ErrorIs(t, r.DiscardWorktree(t.Context(), dir), ErrNotOwned, "the repository itself is not a worktree")
	require.DirExists(t, dir)
}
