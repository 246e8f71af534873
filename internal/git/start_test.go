package git

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCheckOut writes files as a checkout of the source has them, and nothing into the source.
func TestCheckOut(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1\n", "d/crlf.txt": "x\ny\n", "rot.txt": "secret\n",
		".gitattributes": "*.txt eol=crlf\nrot.txt filter=rot -text\n", ".gitignore": "*.o\n"})
	run(t, dir, "config", "filter.rot.clean", "tr a-z b-za")
	run(t, dir, "config", "filter.rot.smudge", "tr b-za a-z")
	run(t, dir, "config", "filter.rot.required", "true")
	write(t, dir, files{"rot.txt": "secret\n", "tool": "#!\n", "l": ""})
	require.NoError(t, os.Chmod(filepath.Join(dir, "tool"), 0o755))
	erase(t, dir, "l")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "l")))
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "second")
	at := head(t, dir)
	require.Equal(t, "tfdsfu", run(t, dir, "cat-file", "blob", "HEAD:rot.txt"))
	write(t, dir, files{"a": "of the user\n", ".gitattributes": "a eol=crlf\n"})
	before, index := read(t, dir), run(t, dir, "ls-files", "--stage", "--debug")

	to := filepath.Join(folder(t), "new", "workspace")
	require.NoError(t, r.CheckOut(t.Context(), at, to))
	require.Equal(t, files{"a": "1\n", "d/crlf.txt": "x\r\ny\r\n", "rot.txt": "secret\n", "tool": "#!\n", "l": "-> /etc/passwd",
		".gitattributes": "*.txt eol=crlf\nrot.txt filter=rot -text\n", ".gitignore": "*.o\n"}, read(t, to))
	require.NoDirExists(t, filepath.Join(to, ".git"))
	info := must(os.Stat(filepath.Join(to, "tool")))(t)
	require.NotZero(t, info.Mode()&0o100)
	require.Equal(t, before, read(t, dir))
	require.Equal(t, index, run(t, dir, "ls-files", "--stage", "--debug"))

	run(t, dir, "config", "filter.rot.smudge", "false")
	require.ErrorContains(t, r.CheckOut(t.Context(), at, filepath.Join(folder(t), "w")), "check out commit "+at)
	require.Error(t, r.CheckOut(t.Context(), "0123456", filepath.Join(folder(t), "w")))
}

// TestCheckOutFromOtherCheckouts: a linked checkout, and a sparse one, have all files of the commit.
func TestCheckOutFromOtherCheckouts(t *testing.T) {
	t.Parallel()
	_, dir := initial(t, files{"a": "1\n", "d/b": "2\n"})
	linked := filepath.Join(folder(t), "linked")
	run(t, dir, "worktree", "add", "-q", linked)
	run(t, linked, "sparse-checkout", "set", "d")
	for _, from := range []string{dir, linked} {
		to := filepath.Join(folder(t), "w")
		require.NoError(t, must(Open(t.Context(), from))(t).CheckOut(t.Context(), head(t, dir), to))
		require.Equal(t, files{"a": "1\n", "d/b": "2\n"}, read(t, to))
	}
	require.NoFileExists(t, filepath.Join(linked, "x"))
}

func TestImport(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1\n", "gone": "1\n", ".gitignore": "*.o\n", "staged": "1\n"})
	start := head(t, dir)
	require.Equal(t, start, must(r.Import(t.Context()))(t), "without changes")
	write(t, dir, files{"a": "2\n", "new": "n\n", "x.o": "o", "staged": "2\n"})
	erase(t, dir, "gone")
	run(t, dir, "add", "staged")
	write(t, dir, files{"staged": "3\n"})
	before, index, refs := read(t, dir), run(t, dir, "ls-files", "--stage", "--debug"), run(t, dir, "for-each-ref")
	at := must(r.Import(t.Context()))(t)
	require.Equal(t, start, run(t, dir, "rev-parse", at+"^"))
	require.Equal(t, files{"a": "100644 2\n", "new": "100644 n\n", ".gitignore": "100644 *.o\n", "staged": "100644 3\n"},
		listed(t, r, at))
	require.Equal(t, ImportMessage, run(t, dir, "log", "-1", "--format=%B", at))
	require.Equal(t, before, read(t, dir))
	require.Equal(t, index, run(t, dir, "ls-files", "--stage", "--debug"))
	require.Equal(t, refs, run(t, dir, "for-each-ref"))
	require.Equal(t, start, head(t, dir))
}

