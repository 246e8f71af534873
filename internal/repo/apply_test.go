package repo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestApplyMatchesWorktree(t *testing.T) {
	t.Parallel()
	crlf := strings.ReplaceAll(tenLines, "\n", "\r\n")
	for _, row := range []struct {
		name   string
		before files
		config map[string]string
		do     func(t *testing.T, dir string)
	}{
		{"changed, added, deleted, renamed", files{
			"a.txt": tenLines, "gone/deep.txt": "g\n", "old.txt": tenLines + "11\n",
		}, nil, func(t *testing.T, dir string) {
			write(t, dir, files{"a.txt": tenLines + "11\n", "new/deep/file.txt": "n\n"})
			erase(t, dir, "gone")
			require.NoError(t, os.Rename(filepath.Join(dir, "old.txt"), filepath.Join(dir, "renamed.txt")))
		}},
		{"renamed and changed", files{"old.txt": tenLines}, nil, func(t *testing.T, dir string) {
			erase(t, dir, "old.txt")
			write(t, dir, files{"sub/new.txt": tenLines + "11\n"})
		}},
		{
			"binary", files{"pic": "\x00\x01\x02"}, nil,
			writes(files{"pic": "\x00\xff", "second": "\x00new"}),
		},
		{
			"without a last newline", files{"a.txt": "1\n2"}, nil,
			writes(files{"a.txt": "1\n2\n", "b.txt": "3"}),
		},
		{"an empty file", files{"a.txt": "1\n"}, nil,
			writes(files{"empty": ""})},
		{"a symbolic link", files{"a.txt": "1\n", "to": "file\n"}, nil, func(t *testing.T, dir string) {
			erase(t, dir, "to")
			require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "to")))
		}},
		{"odd names", files{
			"odd \"name\"\nline \xff ü.txt": "1\n", "[ab]*?.txt": "1\n", "-dash": "d\n",
		}, nil, writes(files{"odd \"name\"\nline \xff ü.txt": "2\n", "[ab]*?.txt": "2\n", "-dash": "d2\n",
			" space ": "s\n"})},
		{"trailing white space", files{"a.txt": "1\n"}, map[string]string{
			"apply.whitespace": "error", "core.whitespace": "trailing-space",
		}, writes(files{"a.txt": "1  \n\t \n\n\n"})},
		{"diff settings of the user", files{
			"a.txt": tenLines, ".gitattributes": "* diff=odd\n",
		}, map[string]string{"diff.noprefix": "true", "diff.context": "0", "color.ui": "always",
			"diff.external":    "false",
			"diff.odd.command": "false", "diff.odd.textconv": "wc -c",
			"core.abbrev": "4", "diff.mnemonicPrefix": "true", "core.quotePath": "false"},
			writes(files{"a.txt": tenLines + "11\n", "ü\xff.txt": "1\n"})},
		{"autocrlf", files{"a.txt": crlf, ".gitattributes": "* text=auto\r\n"}, map[string]string{
			"core.autocrlf": "true", "core.safecrlf": "true",
		}, writes(files{"a.txt": crlf + "11\r\n", "new.txt": "x\r\ny\r\n"})},
		{"a filter", files{".gitattributes": "*.up filter=up\n", "a.up": "STORED\n"}, map[string]string{
			"filter.up.clean": "tr a-z A-Z", "filter.up.smudge": "tr A-Z a-z", "filter.up.required": "true",
		},
			writes(files{"a.up": "stored\nmore\n", "b.up": "new\n"})},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := t.Context()
			dir := folder(t)
			run(t, dir, "init", "-q", "-b", "main")
			for name, value := range row.config {
				run(t, dir, "config", name, value)
			}
			run(t, dir, "config", "core.safecrlf", "false")
			write(t, dir, row.before)
			run(t, dir, "add", "-A")
			run(t, dir, "commit", "-q", "-m", "first")
			erase(t, dir, "a.up") // the filter writes it
			run(t, dir, "checkout", "-q", "--", ".")
			if v := row.config["core.safecrlf"]; v != "" {
				run(t, dir, "config", "core.safecrlf", v)
			}
			r := must(Open(ctx, dir))(t)
			w, base := worktree(t, r)
			row.do(t, w.Root())
			patch := patchSince(t, w, base)
			require.NotEmpty(t, patch)

			require.NoError(t, r.check(ctx, patch))
			require.NoError(t, r.Apply(ctx, patch))
			require.Equal(t, read(t, w.Root()), read(t, dir))
			require.Empty(t, run(t, dir, "diff", "--cached", "--name-only"), "the index stays")
			require.NoError(t, r.Apply(ctx, patch), "a second time")
			require.Equal(t, read(t, w.Root()), read(t, dir))
		})
	}
}

func TestPatchOfSomePaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n", "sub/b.txt": "b\n", "*.txt": "star\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "sub/b.txt": "b2\n", "sub/new.txt": "n\n", "*.txt": "star2\n"})
	patch := patchSince(t, w, base, "sub", "*.txt")
	require.NoError(t, r.Apply(ctx, patch))
	require.Equal(t, files{"a.txt": "a\n", "sub/b.txt": "b2\n", "sub/new.txt": "n\n", "*.txt": "star2\n"}, read(t, dir),
		"a path is not a pattern")
}

func TestApplyKeepsOtherChanges(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": tenLines, "b.txt": "b\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": tenLines + "11\n"})
	patch := patchSince(t, w, base)
	write(t, dir, files{"a.txt": "0\n" + tenLines, "b.txt": "b2\n", "mine.txt": "m\n"})
	require.NoError(t, r.Apply(ctx, patch))
	require.Equal(t, files{"a.txt": "0\n" + tenLines + "11\n", "b.txt": "b2\n", "mine.txt": "m\n"}, read(t, dir))
	require.NoError(t, r.Apply(ctx, patch), "a second time")
	require.Equal(t, "0\n"+tenLines+"11\n", read(t, dir)["a.txt"])
}

func TestAmbiguousPatch(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": strings.Repeat("a\n", 20)})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": strings.Repeat("a\n", 19)})
	patch := patchSince(t, w, base)
	require.False(t, must(r.Applied(ctx, patch))(t))
	for range 2 {
		require.NoError(t, r.Apply(ctx, patch))
		require.Equal(t, strings.Repeat("a\n", 19), read(t, dir)["a.txt"])
		require.True(t, must(r.Applied(ctx, patch))(t))
	}
	write(t, dir, files{"a.txt": strings.Repeat("a\n", 30)})
	require.False(t, must(r.Applied(ctx, patch))(t))
	var conflict *ConflictError
	require.ErrorAs(t, r.Apply(ctx, patch), &conflict)
	require.Equal(t, []string{"a.txt"}, conflict.Paths)
	require.Equal(t, strings.Repeat("a\n", 30), read(t, dir)["a.txt"])
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	const odd = "odd \"name\"\n[x].txt"
	for _, row := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   []string
	}{
		{
			"changed in the same place", writes(files{"b.txt": "mine\n"}),
			[]string{"b.txt"},
		},
		{"deleted", erases("b.txt"), []string{"b.txt"}},
		{
			"there already, untracked", writes(files{"new.txt": "mine\n"}),
			[]string{"new.txt"},
		},
		{"a binary file", writes(files{"pic": "\x00mine"}), []string{"pic"}},
		{
			"two with odd names", writes(files{odd: "mine\n", "b.txt": "mine\n"}),
			[]string{"b.txt", odd},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := t.Context()
			r, dir := initial(t, files{"a.txt": "a\n", "b.txt": "b\n", "pic": "\x00\x01", odd: "o\n"})
			w, base := worktree(t, r)
			write(t, w.Root(), files{"a.txt": "a2\n", "b.txt": "b2\n", "pic": "\x00\x02", "new.txt": "n\n",
				odd: "o2\n"})
			patch := patchSince(t, w, base)
			row.damage(t, dir)
			before := read(t, dir)
			for name, do := range map[string]func() error{
				"check": func() error { return r.check(ctx, patch) },
				"apply": func() error { return r.Apply(ctx, patch) },
			} {
				var conflict *ConflictError
				require.ErrorAs(t, do(), &conflict, name)
				require.Equal(t, row.want, conflict.Paths, name)
				require.NotEmpty(t, conflict.Message, name)
				require.Equal(t, before, read(t, dir), name)
			}
		})
	}
}

