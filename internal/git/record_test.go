package git

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file is a judged file.
func file(path, text string) File { return File{path, ModeFile, content(text)} }

func content(text string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
}

const odd = "odd \"name\"\nwith a newline, \xff and 'ü'"

// listed returns the files of a commit, with modes.
func listed(t *testing.T, r *Repo, commit string) files {
	t.Helper()
	found := files{}
	for _, e := range must(r.entries(t.Context(), commit))(t) {
		text := must(r.git.output(t.Context(), "cat-file", "blob", e.id))(t)
		found[e.path] = e.mode + " " + string(text)
	}
	return found
}

func TestRecord(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a.txt": "a\n", "gone/x": "x\n", "file": "f\n", "kept": "k\n"})
	start := head(t, dir)
	write(t, dir, files{"a.txt": "of the user\n", "untracked": "u\n"})
	index, before := run(t, dir, "ls-files", "--stage"), read(t, dir)
	c := Commit{"passbook/fix-it-1", start, start, "Pass 1\n\nRun: r\n", "", []File{
		file("a.txt", "changed\n"), {Path: "gone/x"}, {Path: "file"}, file("file/inside", "i\n"), file(odd, "o\n"),
		{"tool", ModeExecutable, content("#!\n")}, {"link", ModeSymlink, content("/etc/passwd")}, {Path: "never there"},
	}}
	id := must(r.Record(ctx, c))(t)
	require.Equal(t, files{"a.txt": "100644 changed\n", "kept": "100644 k\n", "file/inside": "100644 i\n",
		odd: "100644 o\n", "tool": "100755 #!\n", "link": "120000 /etc/passwd"}, listed(t, r, id))
	require.Equal(t, id, run(t, dir, "rev-parse", "passbook/fix-it-1"))
	require.Equal(t, start, run(t, dir, "rev-parse", id+"^"))
	require.Equal(t, "Pass 1\n\nRun: r", run(t, dir, "log", "-1", "--format=%B", id))
	require.Equal(t, "Passbook <passbook@localhost>", run(t, dir, "log", "-1", "--format=%an <%ae>", id))
	require.Equal(t, id, must(r.Record(ctx, c))(t), "a repetition")
	require.Empty(t, must(r.Differences(ctx, id, start, c.Files))(t))
	require.Equal(t, before, read(t, dir))
	require.Equal(t, index, run(t, dir, "ls-files", "--stage"))
	require.Equal(t, start, head(t, dir))

	next := c
	next.Parent, next.Files = id, []File{file("kept", "more\n")}
	second := must(r.Record(ctx, next))(t)
	require.Equal(t, id, run(t, dir, "rev-parse", second+"^"))
	next.Parent = second
	require.Equal(t, second, must(r.Record(ctx, next))(t), "without a difference")

	_, err := r.Record(ctx, c)
	require.Equal(t, &BranchError{Branch: c.Branch, At: second}, asBranch(err))
	run(t, dir, "update-ref", "-d", "refs/heads/"+c.Branch)
	next.Parent, next.Files = second, []File{file("kept", "again\n")}
	require.Equal(t, second, run(t, dir, "rev-parse", must(r.Record(ctx, next))(t)+"^"))
}

func asBranch(err error) (b *BranchError) {
	errors.As(err, &b)
	return b
}

func TestRecordRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		do      func(t *testing.T, dir string)
		branch  string
		file    File
		message string
	}{
		{"git's own name", nil, "passbook/r", file("x/.git/config", "x"), "x/.git/config"},
		{"outside", nil, "passbook/r", file("../x", "x"), `file "../x": its path leads out of the tree`},
		{"not canonical", nil, "passbook/r", file("a//b", "x"), `file "a//b"`},
		{"content", nil, "passbook/r", File{"x", ModeFile, failing}, `file "x": no content`},
		{"a name that is none", nil, "passbook/..", file("x", "x"), "not a valid branch name"},
		{"checked out", func(t *testing.T, dir string) {
			run(t, dir, "checkout", "-q", "-b", "passbook/r")
		}, "passbook/r", file("x", "x"), "is checked out at "},
		{"checked out elsewhere", func(t *testing.T, dir string) {
			run(t, dir, "worktree", "add", "-q", "-b", "passbook/r", filepath.Join(folder(t), "w"))
		}, "passbook/r", file("x", "x"), "/w: switch to another branch"},
		{"moved by the user", func(t *testing.T, dir string) {
			branch(t, dir, "passbook/r", files{"own": "o"})
		}, "passbook/r", file("x", "x"), "branch passbook/r is already at commit "},
		{"locked", func(t *testing.T, dir string) {
			write(t, dir, files{".git/refs/heads/passbook/r.lock": ""})
		}, "passbook/r", file("x", "x"), "remove the lock file and retry"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, files{"a.txt": "a\n"})
			start := head(t, dir)
			if row.do != nil {
				row.do(t, dir)
			}
			refs := run(t, dir, "for-each-ref")
			_, err := r.Record(t.Context(), Commit{row.branch, start, start, "work", "", []File{row.file}})
			require.ErrorContains(t, err, row.message)
			require.Equal(t, refs, run(t, dir, "for-each-ref"))
		})
	}
}

