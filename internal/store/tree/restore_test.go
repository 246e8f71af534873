package tree

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
)

// written makes a tree from lines: a path and its content; folders follow from the paths. A content "-> x" is a
// symlink, "+x" an executable, and a path with a slash at its end is an empty folder.
func written(lines ...string) Tree {
	all := map[string]Entry{}
	for _, line := range lines {
		path, content, _ := strings.Cut(line, ": ")
		name := strings.TrimSuffix(path, "/")
		e := Entry{Path: name, Mode: ModeFile, Perm: 0o644, Size: int64(len(content)),
			Digest: store.DigestOf([]byte(content))}
		target, link := strings.CutPrefix(content, "-> ")
		switch {
		case name != path:
			e = Entry{Path: name, Mode: ModeFolder, Perm: 0o755}
		case link:
			e = Entry{Path: name, Mode: ModeSymlink, Link: target}
		case strings.HasPrefix(content, "+x "):
			e = Entry{Path: name, Mode: ModeExecutable, Perm: fs.FileMode(0o755), Size: int64(len(content) - 3),
				Digest: store.DigestOf([]byte(content[3:]))}
		}
		all[name] = e
		for dir := parent(name); dir != "."; dir = parent(dir) {
			all[dir] = Entry{Path: dir, Mode: ModeFolder, Perm: 0o755}
		}
	}
	restored, _ := Restore(Tree{}, Tree{Entries: sortedEntries(all)}, func(string, bool) bool { return false })
	return restored
}

func sortedEntries(all map[string]Entry) []Entry {
	var list []Entry
	for _, e := range all {
		list = append(list, e)
	}
	return list
}

func TestRestoreUndoesChangesOfProtectedPaths(t *testing.T) {
	before := []string{"main.go: old", "test.sh: judge", "tests/a: one", "tests/deep/b: two", "x/y_test.go: y"}
	for _, c := range []struct {
		name    string
		protect pipeline.Paths
		after   []string
		want    []string // the restored tree; nil: as before
		undone  []string
	}{
		{"nothing", pipeline.Paths{"test.sh", "tests/"}, before, nil, nil},
		{"modified", pipeline.Paths{"test.sh"},
			[]string{"main.go: new", "test.sh: exit 0", "tests/a: one", "tests/deep/b: two", "x/y_test.go: y"},
			[]string{"main.go: new", "test.sh: judge", "tests/a: one", "tests/deep/b: two", "x/y_test.go: y"},
			[]string{"changed test.sh"}},
		{"deleted", pipeline.Paths{"tests"}, []string{"main.go: old", "test.sh: judge", "x/y_test.go: y"}, nil,
			[]string{"removed tests/a", "removed tests/deep/b"}},
		{"added below a folder", pipeline.Paths{"tests/"}, append([]string{"tests/deep/new/c: three"}, before...), nil,
			[]string{"added tests/deep/new/c"}},
		{"added by a glob", pipeline.Paths{"**/*_test.go"}, append([]string{"z_test.go: z", "x/z.go: z"}, before...),
			append([]string{"x/z.go: z"}, before...), []string{"added z_test.go"}},
		{"renamed", pipeline.Paths{"test.sh"},
			[]string{"main.go: old", "judge.sh: judge", "tests/a: one", "tests/deep/b: two", "x/y_test.go: y"},
			append([]string{"judge.sh: judge"}, before...), []string{"renamed judge.sh"}},
		{"mode", pipeline.Paths{"tests/**"},
			[]string{"main.go: old", "test.sh: judge", "tests/a: +x one", "tests/deep/b: two", "x/y_test.go: y"}, nil,
			[]string{"mode tests/a"}},
		{"symlinked", pipeline.Paths{"test.sh"},
			[]string{"main.go: old", "test.sh: -> main.go", "tests/a: one", "tests/deep/b: two", "x/y_test.go: y"}, nil,
			[]string{"changed test.sh"}},
		{"replaced by a folder", pipeline.Paths{"test.sh"},
			[]string{"main.go: old", "test.sh/inside: x", "tests/a: one", "tests/deep/b: two", "x/y_test.go: y"}, nil,
			[]string{"changed test.sh", "added test.sh/inside"}},
		{"a folder replaced by a symlink", pipeline.Paths{"tests/"},
			[]string{"main.go: old", "test.sh: judge", "tests: -> x", "x/y_test.go: y"}, nil,
			[]string{"changed tests", "removed tests/a", "removed tests/deep/b"}},
		{"a parent replaced by a file", pipeline.Paths{"tests/deep/b"},
			[]string{"main.go: old", "test.sh: judge", "tests: gone", "x/y_test.go: y"},
			[]string{"main.go: old", "test.sh: judge", "tests/deep/b: two", "x/y_test.go: y"},
			[]string{"changed tests", "removed tests/deep/b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil {
				c.want = before
			}
			got, undone := Restore(written(before...), written(c.after...), c.protect.Fits)
			require.Equal(t, written(c.want...), got)
			require.NoError(t, got.check())
			var list []string
			for _, u := range undone {
				list = append(list, string(u.Kind)+" "+u.Path)
			}
			require.Equal(t, c.undone, list)
		})
	}
}
