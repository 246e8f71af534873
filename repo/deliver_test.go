package repo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const trailer = "Passbook-Run: r1"

// scratched is a folder with the files of a run's tree that was made a repository at the source's HEAD.
func scratched(t *testing.T, source string) (dir, head string) {
	t.Helper()
	head = run(t, source, "rev-parse", "HEAD")
	dir = folder(t)
	write(t, dir, files{"a.txt": "a2\n", "new.txt": "n\n"})
	require.NoError(t, Scratch(t.Context(), dir, source, head))
	return dir, head
}

func TestScratchIsARepositoryAtTheCommit(t *testing.T) {
	_, source := initial(t, files{"a.txt": "a\n", "gone.txt": "g\n"})
	dir, head := scratched(t, source)
	require.Equal(t, files{"a.txt": "a2\n", "new.txt": "n\n"}, read(t, dir), "the files stay")
	require.Equal(t, head, run(t, dir, "rev-parse", "HEAD"))
	require.Equal(t, "HEAD", run(t, dir, "rev-parse", "--abbrev-ref", "HEAD"), "no branch is checked out")
	require.Equal(t, []string{"M a.txt", " D gone.txt", "?? new.txt"}, strings.Split(run(t, dir, "status", "--porcelain"), "\n"))
	require.Equal(t, "a", run(t, dir, "show", "HEAD:a.txt"), "the source's objects are read")
}

// TestScratchReachesNothingOfTheSource: an agent may do with git there what it likes.
func TestScratchReachesNothingOfTheSource(t *testing.T) {
	_, source := initial(t, files{"a.txt": "a\n"})
	run(t, source, "branch", "feature")
	run(t, source, "tag", "v1")
	write(t, source, files{"mine.txt": "m\n"})
	before, status, objects := run(t, source, "for-each-ref"), run(t, source, "status", "--porcelain"), run(t, source, "count-objects", "-v")

	dir, head := scratched(t, source)
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "mine")
	run(t, dir, "checkout", "-q", "-b", "feature")
	run(t, dir, "checkout", "-q", "--detach")
	run(t, dir, "branch", "-D", "feature")
	run(t, dir, "reset", "-q", "--hard", head)
	run(t, dir, "reflog", "expire", "--expire=now", "--all")
	run(t, dir, "gc", "-q", "--prune=now")
	require.Empty(t, run(t, dir, "remote"))
	require.Equal(t, []string{before, status, objects},
		[]string{run(t, source, "for-each-ref"), run(t, source, "status", "--porcelain"), run(t, source, "count-objects", "-v")})
	run(t, source, "fsck", "--full", "--strict")
}

func TestScratchOfALinkedWorktree(t *testing.T) {
	_, source := initial(t, files{"a.txt": "a\n"})
	linked := filepath.Join(folder(t), "linked")
	run(t, source, "worktree", "add", "-q", "-b", "feature", linked)
	dir, _ := scratched(t, linked)
	require.Equal(t, "a", run(t, dir, "show", "HEAD:a.txt"))
}