// TestRecordKeepsTheUsersIdentity uses the configured author, and no signature.
func TestRecordUsesTheConfiguredIdentity(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, nil)
	for _, s := range []string{"user.name=Ann", "user.email=ann@localhost", "commit.gpgSign=true", "core.splitIndex=true",
		"core.autocrlf=true", "core.fileMode=false", "core.symlinks=false"} {
		key, value, _ := strings.Cut(s, "=")
		run(t, dir, "config", key, value)
	}
	start := head(t, dir)
	judged := []File{file("crlf", "a\r\n"), file("lf", "a\n"), {"tool", ModeExecutable, content("x")},
		{"link", ModeSymlink, content("x")}}
	id := must(r.Record(t.Context(), Commit{"passbook/r", start, start, "work", "", judged}))(t)
	require.Equal(t, "Ann <ann@localhost>", run(t, dir, "log", "-1", "--format=%an <%ae>", id))
	require.Equal(t, files{"crlf": "100644 a\r\n", "lf": "100644 a\n", "tool": "100755 x", "link": "120000 x"},
		listed(t, r, id))
	require.Empty(t, must(r.Differences(t.Context(), id, start, judged))(t))
	require.Empty(t, must(filepath.Glob(filepath.Join(dir, ".git/sharedindex*")))(t))
}

// upper is a filter that stores capitals and checks out small letters, as the user's configuration.
func upper(t *testing.T, dir string) {
	t.Helper()
	run(t, dir, "config", "filter.upper.clean", "tr a-z A-Z")
	run(t, dir, "config", "filter.upper.smudge", "tr A-Z a-z")
}

func TestConversionsOfTheStart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name       string
		attributes string // of the start commit
		judged     []File
		stored     files
		wants      []Difference
	}{
		{"none", "*.x text\n", []File{file("a.txt", "a\r\n")}, files{"a.txt": "a\r\n"}, nil},
		{"a filter", "*.txt filter=upper\n", []File{file("a.txt", "abc\n"), file("b", "abc\n")},
			files{"a.txt": "ABC\n", "b": "abc\n"}, nil},
		{"a filter that does not restore", "*.txt filter=upper\n", []File{file("a.txt", "aBc\n")}, files{"a.txt": "ABC\n"},
			[]Difference{{"a.txt", WhyBytes}}},
		{"a filter that nothing defines", "*.txt filter=none\n", []File{file("a.txt", "a\n")}, files{"a.txt": "a\n"}, nil},
		{"eol=crlf", "*.txt text eol=crlf\n", []File{file("a.txt", "a\r\nb\r\n")}, files{"a.txt": "a\nb\n"}, nil},
		{"eol=crlf with LF", "*.txt text eol=crlf\n", []File{file("a.txt", "a\nb\n")}, files{"a.txt": "a\nb\n"},
			[]Difference{{"a.txt", WhyBytes}}},
		{"text=auto with CRLF", "* text=auto\n", []File{file("a.txt", "a\r\n"), file("b.bin", "\x00\r\n")},
			files{"a.txt": "a\n", "b.bin": "\x00\r\n"}, []Difference{{"a.txt", WhyBytes}}},
		{"ident", "*.txt ident\n", []File{file("a.txt", "$Id: mine $\n"), file("b.txt", "plain\n")},
			files{"a.txt": "$Id$\n", "b.txt": "plain\n"}, []Difference{{"a.txt", WhyBytes}}},
		{"working-tree-encoding", "*.txt working-tree-encoding=UTF-16LE\n", []File{file("a.txt", "\x65\x00\n\x00")},
			files{"a.txt": "e\n"}, nil},
		{"the attributes themselves", "* text=auto\n", []File{file(attributesFile, "# a\r\n* text=auto\n"),
			file("sub/"+attributesFile, "*.txt ident\n")},
			files{attributesFile: "# a\r\n* text=auto\n", "sub/" + attributesFile: "*.txt ident\n"}, nil},
		{"symbolic links", "* filter=upper\n", []File{{"l", ModeSymlink, content("a")}}, files{"l": "a"}, nil},
		{"a macro", "[attr]big filter=upper\n*.txt big\n", []File{file("sub/a.txt", "a\n")}, files{"sub/a.txt": "A\n"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			_, dir := initial(t, files{attributesFile: row.attributes})
			upper(t, dir)
			r := must(Open(ctx, dir))(t)
			start := head(t, dir)
			id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", row.judged}))(t)
			all := listed(t, r, id)
			for path, text := range row.stored {
				require.Equal(t, text, all[path][len(ModeFile)+1:], path)
			}
			require.Equal(t, row.wants, must(r.Differences(ctx, id, start, row.judged))(t))
		})
	}
}

