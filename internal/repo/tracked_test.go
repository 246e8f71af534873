package repo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ignoring is a repository and a folder of files that its rules speak of.
func ignoring(t *testing.T) (r *Repo, dir, head string) {
	t.Helper()
	r, source := initial(t, files{"a.txt": "a\n", "out/kept": "kept\n"})
	head = run(t, source, "rev-parse", "HEAD")
	write(t, source, files{".git/info/exclude": "mine\n"})
	dir = t.TempDir()
	write(t, dir, files{
		".gitignore": "*.log\nout/\n", "mine": "m", "stray.log": "s", "out/kept": "k", "out/a": "1", "out/b/c": "2",
		"sub/.gitignore": "local\n", "sub/local": "l", "sub/new": "n",
	})
	return r, dir, head
}

func TestIgnored(t *testing.T) {
	r, dir, head := ignoring(t)
	paths, err := r.Ignored(t.Context(), dir, head)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"mine", "stray.log", "out/a", "out/b/", "sub/local"}, paths)
}

func TestForceAddedFilesAreNotIgnored(t *testing.T) {
	r, dir, head := ignoring(t)
	_, err := Scratch(t.Context(), dir, r.Root(), head)
	require.NoError(t, err)
	run(t, dir, "add", "-f", "stray.log", "out/b/c")
	run(t, dir, "rm", "-q", "--cached", "-f", "out/kept")
	paths, err := r.Ignored(t.Context(), dir, head)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"mine", "out/a", "sub/local"}, paths)
}

func TestIgnoredWithBrokenRepository(t *testing.T) {
	ignored := []string{"mine", "out/a", "out/b/", "sub/local"}
	for name, want := range map[string][]string{"config": ignored, "index": append([]string{"stray.log"}, ignored...)} {
		r, dir, head := ignoring(t)
		_, err := Scratch(t.Context(), dir, r.Root(), head)
		require.NoError(t, err)
		run(t, dir, "add", "-f", "stray.log")
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", name), []byte("[broken"), 0o600))
		paths, err := r.Ignored(t.Context(), dir, head)
		require.NoError(t, err, name)
		require.ElementsMatch(t, want, paths, name)
	}
}

func TestTracked(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n", "sub/über b": "b\n"})
	head := run(t, dir, "rev-parse", "HEAD")
	write(t, dir, files{"new": "n"})
	run(t, dir, "add", "new")
	paths, err := r.Tracked(t.Context(), head)
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt", "sub/über b"}, paths)
}

func TestOriginOfImportedChanges(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n"})
	head := run(t, dir, "rev-parse", "HEAD")
	write(t, dir, files{".env": "KEY=secret\n"})
	w, err := r.AddWorktree(t.Context(), filepath.Join(t.TempDir(), "w"), BranchPrefix+"x", head)
	require.NoError(t, err)
	carried, err := w.ImportChanges(t.Context(), r, true)
	require.NoError(t, err)
	for _, commit := range []string{head, carried} {
		origin, err := r.Origin(t.Context(), commit)
		require.NoError(t, err)
		require.Equal(t, head, origin)
	}
}
