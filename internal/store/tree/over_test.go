package tree_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// over is a folder that holds a tree, and another tree to check out over it.
type over struct {
	t        *testing.T
	s        *store.Store
	dir      string
	was, now tree.Saved
	cache    *tree.Cache
	rules    tree.Rules
}

func newOver(t *testing.T, was, now []item) *over {
	t.Helper()
	o := &over{t: t, s: openStore(t), dir: t.TempDir(), rules: tree.Rules{SkipOutside: true,
		Git: &tree.Ignores{Files: map[string]string{".": "*.o\ncache/\n"}}}}
	for _, of := range []struct {
		saved *tree.Saved
		items []item
	}{{&o.was, was}, {&o.now, now}} {
		from := t.TempDir()
		lay(t, from, of.items...)
		*of.saved = save(t, o.s, from, nil)
	}
	o.cache = must(tree.CheckoutOver(t.Context(), o.s, o.was.Tree, o.dir, o.rules, tree.Over{}))(t)
	return o
}

// checkout checks out the other tree and returns what was to be kept, with its content.
func (o *over) checkout() map[string]string {
	o.t.Helper()
	kept := map[string]string{}
	keep := func(path string) error {
		name := filepath.Join(o.dir, path)
		if to, err := os.Readlink(name); err == nil {
			kept[path] = "-> " + to
			return nil
		}
		text, err := os.ReadFile(name)
		kept[path] = string(text)
		return err
	}
	must(tree.CheckoutOver(o.t.Context(), o.s, o.now.Tree, o.dir, o.rules,
		tree.Over{Cache: o.cache, Ours: []tree.Tree{o.was.Tree}, Keep: keep}))(o.t)
	again := must(tree.Save(o.t.Context(), o.s, o.dir, o.rules, nil))(o.t)
	require.Equal(o.t, o.now.Digest, again.Digest)
	return kept
}

func (o *over) path(name string) string { return filepath.Join(o.dir, name) }

// TestCheckoutOverKeepsForeignContent: what others have left is given to keep, and what the program left there is not.
func TestCheckoutOverKeepsForeignContent(t *testing.T) {
	was := []item{file("a", "a"), file("b", "b"), folder("d"), file("d/c", "c"), file("d/e", "e"), link("l", "a"), file("x.o", "o")}
	now := []item{file("a", "A"), folder("d"), file("d/c", "c"), link("l", "d/c"), file("n", "n"), file("x.o", "o")}
	for name, row := range map[string]struct {
		change func(o *over)
		kept   map[string]string
	}{
		"nothing":                {func(*over) {}, map[string]string{}},
		"a changed file":         {func(o *over) { lay(o.t, o.dir, file("a", "mine")) }, map[string]string{"a": "mine"}},
		"a changed removed file": {func(o *over) { lay(o.t, o.dir, file("b", "mine")) }, map[string]string{"b": "mine"}},
		"changed, and the same in both": {func(o *over) { lay(o.t, o.dir, file("d/c", "mine")) },
			map[string]string{"d/c": "mine"}},
		"of the same size":       {func(o *over) { lay(o.t, o.dir, file("a", "z")) }, map[string]string{"a": "z"}},
		"already as it is to be": {func(o *over) { lay(o.t, o.dir, file("a", "A"), file("n", "n")) }, map[string]string{}},
		"new files": {func(o *over) { lay(o.t, o.dir, file("n", "mine"), file("d/new", "2"), file("e/f/g", "3")) },
			map[string]string{"n": "mine", "d/new": "2", "e/f/g": "3"}},
		"a removed file": {func(o *over) { require.NoError(o.t, os.Remove(o.path("a"))) }, map[string]string{}},
		"another mode":   {func(o *over) { require.NoError(o.t, os.Chmod(o.path("d/c"), 0o755)) }, map[string]string{}},
		"another link": {func(o *over) {
			require.NoError(o.t, os.Remove(o.path("l")))
			lay(o.t, o.dir, link("l", "b"))
		}, map[string]string{"l": "-> b"}},
		"a link in the place of a file": {func(o *over) {
			require.NoError(o.t, os.Remove(o.path("a")))
			lay(o.t, o.dir, link("a", "b"))
		}, map[string]string{"a": "-> b"}},
		"a file in the place of a link": {func(o *over) {
			require.NoError(o.t, os.Remove(o.path("l")))
			lay(o.t, o.dir, file("l", "mine"))
		}, map[string]string{"l": "mine"}},
		"a file in the place of a folder": {func(o *over) {
			require.NoError(o.t, os.RemoveAll(o.path("d")))
			lay(o.t, o.dir, file("d", "mine"))
		}, map[string]string{"d": "mine"}},
		"a folder in the place of a file": {func(o *over) {
			require.NoError(o.t, os.Remove(o.path("a")))
			lay(o.t, o.dir, file("a/x", "mine"), file("a/y.o", "ignored"), file("a/.git/HEAD", "nested"))
		}, map[string]string{"a/x": "mine"}},
		"a link to a folder outside in the place of one": {func(o *over) {
			require.NoError(o.t, os.RemoveAll(o.path("d")))
			lay(o.t, o.dir, link("d", o.outside()))
		}, map[string]string{"d": "-> OUTSIDE"}},
		"a pipe in the place of a file": {func(o *over) {
			require.NoError(o.t, os.Remove(o.path("a")))
			require.NoError(o.t, syscall.Mkfifo(o.path("a"), 0o600))
		}, map[string]string{}},
		"a file of an interrupted checkout": {func(o *over) { lay(o.t, o.dir, file(".passbook-abcdefghij", "x")) },
			map[string]string{}},
		"a folder without permissions": {func(o *over) { require.NoError(o.t, os.Chmod(o.path("d"), 0)) }, map[string]string{}},
		"ignored files":                {func(o *over) { lay(o.t, o.dir, file("y.o", "mine"), file("cache/z", "mine")) }, map[string]string{}},
		"ignored, but ours":            {func(o *over) { lay(o.t, o.dir, file("x.o", "mine")) }, map[string]string{"x.o": "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOver(t, was, now)
			o.rules.Tracked = []string{"x.o"}
			row.change(o)
			kept := o.checkout()
			if kept["d"] == "-> "+o.outside() {
				kept["d"] = "-> OUTSIDE"
			}
			require.Equal(t, row.kept, kept)
			if name == "ignored files" {
				require.FileExists(t, o.path("y.o"))
				require.FileExists(t, o.path("cache/z"))
			}
			require.Equal(t, []item{file("c", "precious")}, there(t, o.outside()))
		})
	}
}

