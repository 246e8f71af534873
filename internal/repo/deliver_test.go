package repo

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const trailer = "Passbook-Run: r1"

// patched is a repository, and the patch of a run that works on it.
func patched(t *testing.T) (r *Repo, dir, base string, patch []byte) {
	t.Helper()
	r, dir = initial(t, files{"a.txt": "a\n", "b.txt": "b\n", "old.txt": tenLines})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "new.txt": "n\n"})
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old.txt"), filepath.Join(w.Root(), "renamed.txt")))
	patch = patchSince(t, w, base)
	return r, dir, base, patch
}

func TestCommitPatchOnNewBranch(t *testing.T) {
	t.Parallel()
	r, dir, base, patch := patched(t)
	write(t, dir, files{"a.txt": "mine\n"})
	id := must(r.CommitPatch(t.Context(), "feature", base, patch, "Do it\n\n"+trailer+"\n", trailer))(t)
	require.Equal(t, id+" "+base, run(t, dir, "log", "-1", "--format=%H %P", "feature"))
	require.Equal(t, "M a.txt A new.txt R100 old.txt renamed.txt",
		words(run(t, dir, "diff-tree", "-r", "-M", "--name-status", base, id)))
	require.Equal(t, files{"a.txt": "mine\n", "b.txt": "b\n", "old.txt": tenLines}, read(t, dir),
		"no checkout is touched")

	again := must(r.CommitPatch(t.Context(), "feature", base, patch, "Do it\n\n"+trailer+"\n", trailer))(t)
	require.Equal(t, id, again)
	require.Equal(t, id, run(t, dir, "rev-parse", "feature"))
}

func TestCommitPatchOnAdvancedBranch(t *testing.T) {
	t.Parallel()
	r, dir, base, patch := patched(t)
	mine := branch(t, dir, "feature", files{"b.txt": "b2\n"})
	id := must(r.CommitPatch(t.Context(), "feature", base, patch, "Do it\n", trailer))(t)
	require.Equal(t, mine, run(t, dir, "rev-parse", "feature^"))
	require.Equal(t, "M a.txt A new.txt R100 old.txt renamed.txt",
		words(run(t, dir, "diff-tree", "-r", "-M", "--name-status", mine, id)))
}

func TestCommitPatchConflict(t *testing.T) {
	t.Parallel()
	r, dir, base, patch := patched(t)
	mine := branch(t, dir, "feature", files{"a.txt": "other\n", "new.txt": "mine\n"})
	_, err := r.CommitPatch(t.Context(), "feature", base, patch, "Do it\n", trailer)
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, []string{"a.txt", "new.txt"}, conflict.Paths)
	require.Equal(t, mine, run(t, dir, "rev-parse", "feature"))
}

func TestCommitWith(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, nil)
	for _, row := range []struct {
		message string
		has     bool
	}{
		{"Do it\n\n" + trailer, true},
		{"Do it\n\n" + trailer + "23", false},
		{"It is not " + trailer, false},
	} {
		run(t, dir, "commit", "-q", "--allow-empty", "-m", row.message)
		id := must(r.CommitWith(t.Context(), trailer))(t)
		if row.has {
			require.Equal(t, head(t, dir), id, row.message)
		} else {
			require.Empty(t, id, row.message)
		}
	}
}

func TestApplied(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir, _, patch := patched(t)
	for _, row := range []struct {
		name string
		do   func()
		want bool
	}{
		{"not yet", func() {}, false},
		{"now", func() { require.NoError(t, r.Apply(ctx, patch)) }, true},
		{"and other changes", func() { write(t, dir, files{"b.txt": "b2\n", "renamed.txt": "0\n" + tenLines}) }, true},
		{"in part", func() { write(t, dir, files{"a.txt": "a\n"}) }, false},
		{"neither before nor after", func() { write(t, dir, files{"a.txt": "other\n"}) }, false},
	} {
		row.do()
		applied, err := r.Applied(ctx, patch)
		require.NoError(t, err, row.name)
		require.Equal(t, row.want, applied, row.name)
	}
	require.True(t, must(r.Applied(ctx, nil))(t), "an empty patch")
	_, err := r.Applied(ctx, []byte("no patch\n"))
	require.Error(t, err)
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.Applied(over, patch)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCommitPaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir, base, patch := patched(t)
	write(t, dir, files{"b.txt": "mine\n"})
	run(t, dir, "add", "b.txt")
	require.NoError(t, r.Apply(ctx, patch))
	paths := must(r.Touched(ctx, patch))(t)
	require.Equal(t, []string{"a.txt", "new.txt", "old.txt", "renamed.txt"}, paths)
	id := must(r.CommitPaths(ctx, "Do it\n\n"+trailer+"\n", paths...))(t)
	require.Equal(t, id+" "+base, run(t, dir, "log", "-1", "--format=%H %P", "main"))
	require.Equal(t, "M b.txt", status(t, dir), "what the user staged stays staged")

	require.Empty(t, must(r.CommitPaths(ctx, "Do it\n", paths...))(t))
}

