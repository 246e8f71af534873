package git

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const tenLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

func TestFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	before := filesOf(files{"page.html": "1\r\n2\r\n", "gone.txt": "g\n", "old.txt": tenLines, "pic": "\x00\x01", "gone/deep": "1\n"})
	after := filesOf(files{
		"gone": "1\n", odd: "o\n",
		"page.html": "1\r\n2\r\n3\n", "renamed.txt": tenLines, "pic": "\x00\x02",
		".gitattributes": "*.html text=auto\n*.txt filter=none\n", ".gitignore": "*\n",
	})
	c, drop, err := Files(ctx, before, after)
	require.NoError(t, err)
	defer drop()
	changes := must(c.Changes(ctx))(t)
	require.Equal(t, []Change{
		{Path: ".gitattributes", Kind: Added, Added: 2},
		{Path: ".gitignore", Kind: Added, Added: 1},
		{Path: "gone", OldPath: "gone/deep", Kind: Renamed},
		{Path: "gone.txt", Kind: Removed, Removed: 1},
		{Path: odd, Kind: Added, Added: 1},
		{Path: "page.html", Kind: Changed, Added: 1},
		{Path: "pic", Kind: Changed, Binary: true},
		{Path: "renamed.txt", OldPath: "old.txt", Kind: Renamed},
	}, changes)
	patch := must(c.Patch(ctx, "page.html"))(t)
	require.Contains(t, string(patch), "--- a/page.html\n+++ b/page.html\n@@ -1,2 +1,3 @@\n 1\r\n 2\r\n+3\n")
	stat := must(c.Stat(ctx, "gone.txt", "page.html"))(t)
	require.Contains(t, stat, "2 files changed, 1 insertion(+), 1 deletion(-)")

	drop()
	require.NoDirExists(t, c.git.dir)

	_, _, err = Files(ctx, before, []File{{Path: "a", Mode: ModeFile, Content: failing}})
	require.ErrorContains(t, err, `file "a": no content`)
	c, drop, err = Files(ctx, before, before)
	require.NoError(t, err)
	defer drop()
	require.Empty(t, must(c.Changes(ctx))(t))
}

// filesOf are files in memory.
func filesOf(fs files) (list []File) {
	for path, text := range fs {
		list = append(list, file(path, text))
	}
	return list
}

func TestBetween(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	base, work := head(t, dir), branch(t, dir, "work", files{"new.txt": "n\n", "a.txt": "b\n"})
	changes := must(must(r.Between(t.Context(), base, work))(t).Changes(t.Context(), "new.txt"))(t)
	require.Equal(t, []Change{{Path: "new.txt", Kind: Added, Added: 1}}, changes)
	_, err := r.Between(t.Context(), base, "nowhere")
	require.ErrorContains(t, err, "find commit nowhere")
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
