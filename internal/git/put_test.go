package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// put is a change of one file; asVersion describes both sides.
func put(path, before, after string) Put { return Put{path, asVersion(before), asVersion(after)} }

// asVersion is a file with this text, a link to what follows "-> ", an executable file that begins with "#!", or nothing.
func asVersion(text string) Version {
	target, link := strings.CutPrefix(text, "-> ")
	switch {
	case text == "":
		return Version{}
	case link:
		return Version{ModeSymlink, content(target)}
	case strings.HasPrefix(text, "#!"):
		return Version{ModeExecutable, content(text)}
	}
	return Version{ModeFile, content(text)}
}

// pathsOf returns the paths that an error lists.
func pathsOf(err error) []string {
	var refused *RefusedError
	var conflict *ConflictError
	switch {
	case errors.As(err, &refused):
		return refused.Paths
	case errors.As(err, &conflict):
		return conflict.Paths
	}
	return nil
}

var errKilled = errors.New("killed")

func TestPutFiles(t *testing.T) {
	t.Parallel()
	links := func(target, path string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
			require.NoError(t, os.Symlink(target, filepath.Join(dir, path)))
		}
	}
	both := func(all ...func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, do := range all {
				do(t, dir)
			}
		}
	}
	for _, row := range []struct {
		name  string
		have  func(*testing.T, string)
		puts  []Put
		wants files  // nil: refused
		paths string // of the error
	}{
		{"changed", writes(files{"a": "1"}), []Put{put("a", "1", "2")}, files{"a": "2"}, ""},
		{"done before", writes(files{"a": "2"}), []Put{put("a", "1", "2")}, files{"a": "2"}, ""},
		{"added in a new folder", writes(nil), []Put{put("x/y/a", "", "2")}, files{"x/y/a": "2"}, ""},
		{"removed with its folders", writes(files{"x/y/a": "1", "b": "b"}), []Put{put("x/y/a", "1", "")}, files{"b": "b"}, ""},
		{"removed from a folder with other files", writes(files{"x/y/a": "1", "x/b": "b"}), []Put{put("x/y/a", "1", "")},
			files{"x/b": "b"}, ""},
		{"executable", writes(files{"a": "#!1"}), []Put{{"a", Version{ModeFile, content("#!1")}, asVersion("#!1")}},
			files{"a": "#!1"}, ""},
		{"a file becomes a link", writes(files{"a": "1"}), []Put{put("a", "1", "-> b")}, files{"a": "-> b"}, ""},
		{"a link becomes a file", links("/etc/passwd", "a"), []Put{put("a", "-> /etc/passwd", "2")}, files{"a": "2"}, ""},
		{"a file becomes a folder", writes(files{"a": "1"}), []Put{put("a/b", "", "2"), put("a", "1", "")}, files{"a/b": "2"}, ""},
		{"a link becomes a folder", links("..", "a"), []Put{put("a/b", "", "2"), put("a", "-> ..", "")}, files{"a/b": "2"}, ""},
		{"a folder becomes a file", writes(files{"a/b/c": "1"}), []Put{put("a", "", "2"), put("a/b/c", "1", "")},
			files{"a": "2"}, ""},
		{"removed behind a link", both(writes(files{"y/a": "1"}), links("y", "x")), []Put{put("x/a", "1", "")},
			files{"y/a": "1", "x": "-> y"}, ""},
		{"renamed to another case", writes(files{"a": "1"}), []Put{put("a", "1", ""), put("A", "", "1")}, files{"A": "1"}, ""},

		{"other bytes", writes(files{"a": "1", "b": "x", "c": "x"}),
			[]Put{put("c", "1", "2"), put("a", "1", "2"), put("b", "1", "2")}, nil, "b c"},
		{"longer", writes(files{"a": "12"}), []Put{put("a", "1", "2")}, nil, "a"},
		{"another mode", writes(files{"a": "#!1"}), []Put{put("a", "#!1", "2")}, nil, "a"},
		{"removed by the user", writes(nil), []Put{put("a", "1", "2")}, nil, "a"},
		{"there by the user", writes(files{"a": "x"}), []Put{put("a", "", "2")}, nil, "a"},
		{"changed and to be removed", writes(files{"a": "x"}), []Put{put("a", "1", "")}, nil, "a"},
		{"a link instead", links("b", "a"), []Put{put("a", "1", "2")}, nil, "a"},
		{"a folder instead", writes(files{"a/own": "x"}), []Put{put("a", "1", "2")}, nil, "a"},
		{"a folder instead of a removed file", writes(files{"a/own": "x"}), []Put{put("a", "1", "")}, nil, "a"},
		{"a file instead of a folder", writes(files{"x": "x"}), []Put{put("x/a", "", "2")}, nil, "x/a"},
		{"a folder with another file", writes(files{"a/b": "1", "a/own": "x"}),
			[]Put{put("a/b", "1", ""), put("a", "", "2")}, nil, "a"},
		{"a linked folder", both(writes(files{"y/a": "1"}), links("y", "x")), []Put{put("x/a", "1", "2")}, nil, "x/a"},
		{"a folder linked to outside", links("..", "x"), []Put{put("x/a", "", "2")}, nil, "x/a"},
		{"outside", writes(nil), []Put{put("../a", "", "2")}, nil, "../a"},
		{"absolute", writes(nil), []Put{put("/tmp/a", "", "2")}, nil, "/tmp/a"},
		{"git's", writes(nil), []Put{put("x/.GIT/config", "", "2")}, nil, "x/.GIT/config"},
		{"twins", writes(nil), []Put{put("a", "", "2"), put("A", "", "3")}, nil, "a A"},
		{"twin folders", writes(nil), []Put{put("x/a", "", "2"), put("X/b", "", "3")}, nil, "x X"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, nil)
			row.have(t, dir)
			before := read(t, dir)
			can := r.CanPutFiles(row.puts)
			require.Equal(t, before, read(t, dir))
			err := r.PutFiles(t.Context(), row.puts)
			if row.wants != nil {
				require.NoError(t, can)
				require.NoError(t, err)
				require.Equal(t, row.wants, read(t, dir))
				require.NoError(t, r.PutFiles(t.Context(), row.puts))
				require.Equal(t, row.wants, read(t, dir))
				return
			}
			require.ErrorContains(t, err, can.Error())
			require.Equal(t, row.paths, strings.Join(pathsOf(err), " "))
			require.Equal(t, before, read(t, dir))
		})
	}
}

