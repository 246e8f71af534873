package repo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommitExactPaths(t *testing.T) {
	t.Parallel()
	r, _ := initial(t, files{
		"a.txt": "a\n", "gone.txt": "g\n", "old name.txt": "one\ntwo\nthree\n", "other.txt": "o\n", "staged.txt": "s\n",
	})
	w, base := worktree(t, r)
	write(t, w.Root(), files{
		"a.txt": "a2\n", "new/file.txt": "n\n", "other.txt": "o2\n", "untracked.txt": "u\n", "staged.txt": "s2\n",
	})
	erase(t, w.Root(), "gone.txt")
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old name.txt"), filepath.Join(w.Root(), "new name.txt")))
	run(t, w.Root(), "add", "staged.txt")

	id := must(w.Commit(t.Context(), "pass 3\n\nwhat it did\n", "a.txt", "new/file.txt", "gone.txt", "old name.txt",
		"new name.txt"))(t)
	require.Equal(t, run(t, w.Root(), "rev-parse", "passbook/r1"), id)
	require.Equal(t, base, run(t, w.Root(), "rev-parse", id+"^"))
	require.Equal(t, "M a.txt D gone.txt R100 old name.txt new name.txt A new/file.txt",
		words(run(t, w.Root(), "diff-tree", "-r", "-M", "--name-status", base, id)))
	require.Equal(t, "pass 3\n\nwhat it did", run(t, w.Root(), "log", "-1", "--format=%B"))
	require.Equal(t, "M other.txt M staged.txt ?? untracked.txt", status(t, w.Root()))
	require.Equal(t, "staged.txt", run(t, w.Root(), "diff", "--cached", "--name-only"),
		"what was staged by others stays staged")

	id = must(w.Commit(t.Context(), "again", "a.txt", "gone.txt", "never was.txt"))(t)
	require.Empty(t, id, "nothing to commit")
}

func TestCommitFileFolderSwap(t *testing.T) {
	t.Parallel()
	r, _ := initial(t, files{"file": "f\n", "folder/x": "x\n", "linked/y": "y\n"})
	w, base := worktree(t, r)
	for _, p := range []string{"file", "folder", "linked"} {
		erase(t, w.Root(), p)
	}
	write(t, w.Root(), files{"file/inside": "i\n", "folder": "now a file\n"})
	require.NoError(t, os.Symlink("file", filepath.Join(w.Root(), "linked")))
	must(w.Commit(t.Context(), "swap", Paths(must(w.Changes(t.Context(), base))(t))...))(t)
	require.Equal(t, "file/inside folder linked", words(run(t, w.Root(), "ls-tree", "-r", "--name-only", "HEAD")))
	require.Empty(t, status(t, w.Root()))
}

func TestCommitterIdentity(t *testing.T) {
	t.Setenv("EMAIL", "guessed@host") // what git would make up
	for _, row := range []struct{ name, user, email, want string }{
		{"unset", "", "", "Passbook <passbook@localhost>"},
		{"only a name", "User", "", "Passbook <passbook@localhost>"},
		{"the repository's own", "User", "user@host", "User <user@host>"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir := initial(t, files{"a.txt": "a\n"})
			if row.user != "" {
				run(t, dir, "config", "user.name", row.user)
			}
			if row.email != "" {
				run(t, dir, "config", "user.email", row.email)
			}
			w, _ := worktree(t, r)
			write(t, w.Root(), files{"a.txt": "b\n"})
			must(w.Commit(t.Context(), "work", "a.txt"))(t)
			require.Equal(t, row.want+" "+row.want, run(t, w.Root(), "log", "-1", "--format=%an <%ae> %cn <%ce>"))
		})
	}
}

func TestUserHooksDoNotRun(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	for _, hook := range []string{"pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-checkout",
		"pre-merge-commit", "post-merge",
		"reference-transaction", "post-index-change"} {
		write(t, dir, files{".git/hooks/" + hook: "#!/bin/sh\ntouch '" + dir + "/hooked'\nexit 1\n"})
		require.NoError(t, os.Chmod(filepath.Join(dir, ".git/hooks", hook), 0o755))
	}
	for _, setting := range [][2]string{
		{"commit.gpgSign", "true"}, {"gpg.program", "/nowhere"}, {"core.hooksPath", ".git/hooks"},
		{"core.fsmonitor", ".git/hooks/pre-commit"},
	} {
		run(t, dir, "config", setting[0], setting[1])
	}
	ctx := t.Context()
	w, base := worktree(t, r)
	write(t, dir, files{"b.txt": "b\n"})
	base2 := must(w.ImportChanges(ctx, r, true))(t)
	write(t, w.Root(), files{"c.txt": "c\n"})
	id := must(w.Commit(ctx, "work", "c.txt"))(t)
	patch := patchSince(t, w, base2)
	require.NoError(t, r.Apply(ctx, patch))
	must(r.CommitAll(ctx, "all"))(t)
	require.NoError(t, w.Reset(ctx, base))
	require.NoError(t, r.CreateBranch(ctx, "delivered", id))
	require.NoError(t, r.RemoveWorktree(ctx, w.Root(), false))
	require.NoFileExists(t, filepath.Join(dir, "hooked"))
}