func TestScratch(t *testing.T) {
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n", "sub/b.txt": "b\n"})
	at, refs := head(t, dir), run(t, dir, "for-each-ref")
	run(t, dir, "config", "remote.origin.url", "somewhere")
	template := folder(t)
	write(t, template, files{"hooks/post-checkout": "#!/bin/sh\nexit 1\n"})
	t.Setenv("GIT_TEMPLATE_DIR", template)
	scratch := folder(t)
	write(t, scratch, files{"a.txt": "changed\n", "sub/b.txt": "b\n", "new.txt": "n\n"})

	objects := must(Scratch(ctx, scratch, filepath.Join(dir, "sub"), at))(t)
	found := must(Objects(ctx, filepath.Join(dir, "sub")))(t)
	require.Equal(t, filepath.Join(dir, ".git", "objects"), objects)
	require.Equal(t, objects, found)
	require.Equal(t, files{"a.txt": "changed\n", "sub/b.txt": "b\n", "new.txt": "n\n"}, read(t, scratch))
	require.Equal(t, "M a.txt ?? new.txt", status(t, scratch))
	require.Equal(t, at, head(t, scratch))
	require.Equal(t, "first", run(t, scratch, "log", "--format=%s"))
	require.Empty(t, run(t, scratch, "remote"))
	require.NoDirExists(t, filepath.Join(scratch, ".git", "hooks"))

	run(t, scratch, "checkout", "-q", "-b", "mine")
	run(t, scratch, "commit", "-q", "-am", "mine")
	run(t, scratch, "update-ref", "-d", "refs/heads/mine")
	require.Equal(t, refs, run(t, dir, "for-each-ref"))
	require.Equal(t, files{"a.txt": "a\n", "sub/b.txt": "b\n"}, read(t, r.Root()))
}

func TestScratchOfOtherSources(t *testing.T) {
	t.Parallel()
	_, source := initial(t, files{"a.txt": "a\n"})
	linked, dir := filepath.Join(folder(t), "linked"), folder(t)
	run(t, source, "worktree", "add", "-q", "-b", "feature", linked)
	must(Scratch(t.Context(), dir, linked, run(t, source, "rev-parse", "feature")))(t)
	require.Equal(t, "a", run(t, dir, "show", "HEAD:a.txt"))

	_, err := Scratch(t.Context(), folder(t), filepath.Join(folder(t), "gone"), "0123")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Scratch(t.Context(), folder(t), source, "0123456789012345678901234567890123456789")
	require.ErrorContains(t, err, "at commit 0123456789012345678901234567890123456789 of "+source)
	require.NotErrorIs(t, err, fs.ErrNotExist, "the source exists")
}

func TestScratchGarbageCollection(t *testing.T) {
	t.Parallel()
	_, source := initial(t, files{"a.txt": "a\n"})
	run(t, source, "branch", "feature")
	refs, objects := run(t, source, "for-each-ref"), run(t, source, "count-objects", "-v")
	dir, at := folder(t), head(t, source)
	write(t, dir, files{"a.txt": "a2\n"})
	must(Scratch(t.Context(), dir, source, at))(t)
	run(t, dir, "commit", "-q", "-am", "mine")
	run(t, dir, "reset", "-q", "--hard", at)
	run(t, dir, "reflog", "expire", "--expire=now", "--all")
	run(t, dir, "gc", "-q", "--prune=now")
	require.Equal(t, refs, run(t, source, "for-each-ref"))
	require.Equal(t, objects, run(t, source, "count-objects", "-v"))
	run(t, source, "fsck", "--full", "--strict")
}

func TestCommitPatchOnCheckedOutBranch(t *testing.T) {
	t.Parallel()
	r, dir, base, patch := patched(t)
	write(t, dir, files{"b.txt": "mine\n"})
	id := must(r.CommitPatch(t.Context(), "main", base, patch, "Do it\n", trailer))(t)
	require.Equal(t, id, head(t, dir))
	require.Equal(t, files{"a.txt": "a2\n", "b.txt": "mine\n", "new.txt": "n\n", "renamed.txt": tenLines}, read(t, dir))
	require.Equal(t, "M b.txt", status(t, dir))
}

func TestCommitPatchRefuses(t *testing.T) {
	for _, row := range []struct {
		name, branch string
		damage       func(t *testing.T, dir string)
		is           func(error) bool
		text         string
	}{
		{
			"uncommitted changes in its way", "main",
			writes(files{"a.txt": "mine\n"}), isA[*RefusedError],
			`has uncommitted changes in files to deliver: commit or stash them and retry: ["a.txt"]`,
		},
		{"a branch that is checked out elsewhere", "other", func(t *testing.T, dir string) {
			run(t, dir, "worktree", "add", "-q", "-b", "other", filepath.Join(folder(t), "w"))
		}, isA[*BranchError], "is checked out at"},
		{"no name of a branch", "not a name", func(*testing.T, string) {}, isA[*RefusedError],
			"not a valid branch name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir, base, patch := patched(t)
			row.damage(t, dir)
			before, refs := read(t, dir), run(t, dir, "for-each-ref")
			_, err := r.CommitPatch(t.Context(), row.branch, base, patch, "Do it\n", trailer)
			require.ErrorContains(t, err, row.text)
			require.True(t, row.is(err), "%v", err)
			require.Equal(t, before, read(t, dir))
			require.Equal(t, refs, run(t, dir, "for-each-ref"))
		})
	}
}