func TestCommitAll(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1\n", "gone": "1\n", ".gitignore": "*.o\n"})
	start := head(t, dir)
	require.Empty(t, must(r.CommitAll(t.Context(), "nothing"))(t))
	write(t, dir, files{"a": "2\n", "new": "n\n", "x.o": "o"})
	erase(t, dir, "gone")
	hook := filepath.Join(dir, ".git/hooks/post-commit")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o755))
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\ntouch ran\n"), 0o755))
	id := must(r.CommitAll(t.Context(), "All of it"))(t)
	require.Equal(t, id, run(t, dir, "rev-parse", "main"))
	require.Equal(t, start, run(t, dir, "rev-parse", "HEAD^"))
	require.Equal(t, "All of it", run(t, dir, "log", "-1", "--format=%B"))
	require.Empty(t, status(t, dir))
	require.Equal(t, files{"a": "2\n", "new": "n\n", "x.o": "o", ".gitignore": "*.o\n"}, read(t, dir))
}

// TestCommitAllRefuses, as Import does for conflicts; nothing changes.
func TestCommitAllRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string
		imports bool
	}{
		"detached": {func(t *testing.T, dir string) { run(t, dir, "checkout", "-q", "--detach") }, "detached", true},
		"a merge": {func(t *testing.T, dir string) {
			branch(t, dir, "other", files{"b": "theirs\n"})
			write(t, dir, files{"c": "ours\n"})
			run(t, dir, "add", "-A")
			run(t, dir, "commit", "-q", "-m", "ours")
			run(t, dir, "merge", "-q", "--no-commit", "--no-ff", "other")
		}, "merge", true},
		"a conflict": {func(t *testing.T, dir string) {
			branch(t, dir, "other", files{"a": "theirs\n"})
			write(t, dir, files{"a": "ours\n"})
			run(t, dir, "commit", "-q", "-a", "-m", "ours")
			run(t, dir, "-c", "core.editor=true", "merge-tree", "HEAD", "HEAD", "other")
			conflicted(t, dir)
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, files{"a": "1\n"})
			row.prepare(t, dir)
			write(t, dir, files{"new": "n\n"})
			refs, found := run(t, dir, "for-each-ref"), read(t, dir)
			_, err := r.CommitAll(t.Context(), "no")
			require.ErrorContains(t, err, row.want)
			require.Error(t, err)
			require.Equal(t, refs, run(t, dir, "for-each-ref"))
			require.Equal(t, found, read(t, dir))
			_, err = r.Import(t.Context())
			require.Equal(t, row.imports, err == nil, err)
		})
	}
}

// conflicted starts a merge that ends in a conflict.
func conflicted(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "config", "alias.try", "!git merge -q other || true")
	run(t, dir, "try")
}