func TestScratchRefuses(t *testing.T) {
	_, source := initial(t, nil)
	missing := filepath.Join(folder(t), "gone")
	require.ErrorIs(t, Scratch(t.Context(), folder(t), missing, "HEAD"), fs.ErrNotExist)
	err := Scratch(t.Context(), folder(t), source, "0123456789012345678901234567890123456789")
	require.ErrorContains(t, err, "at commit 0123456789012345678901234567890123456789 of "+source)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

// patchOf is what a run made of a repository: its base and its patch.
func patchOf(t *testing.T, r *Repo, fs files) (base string, patch []byte) {
	t.Helper()
	w, base := worktree(t, r)
	write(t, w.Root(), fs)
	changes, err := w.Changes(t.Context(), base)
	require.NoError(t, err)
	patch, err = w.Patch(t.Context(), base, Paths(changes)...)
	require.NoError(t, err)
	return base, patch
}

var message = "Do it\n\n" + trailer + "\n"

func TestCommitPatchToANewBranch(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n"})
	base, patch := patchOf(t, r, files{"a.txt": "a2\n", "sub/new.txt": "n\n"})
	write(t, dir, files{"a.txt": "mine\n"})
	status := run(t, dir, "status", "--porcelain")
	commit, err := r.CommitPatch(t.Context(), "result", base, patch, message, trailer)
	require.NoError(t, err)
	require.Equal(t, commit, run(t, dir, "rev-parse", "result"))
	require.Equal(t, base, run(t, dir, "rev-parse", "result^"))
	require.Equal(t, strings.TrimSpace(message), run(t, dir, "log", "-1", "--format=%B", "result"))
	require.Equal(t, "a.txt sub/new.txt", words(run(t, dir, "diff", "--name-only", base, "result")))
	require.Equal(t, "a2", run(t, dir, "show", "result:a.txt"))
	require.Equal(t, "main", run(t, dir, "branch", "--show-current"))
	require.Equal(t, status, run(t, dir, "status", "--porcelain"), "the checkout is as it was")
	require.Equal(t, files{"a.txt": "mine\n"}, read(t, dir))

	again, err := r.CommitPatch(t.Context(), "result", base, patch, message, trailer)
	require.NoError(t, err)
	require.Equal(t, commit, again, "it is there: its message says so")
	require.Equal(t, commit, run(t, dir, "rev-parse", "result"))
}

func TestCommitPatchMovesABranchForward(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n"})
	base, patch := patchOf(t, r, files{"a.txt": "a2\n"})
	run(t, dir, "checkout", "-q", "-b", "result")
	write(t, dir, files{"theirs.txt": "t\n"})
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "theirs")
	theirs := run(t, dir, "rev-parse", "HEAD")
	run(t, dir, "checkout", "-q", "main")

	commit, err := r.CommitPatch(t.Context(), "result", base, patch, message, trailer)
	require.NoError(t, err)
	require.Equal(t, theirs, run(t, dir, "rev-parse", commit+"^"))
	require.Equal(t, "a.txt theirs.txt", words(run(t, dir, "ls-tree", "--name-only", "result")))
	require.Equal(t, files{"a.txt": "a\n"}, read(t, dir))
}

// TestCommitPatchToTheCheckedOutBranch: the files go with their branch, and what somebody has there beside it stays.
func TestCommitPatchToTheCheckedOutBranch(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n", "b.txt": "b\n"})
	base, patch := patchOf(t, r, files{"a.txt": "a2\n"})
	write(t, dir, files{"b.txt": "mine\n"})
	commit, err := r.CommitPatch(t.Context(), "main", base, patch, message, trailer)
	require.NoError(t, err)
	require.Equal(t, commit, run(t, dir, "rev-parse", "HEAD"))
	require.Equal(t, files{"a.txt": "a2\n", "b.txt": "mine\n"}, read(t, dir))
	require.Equal(t, "M b.txt", run(t, dir, "status", "--porcelain"))
}

func TestCommitPatchRefuses(t *testing.T) {
	for _, row := range []struct {
		name, branch string
		hurt         func(t *testing.T, dir string)
		check        func(t *testing.T, err error)
	}{
		{"a branch whose file went another way", "main", func(t *testing.T, dir string) {
			write(t, dir, files{"a.txt": "theirs\n"})
			run(t, dir, "commit", "-q", "-a", "-m", "theirs")
		}, func(t *testing.T, err error) {
			var conflict *ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, []string{"a.txt"}, conflict.Paths)
			require.ErrorContains(t, err, "patch does not apply")
		}},
		{"uncommitted changes in its way", "main", func(t *testing.T, dir string) { write(t, dir, files{"a.txt": "mine\n"}) }, func(t *testing.T, err error) {
			require.ErrorContains(t, err, "would be overwritten")
		}},
		{"a branch that is checked out elsewhere", "other", func(t *testing.T, dir string) {
			run(t, dir, "worktree", "add", "-q", "-b", "other", filepath.Join(folder(t), "w"))
		}, func(t *testing.T, err error) { require.True(t, isA[*BranchError](err), "%v", err) }},
		{"no name of a branch", "not a name", func(*testing.T, string) {}, func(t *testing.T, err error) { require.ErrorContains(t, err, "not a valid branch name") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, dir := initial(t, files{"a.txt": "a\n"})
			base, patch := patchOf(t, r, files{"a.txt": "a2\n", "new.txt": "n\n"})
			row.hurt(t, dir)
			before, refs := read(t, dir), run(t, dir, "for-each-ref")
			_, err := r.CommitPatch(t.Context(), row.branch, base, patch, message, trailer)
			row.check(t, err)
			require.ErrorContains(t, err, "commit the changes on branch "+row.branch)
			require.Equal(t, before, read(t, dir))
			require.Equal(t, refs, run(t, dir, "for-each-ref"))
		})
	}
}

