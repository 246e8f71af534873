package repo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIgnoredIsWhatGitDoesNotTrack: a tracked file is part of the work, whatever .gitignore says of it.
func TestIgnoredIsWhatGitDoesNotTrack(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n", "forced.log": "kept\n"})
	write(t, dir, files{".gitignore": "*.log\nout/\n", "stray.log": "s", "out/a": "1", "out/b/c": "2", "sub/.gitignore": "local\n", "sub/local": "l", "sub/new": "n"})
	paths, err := Ignored(t.Context(), r.Root())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"stray.log", "out/", "sub/local"}, paths)

	paths, err = Ignored(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Empty(t, paths, "no repository")
}
