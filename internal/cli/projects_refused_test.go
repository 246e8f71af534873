package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

const shopPipeline = `pipeline: shop
projects:
  library: {source: source, pipeline: git.yaml}
  service: {source: SERVICE, pipeline: git.yaml, needs: [library]}
stages:
  - {name: contract, steps: [{run: 'true'}]}
`

// TestRefusedRunAcrossProjects starts nothing and writes nothing if any of its projects cannot be started.
func TestRefusedRunAcrossProjects(t *testing.T) {
	w := newTargetWorld(t)
	w.workspaces(t)
	for name, row := range map[string]struct {
		service string
		given   func(dir string)
		want    string
		code    int
	}{
		"a source is missing": {"elsewhere", func(string) {}, "project service: ", exitUsage},
		"a source is no repository": {"files-only", func(string) {
			require.NoError(t, os.Mkdir(filepath.Join(w.root, "files-only"), 0o755))
		}, "project service: ", exitUsage},
		"a folder is in the way": {"source", func(dir string) {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "service"), 0o755))
		}, "it is not empty (in the way: service/)", exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(w.root, filepath.Base(t.Name()))
			config := w.shop(t, row.service)
			row.given(dir)
			before, started := below(t, dir), w.temporal.count()
			output, code := w.here("run", "--config", config, "--task", "Change it", "--output-dir", dir, "--detach")
			require.Equal(t, row.code, code, output)
			require.Contains(t, output, row.want)
			require.Equal(t, before, below(t, dir))
			require.Equal(t, started, w.temporal.count())
			require.Empty(t, gitIn(t, filepath.Join(w.root, "source"), "branch", "--list", "passbook/*"))
		})
	}
}

// shop writes a definition of two projects.
func (w *targetWorld) shop(t *testing.T, service string) (config string) {
	t.Helper()
	config = filepath.Join(w.root, "shop.yaml")
	text := []byte(strings.ReplaceAll(shopPipeline, "SERVICE", service))
	require.NoError(t, os.WriteFile(config, text, 0o600))
	return config
}

// TestDirectoryOfProjectIsKept starts no run in the directory of a project, whatever the state of its own run, and
// continues no run across projects whose project has a directory of another run.
func TestDirectoryOfProjectIsKept(t *testing.T) {
	w := newTargetWorld(t)
	w.workspaces(t)
	parent, member := filepath.Join(w.root, "across"), filepath.Join(w.root, "across", "library")
	claim := run.Claim{Version: run.ClaimVersion, RunID: "across-1", ThreadID: "across-1", Pipeline: "shop",
		Projects: []string{"library", "service"}}
	require.NoError(t, projector.At(parent).Take(claim))
	child := claim
	child.RunID, child.Projects, child.MemberOf = "library-1", nil, run.Membership{RunID: "across-1", Alias: "library"}
	require.NoError(t, projector.At(member).Take(child))
	for _, args := range [][]string{
		{"git.yaml", member}, {"git.yaml", member, "--fresh"}, {"folder.yaml", member},
	} {
		before, started := below(t, parent), w.temporal.count()
		output, code := w.here(append([]string{"run", "--task", "Change it", "--detach", "--source", "source", "--config",
			args[0], "--output-dir"}, args[1:]...)...)
		require.Equal(t, exitUsage, code, output)
		require.Contains(t, output, "is the directory of project library of run across-1; nothing was changed")
		require.Equal(t, before, below(t, parent))
		require.Equal(t, started, w.temporal.count())
	}
}

// below is everything below a folder, which may be missing.
func below(t *testing.T, folder string) map[string]string {
	t.Helper()
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return everything(t, folder)
}
