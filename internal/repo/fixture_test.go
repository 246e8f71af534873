package repo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "passbook-repo-test-")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if dir := os.Getenv("PASSBOOK_TEST_APPLY"); dir != "" {
		applyAndDie(dir)
	}
	code := m.Run()
	if err := os.RemoveAll(home); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run runs git as the user would, and returns what it prints, trimmed.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test",
		"GIT_COMMITTER_EMAIL=test@localhost")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

// folder is an empty folder, without symbolic links in its path.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

// files are written below a folder: path to content.
type files map[string]string

func write(t *testing.T, dir string, fs files) {
	t.Helper()
	for path, content := range fs {
		full := filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(content), 0o644))
	}
}

func erase(t *testing.T, dir, path string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(dir, path)))
}

// read gives all files below a folder, but git's own.
func read(t *testing.T, dir string) files {
	t.Helper()
	found := files{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".git":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.Type()&os.ModeSymlink != 0 {
			link, err := os.Readlink(path)
			found[rel] = "-> " + link
			return err
		}
		content, err := os.ReadFile(path)
		found[rel] = string(content)
		return err
	}))
	return found
}

// initial makes a repository with one commit of these files on branch main.
func initial(t *testing.T, fs files) (*Repo, string) {
	t.Helper()
	dir := folder(t)
	run(t, dir, "init", "-q", "-b", "main")
	write(t, dir, fs)
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "--allow-empty", "-m", "first")
	r, err := Open(t.Context(), dir)
	require.NoError(t, err)
	return r, dir
}

// worktree makes a run's checkout of the repository's HEAD.
func worktree(t *testing.T, r *Repo) (w *Worktree, base string) {
	t.Helper()
	base, _, err := r.Head(t.Context())
	require.NoError(t, err)
	w, err = r.AddWorktree(t.Context(), filepath.Join(folder(t), "workspace"), "passbook/r1", base)
	require.NoError(t, err)
	return w, base
}

// patchSince returns the changes since a commit as a patch.
func patchSince(ctx context.Context, w *Worktree, base string, paths ...string) ([]byte, error) {
	c, err := w.Since(ctx, base)
	if err != nil {
		return nil, err
	}
	return c.Patch(ctx, paths...)
}

// statSince returns the changes since a commit as a table.
func statSince(ctx context.Context, w *Worktree, base string) (string, error) {
	c, err := w.Since(ctx, base)
	if err != nil {
		return "", err
	}
	return c.Stat(ctx)
}