func TestInvalidPatchIsNotAConflict(t *testing.T) {
	t.Parallel()
	r, _ := initial(t, files{"a.txt": "a\n"})
	for _, patch := range []string{"hello\n",
		"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n"} {
		err := r.check(t.Context(), []byte(patch))
		require.Error(t, err, patch)
		var conflict *ConflictError
		require.NotErrorAs(t, err, &conflict, patch)
	}
}

func TestFailedApplyIsRestored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	before := files{
		".gitattributes": "*.bad filter=bad\n", "a.txt": "a\n" + tenLines, "gone/deep.txt": "g\n", "old.txt": tenLines,
		"tool": "#!\n", "z.bad": "z\n",
	}
	r, dir := initial(t, before)
	require.NoError(t, os.Chmod(filepath.Join(dir, "tool"), 0o755))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "second")
	w, base := worktree(t, r)
	write(t, w.Root(), files{
		"a.txt": "a\n" + tenLines + "11\n", "new/deep/b.txt": "b\n", "tool": "#!2\n", "z.bad": "z2\n",
	})
	erase(t, w.Root(), "gone")
	erase(t, w.Root(), "link")
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old.txt"), filepath.Join(w.Root(), "renamed.txt")))
	patch := patchSince(t, w, base)
	write(t, dir, files{"a.txt": "mine\na\n" + tenLines, "mine.txt": "m\n"})
	a := must(os.Stat(filepath.Join(dir, "a.txt")))(t)
	all, dirty := read(t, dir), status(t, dir)

	run(t, dir, "config", "filter.bad.clean", "cat")
	run(t, dir, "config", "filter.bad.smudge", "ls '"+dir+"' >'"+dir+"/.git/seen'; false")
	run(t, dir, "config", "filter.bad.required", "true")
	require.ErrorAs(t, r.Apply(ctx, patch), new(*RefusedError))
	seen := must(os.ReadFile(filepath.Join(dir, ".git", "seen")))(t)
	require.Contains(t, string(seen), "renamed.txt", "git had written already")
	require.NotContains(t, string(seen), "old.txt", "git had removed already")

	require.Equal(t, all, read(t, dir))
	require.Equal(t, dirty, status(t, dir))
	require.NoDirExists(t, filepath.Join(dir, "new"))
	require.Equal(t, os.FileMode(0o755), must(os.Stat(filepath.Join(dir, "tool")))(t).Mode().Perm())
	require.Equal(t, a.ModTime(), must(os.Stat(filepath.Join(dir, "a.txt")))(t).ModTime())

	run(t, dir, "config", "filter.bad.smudge", "cat")
	require.NoError(t, r.Apply(ctx, patch))
	require.Equal(t, "mine\na\n"+tenLines+"11\n", read(t, dir)["a.txt"])
}

func TestApplyOverFolder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n", "z.txt": "z\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "new.txt": "n\n", "z.txt": "z2\n"})
	patch := patchSince(t, w, base)
	write(t, dir, files{"new.txt/mine": "mine\n"})
	before := read(t, dir)
	require.ErrorContains(t, r.Apply(ctx, patch), "new.txt")
	require.Equal(t, before, read(t, dir))
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n", "b.txt": "b\n", "old.txt": tenLines, "c.txt": "c\n"})
	w, base := worktree(t, r)
	write(t, w.Root(), files{"a.txt": "a2\n", "b.txt": "b2\n", "new/x.txt": "n\n", "added.txt": "n\n"})
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old.txt"), filepath.Join(w.Root(), "renamed.txt")))
	patch := patchSince(t, w, base)
	require.Empty(t, must(r.Overlaps(ctx, patch))(t), "a clean source")
	require.Empty(t, must(r.Overlaps(ctx, nil))(t), "an empty patch")
	require.NoError(t, r.Apply(ctx, nil))

	write(t, dir, files{
		"a.txt": "mine\n", "c.txt": "mine\n", "new": "a file\n", "added.txt": "mine\n", "old.txt": "mine\n",
		"newer": "mine\n",
	})
	run(t, dir, "add", "a.txt")
	require.Equal(t, []string{"a.txt", "added.txt", "new", "old.txt"}, must(r.Overlaps(ctx, patch))(t))
}
