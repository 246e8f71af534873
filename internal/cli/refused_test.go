package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/passbook-run/passbook/internal/store"
)

const folderPipeline = `pipeline: tree
agent: {run: [scripted], reply: claude-json}
workspace: WORKSPACE
roles:
  builder: {prompt: prompt.md, gives: changes}
stages:
  - name: build
    steps: [{role: builder}]
`

// workspaces writes definitions that work on a folder and on a git repository, and creates the repository.
func (w *targetWorld) workspaces(t *testing.T) (source string) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	source = filepath.Join(w.root, "source")
	require.NoError(t, os.Mkdir(source, 0o755))
	for name, text := range map[string]string{
		"folder.yaml": strings.Replace(folderPipeline, "WORKSPACE", "{dir: files}", 1),
		"git.yaml":    strings.Replace(folderPipeline, "WORKSPACE", "{git: worktree}", 1), "source/a.txt": "a\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o644))
	}
	gitIn(t, source, "init", "-q")
	gitIn(t, source, "add", "-A")
	gitIn(t, source, "-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "Begin")
	return source
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// TestFollowUpStartsFromResultOfFolder starts a follow-up from the result of a run, also if its folder is missing.
func TestFollowUpStartsFromResultOfFolder(t *testing.T) {
	w := newTargetWorld(t)
	w.workspaces(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.root, "files", "made.txt"), []byte("changed since\n"), 0o644))
	next := filepath.Join(w.root, "next")
	output, code := w.here("run", "--follow-up", "5678-tree", "--config", "folder.yaml", "--task", "More",
		"--output-dir",
		next, "--detach")
	require.Equal(t, 0, code, output)
	raw, err := os.ReadFile(filepath.Join(next, "workspace", "made.txt"))
	require.NoError(t, err)
	require.Equal(t, "made\n", string(raw))
	require.Equal(t, 1, w.temporal.count())
	claim, err := projector.At(next).Claim()
	require.NoError(t, err)
	require.Equal(t, "5678-tree", claim.ThreadID)
}

// TestRefusedStartLeavesNothing finds no directory, claim, checkout or branch after a refusal. Blobs of inputs may
// stay.
func TestRefusedStartLeavesNothing(t *testing.T) {
	w := newTargetWorld(t)
	source := w.workspaces(t)
	gitIn(t, source, "branch", "passbook") // so that there can be no branch passbook/<id>
	free := filepath.Join(w.root, "free")
	require.NoError(t, os.Mkdir(free, 0o755))
	gitIn(t, w.root, "clone", "-q", source, "free/clone")
	empty := filepath.Join(w.root, "empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	follow := []string{"run", "--follow-up", "5678-tree", "--task", "More", "--detach", "--output-dir"}
	for name, row := range map[string]struct {
		args    []string
		refuse  error
		message string
	}{
		"a folder followed up with git": {append(follow, "up/next", "--config", "git.yaml"), nil,
			"worked on a folder"},
		"a checkout that cannot be made": {[]string{"run", "--config", "git.yaml", "--source", source,
			"--detach", "--output-dir", "new/run"}, nil, "passbook"},
		"likewise, in an empty directory": {[]string{"run", "--config", "git.yaml", "--source", source,
			"--detach", "--output-dir", empty}, nil, "passbook"},
		"the server refuses a run": {[]string{"run", "--config", "small.yaml", "--detach", "--output-dir",
			"new/run"}, status.Error(codes.InvalidArgument, "no such queue"), "no such queue"},
		"the server refuses one with a checkout": {[]string{"run", "--config", "git.yaml", "--source", "free/clone",
			"--detach", "--output-dir", "new/run"}, status.Error(codes.PermissionDenied, "not yours"), "not yours"},
		"the server refuses a follow-up": {append(follow, "new/run", "--config", "folder.yaml"),
			status.Error(codes.InvalidArgument, "no such queue"), "no such queue"},
		"the server refuses a fork": {[]string{"fork", "1234-page", "--from", "cp-1", "--request", "k",
			"--detach"},
			status.Error(codes.InvalidArgument, "no such queue"), "no such queue"},
	} {
		t.Run(name, func(t *testing.T) {
			w.temporal.refuse = row.refuse
			before, folders := w.digests(t), w.folders(t)
			output, code := w.here(row.args...)
			require.NotEqual(t, 0, code, output)
			require.Contains(t, output, row.message)
			require.Equal(t, before, w.digests(t))
			require.Equal(t, folders, w.folders(t))
			for _, repository := range []string{source, "free/clone"} {
				require.NotContains(t, gitIn(t, repository, "branch", "--list", "passbook/*"), "passbook/")
				require.Equal(t, 1, strings.Count(gitIn(t, repository, "worktree", "list", "--porcelain"), "worktree "))
			}
		})
	}
}

// digests returns the digests of all files except blobs of the store and files that a host or repository has once.
func (w *targetWorld) digests(t *testing.T) map[string]string {
	t.Helper()
	all := everything(t, w.root)
	for path, text := range all {
		if all[path] = string(store.DigestOf([]byte(text))); strings.HasPrefix(path, "state/store/blobs/") ||
			path == "state/host-id" || path == "state/grant.key" || path == "state/identity.key" ||
			strings.HasSuffix(path, "/.git/passbook-worktrees-lock") {
			delete(all, path)
		}
	}
	return all
}

// folders lists all folders except those of the store and of git.
func (w *targetWorld) folders(t *testing.T) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !e.IsDir() {
			return nil
		}
		if name := relative(t, w.root, path); strings.HasPrefix(name, "state/") || e.Name() == ".git" {
			return fs.SkipDir
		}
		fi, ierr := e.Info()
		all = append(all, fi.Mode().String()+" "+path)
		return errors.Join(err, ierr)
	}))
	return all
}

