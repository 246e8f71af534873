package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunArchivesTheCheckout starts another definition in the directory of a run with a git checkout. The checkout is
// archived with the run; its branch and uncommitted changes stay.
func TestRunArchivesTheCheckout(t *testing.T) {
	w := newTargetWorld(t)
	source, out := filepath.Join(w.root, "source"), filepath.Join(w.root, "out")
	git := func(dir string, args ...string) string {
		raw, err := exec.CommandContext(t.Context(), "git",
			append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@localhost"},
				args...)...).CombinedOutput()
		require.NoError(t, err, "%v: %s", args, raw)
		return strings.TrimSpace(string(raw))
	}
	const definition = "pipeline: NAME\nagent: {run: [scripted]}\nworkspace: {git: worktree}\nroles: {worker: " +
		"{prompt: w.md, gives: changes}}\nstages: [{name: once, steps: [{role: worker}]}]\n"
	require.NoError(t, os.MkdirAll(source, 0o755))
	for name, text := range map[string]string{"one.yaml": strings.Replace(definition, "NAME", "one", 1),
		"two.yaml": strings.NewReplacer("NAME", "two", "once", "again").Replace(definition), "w.md": "Work.\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(text), 0o644))
	}
	git(source, "init", "-q")
	git(source, "add", ".")
	git(source, "commit", "-q", "-m", "base")

	output, code := w.here("run", "--config", filepath.Join(source, "one.yaml"), "--output-dir", out, "--detach")
	require.Equal(t, 0, code, output)
	checkout := filepath.Join(out, "workspace")
	branch := git(checkout, "branch", "--show-current")
	git(checkout, "commit", "-q", "--allow-empty", "-m", "not delivered")
	tip := git(checkout, "rev-parse", "HEAD")
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "precious.txt"), []byte("precious\n"), 0o644))

	output, code = w.here("run", "--config", filepath.Join(source, "two.yaml"), "--output-dir", out, "--detach")
	require.Equal(t, 0, code, output)
	old, err := filepath.Glob(filepath.Join(out, "_orchestrator", "archives", "*", "workspace", "precious.txt"))
	require.NoError(t, err)
	require.Len(t, old, 1)
	require.Equal(t, tip, git(source, "rev-parse", branch))
	require.Equal(t, branch, git(filepath.Dir(old[0]), "branch", "--show-current"))
	require.NotEqual(t, branch, git(checkout, "branch", "--show-current"))
}

// TestDemoTurnsChecksItsTarget requires a usable directory before the project of the demo is created.
func TestDemoTurnsChecksItsTarget(t *testing.T) {
	w := newTargetWorld(t)
	out := filepath.Join(w.root, "mine")
	require.NoError(t, os.MkdirAll(out, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(out, "precious.txt"), []byte("precious\n"), 0o644))
	before := everything(t, w.root)
	output, code := w.here("demo", "turns", "--output-dir", out)
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "in the way: precious.txt")
	require.Equal(t, before, everything(t, w.root))
}