func TestCommitPaths(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n", "gone.txt": "g\n", "staged.txt": "s\n", "b.txt": "b\n"})
	head := run(t, dir, "rev-parse", "HEAD")
	write(t, dir, files{"a.txt": "a2\n", "new.txt": "n\n", "staged.txt": "mine\n", "b.txt": "mine\n", "other.txt": "mine\n"})
	erase(t, dir, "gone.txt")
	run(t, dir, "add", "staged.txt")

	commit, err := r.CommitPaths(t.Context(), message, "a.txt", "new.txt", "gone.txt")
	require.NoError(t, err)
	require.Equal(t, commit, run(t, dir, "rev-parse", "main"))
	require.Equal(t, head, run(t, dir, "rev-parse", "main^"))
	require.Equal(t, "a.txt gone.txt new.txt", words(run(t, dir, "diff", "--name-only", head, "main")))
	require.Equal(t, []string{" M b.txt", "M  staged.txt", "?? other.txt"}, strings.Split(" "+run(t, dir, "status", "--porcelain"), "\n"), "what else was changed or staged")

	for _, paths := range [][]string{nil, {"a.txt"}} {
		none, err := r.CommitPaths(t.Context(), message, paths...)
		require.NoError(t, err)
		require.Empty(t, none, "there is nothing to commit")
	}
	require.Equal(t, commit, run(t, dir, "rev-parse", "main"))
	_, err = r.CommitPaths(t.Context(), message, "../outside")
	require.ErrorContains(t, err, "is not in the worktree")
}

func TestCommitWith(t *testing.T) {
	r, dir := initial(t, nil)
	for _, row := range []struct {
		message string
		has     bool
	}{
		{"Do it\n\nPassbook-Run: r1\n", true},
		{"Do it\n\nPassbook-Run: r1\nPassbook-Step: 003\n", true},
		{"Do it\n\nPassbook-Run: r12\n", false},
		{"Follow Passbook-Run: r1 up\n", false},
	} {
		run(t, dir, "commit", "-q", "--allow-empty", "-m", row.message)
		id, err := r.CommitWith(t.Context(), trailer)
		require.NoError(t, err)
		if !row.has {
			require.Empty(t, id, row.message)
			continue
		}
		require.Equal(t, run(t, dir, "rev-parse", "HEAD"), id, row.message)
	}
}

func TestApplied(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n"})
	_, patch := patchOf(t, r, files{"a.txt": "a2\n", "new.txt": "n\n"})
	applied := func(patch []byte) bool {
		t.Helper()
		is, err := r.Applied(t.Context(), patch)
		require.NoError(t, err)
		return is
	}
	require.True(t, applied(nil), "nothing is always there")
	require.False(t, applied(patch))
	write(t, dir, files{"a.txt": "a2\n"})
	require.False(t, applied(patch), "half of it is not it")
	write(t, dir, files{"new.txt": "n\n"})
	require.True(t, applied(patch))
	write(t, dir, files{"a.txt": "theirs\n"})
	require.False(t, applied(patch))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Applied(ctx, patch)
	require.ErrorIs(t, err, context.Canceled, "whether it is there is not known")
}

// TestAppliedWherePatchAndReverseFit takes one line out of many equal ones: the patch fits before, and it fits afterwards.
func TestAppliedWherePatchAndReverseFit(t *testing.T) {
	r, dir := initial(t, files{"a.txt": strings.Repeat("same\n", 20)})
	_, patch := patchOf(t, r, files{"a.txt": strings.Repeat("same\n", 19)})
	for lines, want := range map[int]bool{20: false, 19: true, 15: false} {
		write(t, dir, files{"a.txt": strings.Repeat("same\n", lines)})
		is, err := r.Applied(t.Context(), patch)
		require.NoError(t, err)
		require.Equal(t, want, is, "%d lines", lines)
	}
}

func TestTouched(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\nb\nc\nd\n", "gone.txt": "g\n"})
	w, base := worktree(t, r)
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "a.txt"), filepath.Join(w.Root(), "moved.txt")))
	erase(t, w.Root(), "gone.txt")
	write(t, w.Root(), files{"new.txt": "n\n"})
	patch, err := w.Patch(t.Context(), base, "a.txt", "gone.txt", "moved.txt", "new.txt")
	require.NoError(t, err)
	paths, err := r.Touched(t.Context(), patch)
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "gone.txt", "moved.txt", "new.txt"}, paths)
	_, err = r.Touched(t.Context(), []byte("no patch"))
	require.Error(t, err)
	require.False(t, errors.Is(err, fs.ErrNotExist))
	require.Empty(t, run(t, dir, "status", "--porcelain"))
}