// TestExcludes: the user's files of rules, the least important first.
func TestExcludes(t *testing.T) {
	r, dir := initial(t, files{"a": "1\n"})
	home := folder(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	excludes := func() []string { return must(r.Excludes(t.Context()))(t) }
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git/info")))
	require.Empty(t, excludes())
	write(t, dir, files{".git/info/exclude": "info\n"})
	require.Equal(t, []string{"info\n"}, excludes())
	write(t, home, files{".config/git/ignore": "default\n", "xdg/git/ignore": "xdg\n", "mine": "mine\n"})
	require.Equal(t, []string{"default\n", "info\n"}, excludes())
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
	require.Equal(t, []string{"xdg\n", "info\n"}, excludes())
	run(t, dir, "config", "core.excludesFile", "~/mine")
	require.Equal(t, []string{"mine\n", "info\n"}, excludes())
	run(t, dir, "config", "core.excludesFile", "rules")
	write(t, dir, files{"rules": "relative\n"})
	require.Equal(t, []string{"relative\n", "info\n"}, excludes(), "to the checkout")
	run(t, dir, "config", "core.excludesFile", "")
	require.Equal(t, []string{"info\n"}, excludes(), "set to none")
	run(t, dir, "config", "core.excludesFile", home)
	_, err := r.Excludes(t.Context())
	require.NoError(t, err, "git passes over a folder")
	linked := filepath.Join(folder(t), "linked")
	run(t, dir, "config", "--unset", "core.excludesFile")
	run(t, dir, "worktree", "add", "-q", linked)
	require.Equal(t, []string{"xdg\n", "info\n"}, must(must(Open(t.Context(), linked))(t).Excludes(t.Context()))(t))
}

func TestRunBranches(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1\n"})
	for _, name := range []string{"passbook/fix-it-01234567", "passbook/01234567", "passbook/fix-it-01234568",
		"passbook/01234567-more", "passbook/x01234567", "fix-01234567", "passbook/deep/01234567"} {
		run(t, dir, "branch", name)
	}
	var names []string
	for _, b := range must(r.RunBranches(t.Context(), "01234567-89ab-cdef"))(t) {
		require.Equal(t, head(t, dir), b.At)
		names = append(names, b.Name)
	}
	require.ElementsMatch(t, []string{"passbook/fix-it-01234567", "passbook/01234567", "passbook/deep/01234567"}, names)
	require.Empty(t, must(r.RunBranches(t.Context(), "99999999"))(t))
}

// TestIncluded: ignored files that .worktreeinclude lists. Tracked, unignored and unlisted ones are not.
func TestIncluded(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1\n", ".gitignore": ".env*\nsecrets/\n*.o\n!.env.sample\n", "tracked.o": "t\n"})
	run(t, dir, "add", "-f", "tracked.o")
	run(t, dir, "commit", "-q", "-m", "second")
	require.Empty(t, must(r.Included(t.Context()))(t), "without the file")
	write(t, dir, files{".env": "A=1\n", ".env.local": "B=1\n", ".env.sample": "s\n", "d/.env": "C=1\n", "x.o": "o",
		"secrets/k": "k", "secrets/d/k": "k", "unignored": "u", "tracked.o": "t", "secrets/" + odd: "odd"})
	write(t, dir, files{IncludeFile: "# for calls\n.env\n/secrets/\ntracked.o\nunignored\n.env.sample\n../outside\n/etc/passwd\n"})
	got := must(r.Included(t.Context()))(t)
	slices.Sort(got)
	require.Equal(t, []string{".env", "d/.env", "secrets/d/k", "secrets/k", "secrets/" + odd}, got)
	write(t, dir, files{IncludeFile: ".env*\n!.env\r\n"})
	require.Equal(t, []string{".env.local"}, must(r.Included(t.Context()))(t))
	for name, hostile := range map[string]func(string) error{ // git would follow the one, and wait for the other
		"a link": func(path string) error { return os.Symlink(filepath.Join(dir, "a"), path) },
		"a pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		erase(t, dir, IncludeFile)
		require.NoError(t, hostile(filepath.Join(dir, IncludeFile)))
		require.Empty(t, must(r.Included(t.Context()))(t), name)
	}
}

// TestIncludedBelowIgnoredFolder: git may report an ignored folder as a whole.
func TestIncludedBelowIgnoredFolder(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{".gitignore": "conf/\n"})
	write(t, dir, files{"conf/a": "1", "conf/b": "2", "conf/nested/.git/HEAD": "x", IncludeFile: "conf/a\n"})
	require.Equal(t, []string{"conf/a"}, must(r.Included(t.Context()))(t))
}