// outside is a folder beside that nothing may change.
func (o *over) outside() string {
	dir := o.dir + "-outside"
	if _, err := os.Lstat(dir); err != nil {
		lay(o.t, filepath.Dir(dir), folder(filepath.Base(dir)), file(filepath.Base(dir)+"/c", "precious"))
	}
	return dir
}

// TestCheckoutOverWritesOnlyWhatDiffers: other files stay the same files, with their times.
func TestCheckoutOverWritesOnlyWhatDiffers(t *testing.T) {
	was := []item{file("a", "a"), file("b", "b"), folder("d"), file("d/c", "c"), link("l", "a")}
	o := newOver(t, was, []item{file("a", "A"), file("b", "b"), folder("d"), file("d/c", "c"), link("l", "a"), file("n", "n")})
	before := map[string]fs.FileInfo{}
	for _, name := range []string{"a", "b", "d/c", "l"} {
		old := time.Now().Add(-time.Hour)
		if name != "l" {
			require.NoError(t, os.Chtimes(o.path(name), old, old))
		}
		before[name] = must(os.Lstat(o.path(name)))(t)
	}
	require.Empty(t, o.checkout())
	for name, info := range before {
		now := must(os.Lstat(o.path(name)))(t)
		require.Equal(t, name != "a", os.SameFile(info, now), name)
		require.Equal(t, name != "a", info.ModTime().Equal(now.ModTime()), name)
	}
}

// TestCheckoutOverKeepsOneFileAfterAnother: files are written concurrently.
func TestCheckoutOverKeepsOneFileAfterAnother(t *testing.T) {
	var was, now []item
	for i := range 40 {
		was, now = append(was, file(fmt.Sprintf("%02d", i), "a")), append(now, file(fmt.Sprintf("%02d", i), "b"))
	}
	o := newOver(t, was, now)
	for _, it := range was {
		lay(t, o.dir, file(it.path, "mine"))
	}
	require.Len(t, o.checkout(), len(was))
}

// TestForeignFiles: those that none of the trees has with this content. Nothing is written.
func TestForeignFiles(t *testing.T) {
	o := newOver(t, []item{file("a", "a"), file("b", "b"), link("l", "a")}, []item{file("a", "A"), file("n.o", "n")})
	foreign := func() []string {
		return must(tree.Foreign(t.Context(), o.dir, o.rules, []tree.Tree{o.was.Tree, o.now.Tree}))(t)
	}
	require.Empty(t, foreign())
	lay(t, o.dir, file("a", "A"), file("n.o", "n"), file("x.o", "ignored"), file("cache/x", "ignored"))
	require.Empty(t, foreign(), "of the other tree, or ignored")
	require.NoError(t, os.Remove(o.path("b")))
	require.NoError(t, os.Remove(o.path("l")))
	require.Empty(t, foreign(), "nothing is lost with a file that is gone")
	lay(t, o.dir, file("a", "mine"), file("n.o", "mine"), file("d/new", ""), link("l", "d/new"), link("out", "/etc"))
	require.NoError(t, os.Mkdir(o.path("empty"), 0o700))
	before := there(t, o.dir)
	require.Equal(t, []string{"a", "d/new", "l", "n.o"}, foreign())
	require.Equal(t, before, there(t, o.dir))
	all := must(tree.Foreign(t.Context(), o.dir, o.rules, nil))(t)
	require.True(t, slices.IsSorted(all))
	_, err := tree.Foreign(t.Context(), o.path("none"), o.rules, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
