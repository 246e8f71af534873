package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOracle changes the inputs of the small pipeline, and wants the run to follow the plain loop each time.
func TestOracle(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	seen := map[string]string{}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, folder string)
	}{
		{"as it is", func(*testing.T, string) {}},
		{"another insight", func(t *testing.T, folder string) {
			replace(t, folder, "research/creative-layouts.md", "insight: ", "insight: Turned round, ")
		}},
		{"two files swapped", func(t *testing.T, folder string) {
			replace(t, folder, "corpus-tiny.yaml",
				"      - R2: research/creative-layouts.md\n      - R3: research/density-dimensions.md\n",
				"      - R3: research/density-dimensions.md\n      - R2: research/creative-layouts.md\n")
		}},
	} {
		folder := filepath.Join(h.root, strings.ReplaceAll(c.name, " ", "-"))
		require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(tiny()))))
		c.change(t, folder)
		definition, dir := filepath.Join(folder, "corpus-tiny.yaml"), filepath.Join(folder, "run")
		o := foretell(t, definition)
		h.starter("run", "--config", definition, "--output-dir", dir)
		complete(t, dir)
		require.Equal(t, o.artifact(), artifactOf(t, dir), c.name)
		require.Empty(t, seen[o.artifact()], "%q gives what %q gave", c.name, seen[o.artifact()])
		seen[o.artifact()] = c.name
	}
}

// copyExample gives a folder with the examples that a test may change.
func (h *environment) copyExample() string {
	h.t.Helper()
	folder := h.dir("example")
	require.NoError(h.t, os.CopyFS(folder, os.DirFS(filepath.Dir(tiny()))))
	return folder
}

// replace changes a text in a file, where it must stand.
func replace(t *testing.T, folder, name, old, text string) {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	raw := string(read(t, path))
	require.Contains(t, raw, old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(raw, old, text, 1)), 0o600))
}
