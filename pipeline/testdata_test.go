package pipeline

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var pathShape = regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_./-]*\.(?:yaml|md|css|html)\b`)

// folderFor is a folder with every file that a definition names.
func folderFor(src []byte) fstest.MapFS {
	folder := fstest.MapFS{}
	for _, p := range pathShape.FindAllString(string(src), -1) {
		folder[p] = &fstest.MapFile{Data: []byte("text of " + p + "\n")}
	}
	return folder
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return src
}

// parsed is the definition of a source without problems.
func parsed(t testing.TB, src []byte) *Definition {
	t.Helper()
	def, problems := Parse("x.yaml", src, folderFor(src))
	require.Empty(t, problems)
	require.NotNil(t, def)
	return def
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// golden compares text with a file that people read.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	require.Equal(t, string(read(t, name)), got)
}

// byLine is what problems say, without columns: those are in the golden files.
func byLine(problems Problems) string {
	problems = slices.Clone(problems)
	for i := range problems {
		problems[i].Column = 0
	}
	return problems.Error()
}
