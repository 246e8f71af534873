package tree

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzLoad: a manifest that is taken names nothing outside of a tree, has one
// spelling, and its symlinks, laid down, lead nowhere else. The file system
// itself says where they lead.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(manifest1))
	f.Add([]byte(empty))
	for _, links := range [][2]string{{".", "d/../x"}, {"d/d", "../l"}, {"./d//../../x", "l/.."}, {"..", "/"}} {
		f.Add([]byte("{\"version\":1,\n\"entries\":[\n{\"path\":\"d\",\"mode\":\"folder\",\"perm\":\"0755\"},\n{\"path\":\"d/l\",\"mode\":\"symlink\",\"link\":\"" +
			links[0] + "\"},\n{\"path\":\"m\",\"mode\":\"symlink\",\"link\":\"" + links[1] + "\"}\n]}\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ReadManifest(data)
		tr, err := decode(data)
		if err != nil {
			return
		}
		require.True(t, bytes.Equal(data, tr.encode()))
		shown, err := ReadManifest(tr.Manifest())
		require.NoError(t, err)
		require.Equal(t, tr, shown)
		requireInside(t, tr)
	})
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
