package git

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	_, dir := initial(t, files{"sub/deep/a.txt": "a\n"})
	link := filepath.Join(folder(t), "link")
	require.NoError(t, os.Symlink(dir, link))
	for _, from := range []string{dir, filepath.Join(dir, "sub/deep"), link} {
		r, err := Open(t.Context(), from)
		require.NoError(t, err, from)
		require.Equal(t, dir, r.Root(), from)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	bare, unborn := folder(t), folder(t)
	run(t, bare, "init", "-q", "--bare")
	run(t, unborn, "init", "-q")
	for _, row := range []struct {
		name, dir string
		want      error
		message   string
	}{
		{"no repository", folder(t), ErrNotRepository, "create a repository there (git init"},
		{"a bare one", bare, ErrBare, "use a clone with a checkout"},
		{"no commit", unborn, ErrUnborn, "create a first commit"},
		{"no folder", filepath.Join(unborn, "nowhere"), os.ErrNotExist, "nowhere"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Open(t.Context(), row.dir)
			require.ErrorIs(t, err, row.want)
			require.ErrorContains(t, err, row.message)
			require.ErrorContains(t, err, "open the git repository at "+row.dir)
		})
	}
}

func TestOpenWithoutGit(t *testing.T) {
	_, dir := initial(t, nil)
	t.Setenv("PATH", folder(t))
	_, err := Open(t.Context(), dir)
	require.ErrorIs(t, err, ErrNoGit)
	require.ErrorContains(t, err, "install git 2.30 or later")
}

func TestCallerGitVariablesAreIgnored(t *testing.T) {
	_, other := initial(t, files{"other.txt": "o\n"})
	_, dir := initial(t, files{"a.txt": "a\n"})
	t.Setenv("GIT_DIR", filepath.Join(other, ".git"))
	t.Setenv("GIT_WORK_TREE", other)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, "nowhere"))
	r := must(Open(t.Context(), dir))(t)
	require.Equal(t, dir, r.Root())
	require.Equal(t, Dirt{}, must(r.Dirt(t.Context()))(t))
}

func TestCancelledCommand(t *testing.T) {
	t.Parallel()
	r, _ := initial(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Dirt(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestHead(t *testing.T) {
	t.Parallel()
	r, dir := initial(t, files{"a.txt": "a\n"})
	id := head(t, dir)
	commit, branch, err := r.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, id, commit)
	require.Equal(t, "main", branch)

	run(t, dir, "checkout", "-q", "--detach")
	commit, branch, err = r.Head(t.Context())
	require.NoError(t, err)
	require.Equal(t, id, commit)
	require.Empty(t, branch)
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ output, wants string }{
		{"git version 2.30.0", ""},
		{"git version 2.39.5 (Apple Git-154)", ""},
		{"git version 3.0.1", ""},
		{"git version 2.29.9", "found git 2.29; install 2.30 or later"},
		{"git version 1.99.9", "found git 1.99; install 2.30 or later"},
		{"usage: gi", `unexpected output of git version: "usage: gi"`},
	} {
		err := checkVersion(row.output)
		if row.wants == "" {
			require.NoError(t, err, row.output)
			continue
		}
		require.ErrorIs(t, err, ErrNoGit, row.output)
		require.ErrorContains(t, err, row.wants)
	}
}
