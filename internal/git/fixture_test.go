package git

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "passbook-git-test-")
	if err != nil {
		panic(err)
	}
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
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
	return must(filepath.EvalSymlinks(t.TempDir()))(t)
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

// writes and erases are changes of a folder.
func writes(fs files) func(*testing.T, string) {
	return func(t *testing.T, dir string) { t.Helper(); write(t, dir, fs) }
}

func erases(path string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { t.Helper(); erase(t, dir, path) }
}

// read returns all files below a folder, but git's own.
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
	return must(Open(t.Context(), dir))(t), dir
}

// branch makes a branch with one commit of these files, and returns the commit.
func branch(t *testing.T, dir, name string, fs files) string {
	t.Helper()
	run(t, dir, "checkout", "-q", "-b", name)
	write(t, dir, fs)
	run(t, dir, "add", "-A")
	run(t, dir, "commit", "-q", "-m", "mine")
	at := head(t, dir)
	run(t, dir, "checkout", "-q", "main")
	return at
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

// head is the commit that is checked out.
func head(t *testing.T, dir string) string { t.Helper(); return run(t, dir, "rev-parse", "HEAD") }

// status is that of git, on one line.
func status(t *testing.T, dir string) string {
	t.Helper()
	return words(run(t, dir, "status", "--porcelain"))
}

// words are the lines of a text, on one line.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
