package tree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

func TestPathsAreLeftOutExactly(t *testing.T) {
	s, err := Rules{Ignore: []string{"!again"}, Paths: []string{"a*b?", "sub/[x]", " c:]", "again"}}.compile()
	require.NoError(t, err)
	for path, want := range map[string]bool{
		"a*b?": true, "aXbY": false, "sub/a*b?": false, "sub/[x]": true, "sub/x": false, " c:]": true, "again": false,
	} {
		require.Equal(t, want, s.ignored(path, false), path)
	}
	require.False(t, s.ignored("a*b?", true), "a folder of that name is none")
}

// TestPathsAreNotPatterns: each file is compared with every pattern, so their number must not grow with the paths.
func TestPathsAreNotPatterns(t *testing.T) {
	s := must(Rules{Ignore: []string{"*.tmp"}, Paths: []string{"out/0.o", "out/1.o"}}.compile())(t)
	require.Len(t, s.ignore, 1)
	require.Len(t, s.secrets, len(secrets))
	require.True(t, s.ignored("out/1.o", false))
	require.False(t, s.ignored("out/2.o", false))
}

// TestTrackedFilesAreNotSecrets: also in a folder whose name is one, whose other files are.
func TestTrackedFilesAreNotSecrets(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"config/tls.key", "config/other.key", ".aws/sub/known", ".aws/sub/new", ".aws/new/file", ".azure/file",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	s := must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
	saved := must(Save(t.Context(), s, dir, Rules{Tracked: []string{"config/tls.key", ".aws/sub/known"}}, nil))(t)
	var files []string
	for _, e := range saved.Tree.Entries {
		if e.IsFile() {
			files = append(files, e.Path)
		}
	}
	require.Equal(t, []string{".aws/sub/known", "config/tls.key"}, files)
	require.Equal(t, []Skipped{
		{".aws/new", true, ReasonSecret}, {".aws/sub/new", false, ReasonSecret}, {".azure", true, ReasonSecret},
		{"config/other.key", false, ReasonSecret},
	}, saved.Skipped)
}
