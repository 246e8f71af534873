package repo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tenLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

func TestChanges(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const odd = "odd \"name\"\tand\nnewline \xff"
	r, _ := initial(t, files{
		"a.txt": "1\n2\n3\n", "gone.txt": "one\ntwo\n", "old.txt": tenLines, "pic": "\x00\x01", "tool": "#!\n",
		".gitignore": "ignored\n", "committed.txt": "c\n",
	})
	w, base := worktree(t, r)
	changes := must(w.Changes(ctx, base))(t)
	require.Empty(t, changes)
	stat := func() string { return must(must(w.Since(ctx, base))(t).Stat(ctx))(t) }
	require.Empty(t, stat())

	write(t, w.Root(), files{"committed.txt": "c\nd\n"})
	must(w.Commit(ctx, "work", "committed.txt"))(t)
	write(t, w.Root(), files{
		"a.txt": "1\nx\n3\n4\n", "new.txt": "1\n2\n3\n", "pic": "\x00\x02", odd: "o\n", "ignored": "i\n",
	})
	erase(t, w.Root(), "gone.txt")
	require.NoError(t, os.Rename(filepath.Join(w.Root(), "old.txt"), filepath.Join(w.Root(), "renamed.txt")))
	require.NoError(t, os.Chmod(filepath.Join(w.Root(), "tool"), 0o755))
	run(t, w.Root(), "add", "new.txt")
	index := run(t, w.Root(), "ls-files", "--stage")

	changes = must(w.Changes(ctx, base))(t)
	require.Equal(t, []Change{
		{Path: "a.txt", Kind: Changed, Added: 2, Removed: 1},
		{Path: "committed.txt", Kind: Changed, Added: 1},
		{Path: "gone.txt", Kind: Removed, Removed: 2},
		{Path: "new.txt", Kind: Added, Added: 3},
		{Path: odd, Kind: Added, Added: 1},
		{Path: "pic", Kind: Changed, Binary: true},
		{Path: "renamed.txt", OldPath: "old.txt", Kind: Renamed},
		{Path: "tool", Kind: Mode},
	}, changes)
	require.Equal(
		t, []string{"a.txt", "committed.txt", "gone.txt", "new.txt", odd, "old.txt", "pic", "renamed.txt", "tool"},
		Paths(changes),
	)
	require.Equal(t, index, run(t, w.Root(), "ls-files", "--stage"), "the index is not touched")

	require.Contains(t, stat(), " a.txt ")
	require.Contains(t, stat(), "8 files changed, 7 insertions(+), 3 deletions(-)")
}

func TestChangeWithinClockTickIsDetected(t *testing.T) {
	t.Parallel()
	r, _ := initial(t, files{"a.txt": "aaaa\n"})
	w, base := worktree(t, r)
	index, path := filepath.Join(w.gitDir, "index"), filepath.Join(w.Root(), "a.txt")
	long := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, long, long))
	run(t, w.Root(), "update-index", "--refresh")
	write(t, w.Root(), files{"a.txt": "bbbb\n"})
	require.NoError(t, os.Chtimes(path, long, long))
	require.NoError(t, os.Chtimes(index, long, long))
	run(t, w.Root(), "config", "core.trustctime", "false")
	changes := must(w.Changes(t.Context(), base))(t)
	require.Equal(t, []Change{{Path: "a.txt", Kind: Changed, Added: 1, Removed: 1}}, changes)
}

func TestInvalidDiffOutputIsRefused(t *testing.T) {
	t.Parallel()
	const raw = ":100644 100644 1111 2222 M\x00a\x00"
	for _, row := range []struct{ out, message string }{
		{":100644 100644 1111 2222\x00a\x00", "parse git diff"},
		{":100644 100644 1111 2222 X\x00a\x00", "parse git diff"},
		{":100644 100644 1111 2222 R100\x00a\x00", "without a new path"},
		{raw, "no numbers for"},
		{raw + "1\t2\x00", "parse git diff"},
		{raw + "1\tx\ta\x00", "parse git diff"},
		{raw + "1\t2\tb\x00", "numbers of another file"},
		{raw + "1\t2\ta\x00" + "1\t2\tb\x00", "parse git diff"},
	} {
		_, err := parseChanges([]byte(row.out))
		require.ErrorContains(t, err, row.message, "%q", row.out)
	}
}

func FuzzParseChanges(f *testing.F) {
	f.Add([]byte(":100644 100644 1111 2222 M\x00a\x001\t2\ta\x00"))
	f.Add([]byte(":100644 100644 1111 2222 R100\x00a\x00b\x001\t2\t\x00a\x00b\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		changes, err := parseChanges(out)
		require.True(t, err == nil || changes == nil)
	})
}