// TestRepeatedRequestIsOneRun attaches a repeated request to its run, and refuses a different one.
func TestRepeatedRequestIsOneRun(t *testing.T) {
	w := newTargetWorld(t)
	call := func(more ...string) (string, int) {
		return w.here(append([]string{"fork", "1234-page", "--from", "cp-1", "--request", "k", "--detach"}, more...)...)
	}
	output, code := call("--budget", "3")
	require.Equal(t, 0, code, output)
	before, started := w.digests(t), w.temporal.count()
	for _, more := range [][]string{{"--budget", "7"}, {}, {"--budget", "7", "--output-dir", "elsewhere"}} {
		output, code = call(more...)
		require.Equal(t, 2, code, output)
		require.Contains(t, output, "made from the same checkpoint with another budget")
		require.Contains(t, output, "Name another --request, or attach to that run: starter attach ")
	}
	require.Equal(t, before, w.digests(t))
	require.Equal(t, started, w.temporal.count())
	id := strings.Fields(output[strings.Index(output, "starter attach "):])[2]
	output, code = call("--budget", "3")
	require.Equal(t, 0, code, output)
	require.Contains(t, output, id)
}

// TestRefusedDefinitionLeavesNothing starts definitions with mistakes on a new machine: nothing is created.
func TestRefusedDefinitionLeavesNothing(t *testing.T) {
	root := t.TempDir()
	t.Setenv("PASSBOOK_STATE_DIR", filepath.Join(root, "state"))
	t.Setenv("PASSBOOK_RUN_ROOT", filepath.Join(root, "runs"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(root, "config"))
	t.Setenv("HOME", root)
	t.Chdir(root)
	bad := filepath.Join(root, "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("pipeline: bad\nstagse: []\n"), 0o644))
	before := everything(t, root)
	for _, args := range [][]string{
		{"run", bad}, {"run", filepath.Join(root, "missing.yaml")},
		{"schedule", "create", "nightly", "--cron", "0 3 * * *", "--config", bad},
	} {
		var out bytes.Buffer
		require.Equal(t, 2, Main(args, strings.NewReader(""), &out, &out), out.String())
		require.Contains(t, out.String(), filepath.Base(args[len(args)-1]))
		require.Equal(t, before, everything(t, root))
		require.NoDirExists(t, filepath.Join(root, "state"))
	}
}