// TestAttributesOfTheAgentDoNotApply adds attributes in the same commit, in a former one, and in the checkout.
func TestAttributesOfTheAgentDoNotApply(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, dir := initial(t, files{"old.txt": "old\n", "id.txt": "$Id$\n", "same.txt": "s\n", "pic.bin": "p", "w.bat": "w\n"})
	upper(t, dir)
	r := must(Open(ctx, dir))(t)
	start := head(t, dir)
	const evil = "*.txt ident eol=lf\n*.bin filter=upper\n*.bat text eol=crlf\nnew.txt working-tree-encoding=UTF-16LE\n"
	write(t, dir, files{attributesFile: evil})
	judged := []File{file(attributesFile, evil), file("new.txt", "new\n"), file("a.bin", "abc")}
	id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", judged}))(t)
	require.Equal(t, "new", run(t, dir, "show", id+":new.txt"))
	more := file("more.bin", "abc")
	id = must(r.Record(ctx, Commit{"passbook/r", id, start, "work", "", []File{more}}))(t)
	require.Equal(t, "abc", run(t, dir, "show", id+":more.bin"))
	require.Equal(t, []Difference{{"a.bin", WhyFilter}, {"id.txt", WhyAttributes}, {"more.bin", WhyFilter},
		{"new.txt", WhyAttributes}, {"pic.bin", WhyFilter}, {"w.bat", WhyAttributes}},
		must(r.Differences(ctx, id, start, append(judged, more)))(t))
}

// TestRemovedAttributes removes the attributes without which the stored bytes are checked out.
func TestRemovedAttributes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{attributesFile: "*.bat text eol=crlf\n", "a.bat": "a\n"})
	start := head(t, dir)
	judged := []File{{Path: attributesFile}, file("b.bat", "b\r\n")}
	id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", judged}))(t)
	require.Equal(t, []Difference{{"a.bat", WhyAttributes}, {"b.bat", WhyAttributes}},
		must(r.Differences(ctx, id, start, judged))(t))
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r, dir := initial(t, files{"a": "a\n", "b": "b\n", "c": "c\n"})
	start := head(t, dir)
	id := branch(t, dir, "work", files{"a": "2\n", "b": "2\n", "new": "n\n", "own": "o\n"})
	require.Equal(t, []Difference{{"a", WhyBytes}, {"b", WhyMode}, {"c", WhyKept}, {"never", WhyMissing},
		{"own", WhyUnjudged}}, must(r.Differences(ctx, id, start, []File{file("a", "3\n"),
		{"b", ModeExecutable, content("2\n")}, {Path: "c"}, file("never", "x"), file("new", "n\n"), {Path: "gone"}}))(t))

	var many []File
	for i := range 300 {
		many = append(many, file(fmt.Sprintf("many/%d/f", i), fmt.Sprint(i)))
	}
	id = must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", many}))(t)
	require.Empty(t, must(r.Differences(ctx, id, start, many))(t))
}

// TestFailingFilterIsAnError: git would store the bytes that nothing has converted.
func TestFailingFilterIsAnError(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, dir := initial(t, files{attributesFile: "*.txt filter=crypt\n"})
	run(t, dir, "config", "filter.crypt.clean", "./tools/crypt")
	r := must(Open(ctx, dir))(t)
	start := head(t, dir)
	_, err := r.Record(ctx, Commit{"passbook/r", start, start, "work", "", []File{file("a.txt", "secret\n")}})
	require.ErrorContains(t, err, "external filter './tools/crypt'")
}

// TestLargeFileFilter stores pointers, and the content beside the objects of the source.
func TestLargeFileFilter(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, dir := initial(t, files{attributesFile: "*.bin filter=big -text\n"})
	scripts := folder(t)
	write(t, scripts, files{
		"clean": "cat >\"$GIT_DIR/new\"; id=$(sha1sum <\"$GIT_DIR/new\" | cut -c1-40); mv \"$GIT_DIR/new\" \"$GIT_DIR/big-$id\"; " +
			"echo \"pointer $id\"\n",
		"smudge": "read -r _ id; cat \"$GIT_DIR/big-$id\"\n",
	})
	run(t, dir, "config", "filter.big.clean", "sh "+scripts+"/clean %f")
	run(t, dir, "config", "filter.big.smudge", "sh "+scripts+"/smudge %f")
	run(t, dir, "config", "filter.big.required", "true")
	r := must(Open(ctx, dir))(t)
	start := head(t, dir)
	judged := []File{file("a.bin", "large\r\n"), file("b.txt", "b\n")}
	id := must(r.Record(ctx, Commit{"passbook/r", start, start, "work", "", judged}))(t)
	require.Regexp(t, "^pointer [0-9a-f]{40}$", run(t, dir, "show", id+":a.bin"))
	require.Empty(t, must(r.Differences(ctx, id, start, judged))(t))
	require.Equal(t, []Difference{{"a.bin", WhyBytes}},
		must(r.Differences(ctx, id, start, []File{file("a.bin", "other"), judged[1]}))(t))
}

// TestTemporaryFolderIsGone: a worker outlives the terminal whose TMPDIR it has.
func TestTemporaryFolderIsGone(t *testing.T) {
	r, dir := initial(t, files{"a": "1\n"})
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	start := head(t, dir)
	id, err := r.Record(t.Context(), Commit{"passbook/r", start, start, "work", "", []File{file("a", "2\n")}})
	require.NoError(t, err)
	require.Equal(t, "2", run(t, dir, "show", id+":a"))
}
