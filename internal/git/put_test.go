package git

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// putOf is a change of one file; asFile describes both sides.
func putOf(path, before, after string) put {
	return put{path, asFile(path, before), asFile(path, after)}
}

// asFile is a file with this text, a link to what follows "-> ", an executable file that begins with "#!", or nothing.
func asFile(path, text string) File {
	target, link := strings.CutPrefix(text, "-> ")
	switch {
	case text == "":
		return File{}
	case link:
		return File{path, ModeSymlink, content(target)}
	case strings.HasPrefix(text, "#!"):
		return File{path, ModeExecutable, content(text)}
	}
	return File{path, ModeFile, content(text)}
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
		puts  []put
		wants files  // nil: refused
		paths string // of the error
	}{
		{"changed", writes(files{"a": "1"}), []put{putOf("a", "1", "2")}, files{"a": "2"}, ""},
		{"done before", writes(files{"a": "2"}), []put{putOf("a", "1", "2")}, files{"a": "2"}, ""},
		{"added in a new folder", writes(nil), []put{putOf("x/y/a", "", "2")}, files{"x/y/a": "2"}, ""},
		{"removed with its folders", writes(files{"x/y/a": "1", "b": "b"}), []put{putOf("x/y/a", "1", "")}, files{"b": "b"}, ""},
		{"removed from a folder with other files", writes(files{"x/y/a": "1", "x/b": "b"}), []put{putOf("x/y/a", "1", "")},
			files{"x/b": "b"}, ""},
		{"executable", writes(files{"a": "#!1"}), []put{{"a", File{"a", ModeFile, content("#!1")}, asFile("a", "#!1")}},
			files{"a": "#!1"}, ""},
		{"a file becomes a link", writes(files{"a": "1"}), []put{putOf("a", "1", "-> b")}, files{"a": "-> b"}, ""},
		{"a link becomes a file", links("/etc/passwd", "a"), []put{putOf("a", "-> /etc/passwd", "2")}, files{"a": "2"}, ""},
		{"a file becomes a folder", writes(files{"a": "1"}), []put{putOf("a/b", "", "2"), putOf("a", "1", "")}, files{"a/b": "2"}, ""},
		{"a link becomes a folder", links("..", "a"), []put{putOf("a/b", "", "2"), putOf("a", "-> ..", "")}, files{"a/b": "2"}, ""},
		{"a folder becomes a file", writes(files{"a/b/c": "1"}), []put{putOf("a", "", "2"), putOf("a/b/c", "1", "")},
			files{"a": "2"}, ""},
		{"removed behind a link", both(writes(files{"y/a": "1"}), links("y", "x")), []put{putOf("x/a", "1", "")},
			files{"y/a": "1", "x": "-> y"}, ""},
		{"renamed to another case", writes(files{"a": "1"}), []put{putOf("a", "1", ""), putOf("A", "", "1")}, files{"A": "1"}, ""},

		{"other bytes", writes(files{"a": "1", "b": "x", "c": "x"}),
			[]put{putOf("c", "1", "2"), putOf("a", "1", "2"), putOf("b", "1", "2")}, nil, "b c"},
		{"longer", writes(files{"a": "12"}), []put{putOf("a", "1", "2")}, nil, "a"},
		{"another mode", writes(files{"a": "#!1"}), []put{putOf("a", "#!1", "2")}, nil, "a"},
		{"removed by the user", writes(nil), []put{putOf("a", "1", "2")}, nil, "a"},
		{"there by the user", writes(files{"a": "x"}), []put{putOf("a", "", "2")}, nil, "a"},
		{"changed and to be removed", writes(files{"a": "x"}), []put{putOf("a", "1", "")}, nil, "a"},
		{"a link instead", links("b", "a"), []put{putOf("a", "1", "2")}, nil, "a"},
		{"a folder instead", writes(files{"a/own": "x"}), []put{putOf("a", "1", "2")}, nil, "a"},
		{"a folder instead of a removed file", writes(files{"a/own": "x"}), []put{putOf("a", "1", "")}, nil, "a"},
		{"a file instead of a folder", writes(files{"x": "x"}), []put{putOf("x/a", "", "2")}, nil, "x/a"},
		{"a folder with another file", writes(files{"a/b": "1", "a/own": "x"}),
			[]put{putOf("a/b", "1", ""), putOf("a", "", "2")}, nil, "a"},
		{"a linked folder", both(writes(files{"y/a": "1"}), links("y", "x")), []put{putOf("x/a", "1", "2")}, nil, "x/a"},
		{"a folder linked to outside", links("..", "x"), []put{putOf("x/a", "", "2")}, nil, "x/a"},
		{"outside", writes(nil), []put{putOf("../a", "", "2")}, nil, "../a"},
		{"absolute", writes(nil), []put{putOf("/tmp/a", "", "2")}, nil, "/tmp/a"},
		{"git's", writes(nil), []put{putOf("x/.GIT/config", "", "2")}, nil, "x/.GIT/config"},
		{"twins", writes(nil), []put{putOf("a", "", "2"), putOf("A", "", "3")}, nil, "a A"},
		{"twin folders", writes(nil), []put{putOf("x/a", "", "2"), putOf("X/b", "", "3")}, nil, "x X"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r, dir := initial(t, nil)
			row.have(t, dir)
			before := read(t, dir)
			can := r.putFiles(t.Context(), row.puts, true)
			require.Equal(t, before, read(t, dir))
			err := r.putFiles(t.Context(), row.puts, false)
			if row.wants != nil {
				require.NoError(t, can)
				require.NoError(t, err)
				require.Equal(t, row.wants, read(t, dir))
				require.NoError(t, r.putFiles(t.Context(), row.puts, false))
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
	require.NoError(t, r.putFiles(t.Context(), []put{putOf("a", "1", "#!2"), putOf("b", "", "1")}, false))
	require.Equal(t, "-rwxr-xr-x", must(os.Stat(filepath.Join(dir, "a")))(t).Mode().String())
	require.Equal(t, "-rw-r--r--", must(os.Stat(filepath.Join(dir, "b")))(t).Mode().String())
}

// delivery changes files of all kinds.
var delivery = []put{putOf("a", "1", "2"), putOf("gone/x", "1", ""), putOf("new/deep/f", "", "2"), putOf("link", "1", "-> a"),
	putOf("file", "1", ""), putOf("file/f", "", "2"), putOf("tool", "1", "#!2")}

var undelivered = files{"a": "1", "gone/x": "1", "link": "1", "file": "1", "tool": "1", "own": "o"}

// TestInterruptedPutFiles stops before each change, and runs again.
func TestInterruptedPutFiles(t *testing.T) {
	t.Parallel()
	for k := range len(delivery) + 1 {
		r, dir := initial(t, undelivered)
		r.step = stopAt(k)
		err := r.putFiles(t.Context(), delivery, false)
		if k < len(delivery) {
			require.ErrorIs(t, err, errKilled)
		}
		whole(t, dir)
		write(t, dir, files{".passbook-put-a": "part"})
		r.step = nil
		require.NoError(t, r.putFiles(t.Context(), delivery, false))
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
	err := r.putFiles(t.Context(), []put{putOf("a", "1", "2"), putOf("b", "1", "2")}, false)
	require.Equal(t, []string{"b"}, pathsOf(err))
	require.Equal(t, files{"a": "2", "b": "mine"}, read(t, dir))
}