func TestPutKeepsModes(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1"})
	require.NoError(t, r.PutFiles(t.Context(), []Put{put("a", "1", "#!2"), put("b", "", "1")}))
	require.Equal(t, "-rwxr-xr-x", must(os.Stat(filepath.Join(dir, "a")))(t).Mode().String())
	require.Equal(t, "-rw-r--r--", must(os.Stat(filepath.Join(dir, "b")))(t).Mode().String())
}

// delivery changes files of all kinds.
var delivery = []Put{put("a", "1", "2"), put("gone/x", "1", ""), put("new/deep/f", "", "2"), put("link", "1", "-> a"),
	put("file", "1", ""), put("file/f", "", "2"), put("tool", "1", "#!2")}

var undelivered = files{"a": "1", "gone/x": "1", "link": "1", "file": "1", "tool": "1", "own": "o"}

// TestInterruptedPutFiles stops before each change, and runs again.
func TestInterruptedPutFiles(t *testing.T) {
	t.Parallel()
	for k := range len(delivery) + 1 {
		r, dir := initial(t, undelivered)
		r.step = stopAt(k)
		err := r.PutFiles(t.Context(), delivery)
		if k < len(delivery) {
			require.ErrorIs(t, err, errKilled)
		}
		whole(t, dir)
		write(t, dir, files{".passbook-put-a": "part"})
		r.step = nil
		require.NoError(t, r.PutFiles(t.Context(), delivery))
		erase(t, dir, ".passbook-put-a")
		require.Equal(t, files{"a": "2", "new/deep/f": "2", "link": "-> a", "file/f": "2", "tool": "#!2", "own": "o"},
			read(t, dir))
	}
}

// whole checks that each file is as before or as after.
func whole(t *testing.T, dir string) {
	t.Helper()
	for path, text := range read(t, dir) {
		require.Contains(t, []string{"1", "2", "-> a", "#!2", "o"}, text, path)
	}
}

func stopAt(k int) func(string) error {
	return func(string) error {
		if k--; k < 0 {
			return errKilled
		}
		return nil
	}
}

// TestPutFilesDetectsLaterChanges: the user saves a file between the comparison and the change.
func TestPutFilesDetectsLaterChanges(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a": "1", "b": "1"})
	r.step = func(path string) error {
		if path == "b" {
			write(t, dir, files{"b": "mine"})
		}
		return nil
	}
	err := r.PutFiles(t.Context(), []Put{put("a", "1", "2"), put("b", "1", "2")})
	require.Equal(t, []string{"b"}, pathsOf(err))
	require.Equal(t, files{"a": "2", "b": "mine"}, read(t, dir))
}