func TestImportChanges(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		untracked bool
		want      files
	}{
		{"with untracked files", true, files{
			".gitignore": "ignored\n", "staged.txt": "s2\n", "both.txt": "b3\n", "unstaged.txt": "u2\n", "new.txt": "n\n",
			"renamed.txt": "r\n",
		}},
		{"without untracked files", false, files{
			".gitignore": "ignored\n", "staged.txt": "s2\n", "both.txt": "b3\n", "unstaged.txt": "u2\n",
			"renamed.txt": "r\n",
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := t.Context()
			r, dir := initial(t, files{
				".gitignore": "ignored\n", "staged.txt": "s\n", "both.txt": "b\n", "unstaged.txt": "u\n",
				"gone.txt": "g\n", "name.txt": "r\n",
			})
			write(t, dir, files{"staged.txt": "s2\n", "both.txt": "b2\n"})
			run(t, dir, "add", "-A")
			run(t, dir, "mv", "name.txt", "renamed.txt")
			write(t, dir, files{"both.txt": "b3\n", "unstaged.txt": "u2\n", "new.txt": "n\n", "ignored": "i\n"})
			erase(t, dir, "gone.txt")
			before, index := status(t, dir), run(t, dir, "ls-files", "--stage")

			w, at := worktree(t, r)
			base := must(w.ImportChanges(ctx, r, row.untracked))(t)
			require.Equal(t, row.want, read(t, w.Root()))
			require.Empty(t, status(t, w.Root()))
			require.Equal(t, at+" "+ImportMessage, run(t, w.Root(), "log", "-1", "--format=%P %s", base))
			require.Equal(t, "passbook/r1", run(t, w.Root(), "branch", "--show-current"))
			require.Equal(t, before, status(t, dir), "the source is not touched")
			require.Equal(t, index, run(t, dir, "ls-files", "--stage"))

			write(t, dir, files{"late.txt": "l\n"})
			require.Equal(t, base, must(w.ImportChanges(ctx, r, row.untracked))(t))
			require.Equal(t, row.want, read(t, w.Root()))
		})
	}
}

func TestImportNeedsChangesAndTheSameCommit(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	w, base := worktree(t, r)
	require.Equal(t, base, must(w.ImportChanges(t.Context(), r, true))(t))
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
	_, err := w.ImportChanges(t.Context(), r, true)
	require.ErrorContains(t, err, "they must match")
}

func TestCommitAll(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n", "gone.txt": "g\n", ".gitignore": "ignored\n"})
	id := must(r.CommitAll(t.Context(), "nothing"))(t)
	require.Empty(t, id)

	write(t, dir, files{"a.txt": "a2\n", "new.txt": "n\n", "ignored": "i\n"})
	erase(t, dir, "gone.txt")
	id = must(r.CommitAll(t.Context(), "my work"))(t)
	require.Equal(t, id+" my work", run(t, dir, "log", "-1", "--format=%H %s", "main"))
	require.Equal(t, ".gitignore a.txt new.txt", words(run(t, dir, "ls-tree", "--name-only", "HEAD")))
	require.Empty(t, status(t, dir))
}

func TestCommitAllRefuses(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	write(t, dir, files{"a.txt": "b\n"})
	run(t, dir, "checkout", "-q", "--detach")
	_, err := r.CommitAll(t.Context(), "x")
	require.ErrorContains(t, err, "no branch is checked out")
	run(t, dir, "checkout", "-q", "main")
	run(t, dir, "stash", "-q")
	conflict(t, dir)
	_, err = r.CommitAll(t.Context(), "x")
	require.ErrorContains(t, err, "a merge is in progress")
	_, err = r.CommitPaths(t.Context(), "x", "a.txt")
	require.ErrorContains(t, err, "finish or abort it")
}

// conflict begins a merge with a conflict.
func conflict(t *testing.T, dir string) {
	t.Helper()
	branch(t, dir, "side", files{"a.txt": "side\n"})
	write(t, dir, files{"a.txt": "main\n"})
	run(t, dir, "commit", "-q", "-am", "main")
	_, err := (git{dir: dir}).withEnv(defaultIdentity...).output(t.Context(), "merge", "side")
	require.Equal(t, 1, exitCode(err))
}

func TestLineEndingsAreAccepted(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	run(t, dir, "config", "core.autocrlf", "true")
	run(t, dir, "config", "core.safecrlf", "true")
	w, base := worktree(t, r)
	write(t, w.Root(), files{"new.txt": "1\n2\n"})
	changes := must(w.Changes(t.Context(), base))(t)
	require.Equal(t, []Change{{Path: "new.txt", Kind: Added, Added: 2}}, changes)
	must(w.Commit(t.Context(), "work", "new.txt"))(t)
}
