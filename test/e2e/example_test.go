package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tiny is the small example in the checkout.
func tiny() string { return filepath.Join(project, "examples", "corpus", "corpus-tiny.yaml") }

// replace changes a text in a file, which must contain it.
func replace(t *testing.T, folder, name, old, text string) {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	raw := string(read(t, path))
	require.Contains(t, raw, old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(raw, old, text, 1)), 0o600))
}

// definition writes a pipeline and its files to a folder, and returns the path of the pipeline. AGENT in it is the path
// of agent.sh.
func (h *environment) definition(folder, pipeline string, files map[string]string) string {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(folder, 0o700))
	name := filepath.Join(folder, "pipeline.yaml")
	text := strings.ReplaceAll(pipeline, "AGENT", filepath.Join(folder, "agent.sh"))
	require.NoError(h.t, os.WriteFile(name, []byte(text), 0o600))
	for file, text := range files {
		path := filepath.Join(folder, file)
		require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(h.t, os.WriteFile(path, []byte(text), 0o700))
	}
	return name
}
