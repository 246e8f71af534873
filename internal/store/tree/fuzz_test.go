package tree

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

// FuzzNode: a node that is taken names nothing outside of its folder, and has one spelling.
func FuzzNode(f *testing.F) {
	for _, node := range []string{inRoot, inA, empty, shown} {
		f.Add("d", []byte(node))
	}
	f.Fuzz(func(t *testing.T, dir string, data []byte) {
		children, err := decodeNode(dir, data)
		if err != nil || checkPath(dir) != nil {
			return
		}
		require.True(t, bytes.Equal(data, encodeNode(children)))
		for _, c := range children {
			require.Equal(t, dir, parent(c.Path))
		}
	})
}

// FuzzManifest: a tree that is taken names nothing outside, has one spelling,
// is loaded from its nodes, and its symlinks, checked out, lead nowhere else. The
// file system decides where they lead.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(shown))
	for _, links := range [][2]string{
		{".", "d/../x"}, {"d/d", "../l"}, {"./d//../../x", "l/.."}, {"..", "/"}, {"../m", "d/l"},
	} {
		f.Add(
			[]byte(
				"{\"version\":1,\n\"entries\":[\n{\"path\":\"d\",\"mode\":\"folder\",\"perm\":\"0755\"},\n" +
					"{\"path\":\"d/l\",\"mode\":\"symlink\",\"link\":\"" +
					links[0] + "\"},\n{\"path\":\"m\",\"mode\":\"symlink\",\"link\":\"" + links[1] + "\"}\n]}\n",
			),
		)
	}
	s, err := store.Open(f.Context(), "file://"+f.TempDir())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ReadManifest(data)
		tr, ok := unsigned(data)
		if !ok {
			return
		}
		signed, err := ReadManifest(tr.Manifest())
		require.NoError(t, err)
		require.Equal(t, tr, signed)
		root, nodes := tr.nodes()
		for _, node := range nodes {
			_, err := s.Put(t.Context(), node)
			require.NoError(t, err)
		}
		loaded, err := Load(t.Context(), s, root)
		require.NoError(t, err)
		require.Equal(t, tr, loaded)
		requireInside(t, tr)
	})
}

// unsigned returns the tree of a manifest without a check of its digest, which no fuzzer guesses.
func unsigned(data []byte) (Tree, bool) {
	h, err := parse(data)
	if err != nil {
		return Tree{}, false
	}
	t := Tree{Entries: []Entry{}}
	for _, l := range h.Entries {
		e, err := l.entry(l.Path + string(l.PathB64))
		if err != nil {
			return Tree{}, false
		}
		t.Entries = append(t.Entries, e)
	}
	return t, t.check() == nil
}

func requireInside(t *testing.T, tr Tree) {
	t.Helper()
	base := t.TempDir()
	root := filepath.Join(base, "root")
	require.NoError(t, os.Mkdir(root, 0o700))
	var links []string
	for _, e := range tr.Entries {
		require.True(t, filepath.IsLocal(e.Path) && filepath.Clean(e.Path) == e.Path, "%q", e.Path)
		require.NotContains(t, strings.Split(strings.ToLower(e.Path), "/"), ".git")
		var err error
		path := filepath.Join(root, e.Path)
		switch e.Mode {
		case ModeFolder:
			err = os.Mkdir(path, 0o700)
		case ModeSymlink:
			links = append(links, path)
			err = os.Symlink(e.Link, path)
		}
		if err != nil {
			return // a name that this file system does not take
		}
	}
	for _, link := range links {
		if to, err := filepath.EvalSymlinks(link); err == nil {
			require.True(t, to == root || strings.HasPrefix(to, root+"/"), "%q leads to %q", link, to)
		}
	}
}

// FuzzPattern: no text is a panic, and a path whose every byte is escaped is a
// pattern for that path.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"*.log", "!a/**/b/", `\{x`, "[a-", "**", "/", "[[:x:]]"} {
		f.Add(text, "a/b.log")
	}
	f.Add("a", "\xff {*}/[b]!#?\\ ")
	f.Fuzz(func(t *testing.T, text, path string) {
		if p, err := parsePattern(text); err == nil {
			p.fits(path, true)
		}
		if checkPath(path) != nil || !utf8.ValidString(path) {
			return
		}
		escaped := "/"
		for _, r := range path {
			if r != '/' {
				escaped += `\`
			}
			escaped += string(r)
		}
		p, err := parsePattern(escaped)
		require.NoError(t, err, "%q", escaped)
		require.True(t, p.fits(path, false), "%q %q", escaped, path)
		require.False(t, p.fits(path+"x", false), "%q %q", escaped, path)
	})
}
