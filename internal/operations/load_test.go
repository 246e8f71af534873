package operations_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
)

// TestPipesAreNotRead: a named pipe without a writer would block the command.
func TestPipesAreNotRead(t *testing.T) {
	const text = "pipeline: p\nagent: {run: [scripted], reply: claude-json}\nartifact: {file: page.html, seed: " +
		"seed.html}\n" +
		"roles:\n  b: {prompt: prompt.md, gives: artifact}\nstages:\n  - {name: s, steps: [{role: b}]}\n"
	for name, want := range map[string]string{
		"p.yaml":    "p.yaml: it is not a regular file",
		"prompt.md": "names prompt.md, which is not a regular file",
		"seed.html": "names seed.html, which is not a regular file",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{"p.yaml": text, "prompt.md": "Do it.", "seed.html": "<p>"} {
				if file == name {
					require.NoError(t, syscall.Mkfifo(filepath.Join(dir, file), 0o600))
				} else {
					require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
				}
			}
			_, err := operations.LoadFile(filepath.Join(dir, "p.yaml"))
			require.ErrorContains(t, err, want)
		})
	}
}
