package repo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ignoring is a repository, and a folder of files to which its rules apply.
func ignoring(t *testing.T) (r *Repo, dir, at string) {
	t.Helper()
	r, source := initial(t, files{"a.txt": "a\n", "out/kept": "kept\n"})
	at = head(t, source)
	write(t, source, files{".git/info/exclude": "mine\n"})
	dir = t.TempDir()
	write(t, dir, files{
		".gitignore": "*.log\nout/\n", "mine": "m", "stray.log": "s", "out/kept": "k", "out/a": "1", "out/b/c": "2",
		"sub/.gitignore": "local\n", "sub/local": "l", "sub/new": "n",
	})
	return r, dir, at
}

func TestIgnored(t *testing.T) {
	r, dir, at := ignoring(t)
	paths := must(r.Ignored(t.Context(), dir, at))(t)
	require.ElementsMatch(t, []string{"mine", "stray.log", "out/a", "out/b/", "sub/local"}, paths)
}

func TestForceAddedFilesAreNotIgnored(t *testing.T) {
	r, dir, at := ignoring(t)
	must(Scratch(t.Context(), dir, r.Root(), at))(t)
	run(t, dir, "add", "-f", "stray.log", "out/b/c")
	run(t, dir, "rm", "-q", "--cached", "-f", "out/kept")
	paths := must(r.Ignored(t.Context(), dir, at))(t)
	require.ElementsMatch(t, []string{"mine", "out/a", "sub/local"}, paths)
}

func TestIgnoredWithBrokenRepository(t *testing.T) {
	ignored := []string{"mine", "out/a", "out/b/", "sub/local"}
	for name, want := range map[string][]string{"config": ignored, "index": append([]string{"stray.log"}, ignored...)} {
		r, dir, at := ignoring(t)
		must(Scratch(t.Context(), dir, r.Root(), at))(t)
		run(t, dir, "add", "-f", "stray.log")
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", name), []byte("[broken"), 0o600))
		paths, err := r.Ignored(t.Context(), dir, at)
		require.NoError(t, err, name)
		require.ElementsMatch(t, want, paths, name)
	}
}

func TestTracked(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n", "sub/über b": "b\n"})
	at := head(t, dir)
	write(t, dir, files{"new": "n"})
	run(t, dir, "add", "new")
	require.Equal(t, []string{"a.txt", "sub/über b"}, must(r.Tracked(t.Context(), at))(t))
}

func TestOriginOfImportedChanges(t *testing.T) {
	r, dir := initial(t, files{"a.txt": "a\n"})
	at := head(t, dir)
	write(t, dir, files{".env": "KEY=secret\n"})
	w := must(r.AddWorktree(t.Context(), filepath.Join(t.TempDir(), "w"), BranchPrefix+"x", at))(t)
	carried := must(w.ImportChanges(t.Context(), r, true))(t)
	for _, commit := range []string{at, carried} {
		require.Equal(t, at, must(r.Origin(t.Context(), commit))(t))
	}
}
