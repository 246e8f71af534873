package tree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/pipeline"
)

func TestTreesAreLimited(t *testing.T) {
	limits := pipeline.TreeLimits{Size: 2e9, Files: 10}
	for _, row := range []struct {
		name    string
		fill    func(t *testing.T, dir string)
		partial bool
		want    string // in the error; empty: none
	}{
		{"within", func(t *testing.T, dir string) { sized(t, dir, "a", 1000) }, false, ""},
		{"a sparse file", func(t *testing.T, dir string) {
			sized(t, dir, "small", 1000)
			sized(t, dir, "sparse.bin", 3e9)
		}, false, "the files are 3000001KB in 2 entries, more than limits.tree allows (2GB in 10); the largest: " +
			"sparse.bin (3GB), small (1KB); "},
		{"ignored files do not count", func(t *testing.T, dir string) { sized(t, dir, "x.ignored", 3e9) }, false, ""},
		{"special files do not count", func(t *testing.T, dir string) {
			for n := range 11 {
				require.NoError(t, syscall.Mkfifo(filepath.Join(dir, fmt.Sprint(n)), 0o600))
			}
		}, false, ""},
		{"files", func(t *testing.T, dir string) { several(t, dir, 11) }, false, "11KB in 11 entries"},
		{"very many files", func(t *testing.T, dir string) { several(t, dir, 1100) }, true, "at least "},
		{"very many folders", func(t *testing.T, dir string) {
			for n := range 20 {
				below := filepath.Join(dir, fmt.Sprint(n))
				require.NoError(t, os.Mkdir(below, 0o700))
				sized(t, below, "f", 1)
			}
		}, true, "at least "},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, blobs := t.TempDir(), t.TempDir()
			s := must(store.Open(t.Context(), "file://"+blobs))(t)
			row.fill(t, dir)
			_, err := tree.Save(t.Context(), s, dir, tree.Rules{Ignore: []string{"*.ignored"}, Limits: limits}, nil)
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			var folder *tree.FolderError
			require.ErrorAs(t, err, &folder, "a retry fails too")
			var exceeded *tree.LimitError
			require.ErrorAs(t, err, &exceeded)
			require.Equal(t, row.partial, exceeded.Partial)
			stored := must(os.ReadDir(blobs))(t)
			require.Empty(t, stored, "no part of the tree is stored")
		})
	}
}

func sized(t *testing.T, dir, name string, size int64) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, size))
}

func several(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		sized(t, dir, fmt.Sprintf("f%04d", i), 1000)
	}
}
