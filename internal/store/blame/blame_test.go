package blame_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/blame"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// saved puts trees into a store: each is the files of one moment, by path.
func saved(t *testing.T, moments ...map[string]string) (*store.Store, []tree.Tree) {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	var trees []tree.Tree
	for _, files := range moments {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, filepath.FromSlash(name))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		one, err := tree.Save(t.Context(), s, dir, tree.Rules{}, nil)
		require.NoError(t, err)
		trees = append(trees, one.Tree)
	}
	return s, trees
}

type files = map[string]string

func TestFiles(t *testing.T) {
	_, trees := saved(t,
		files{"kept": "k", "edited": "1", "gone": "g", "old/name": "content", "twice": "a", "again": "first"},
		files{"kept": "k", "edited": "2", "old/name": "content", "twice": "b", "new": "n"},
		files{"kept": "k", "edited": "2", "new/name": "content", "twice": "c", "again": "second"},
	)
	require.Equal(t, []blame.File{
		{Path: "again", Tree: 2, Kind: tree.Added},
		{Path: "edited", Tree: 1, Kind: tree.Changed},
		{Path: "gone", Tree: 1, Kind: tree.Removed, Deleted: true},
		{Path: "kept"},
		{Path: "new", Tree: 2, Kind: tree.Removed, Deleted: true},
		{Path: "new/name", Tree: 2, Kind: tree.Renamed, From: "old/name"},
		{Path: "old/name", Tree: 2, Kind: tree.Renamed, To: "new/name"},
		{Path: "twice", Tree: 2, Kind: tree.Changed},
	}, blame.Files(trees))
	require.Empty(t, blame.Files(nil))
}

// shown formats lines as "2:text".
func shown(text blame.Text) string {
	var out []string
	for _, l := range text.Lines {
		out = append(out, fmt.Sprintf("%d:%s", l.Tree, l.Text))
	}
	return strings.Join(out, " ")
}

func TestLines(t *testing.T) {
	for name, row := range map[string]struct {
		moments []map[string]string
		want    string
		paths   []string
	}{
		"one line edited": {
			[]map[string]string{{"f": "a\nb\nc\n"}, {"f": "a\nB\nc\n"}, {"f": "a\nB\nc\nd\n"}}, "0:a 1:B 0:c 2:d", nil,
		},
		"a reverted edit": {[]map[string]string{{"f": "a\n"}, {"f": "b\n"}, {"f": "a\n"}}, "2:a", nil},
		"begun later":     {[]map[string]string{{}, {"f": "a\n"}, {"f": "a\nb"}}, "1:a 2:b", nil},
		"renamed": {
			[]map[string]string{{"f0": "a\n"}, {"f0": "a\nb\n"}, {"f": "a\nb\n"}, {"f": "a\nb\nc\n"}}, "0:a 1:b 3:c",
			[]string{"f0"},
		},
		"renamed and edited": {
			[]map[string]string{{"f0": "a\nb\nc\n"}, {"f": "a\nB\nc\n"}}, "0:a 1:B 0:c", []string{"f0"},
		},
		"the likest of two": {
			[]map[string]string{{"x": "a\nb\n", "y": "a\nb\nc\n"}, {"f": "a\nb\nc\nd\n"}}, "0:a 0:b 0:c 1:d",
			[]string{"y"},
		},
		"hardly the same": {[]map[string]string{{"f0": "a\nb\nc\n"}, {"f": "a\nx\ny\nz\n"}}, "1:a 1:x 1:y 1:z",
			nil},
		"once it was not text": {[]map[string]string{{"f": "a\n"}, {"f": "\x00"}, {"f": "a\n"}}, "2:a", nil},
		"empty":                {[]map[string]string{{"f": ""}}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, trees := saved(t, row.moments...)
			got, err := blame.Lines(t.Context(), s, trees, "f")
			require.NoError(t, err)
			require.Equal(t, row.want, shown(got))
			require.Equal(t, row.paths, got.Paths)
			require.False(t, got.Binary)
		})
	}
}

func TestLinesOfWhatHasNone(t *testing.T) {
	s, trees := saved(t, files{"gone": "a\n"}, files{"picture": "\x89PNG\x00"})
	got, err := blame.Lines(t.Context(), s, trees, "picture")
	require.NoError(t, err)
	require.Equal(t, blame.Text{Binary: true}, got)
	_, err = blame.Lines(t.Context(), s, trees, "gone")
	require.ErrorIs(t, err, fs.ErrNotExist)
	lost, err := store.Open(t.Context(), "file://"+filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	_, err = blame.Lines(t.Context(), lost, trees, "picture")
	require.ErrorContains(t, err, "picture")
}
