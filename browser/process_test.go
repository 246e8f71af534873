package browser_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// processes gives the command lines of all processes that mention a folder.
func processes(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), folder) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// requireGone says that a call left no process and no file. A killed process
// may take a moment to be gone from the list.
func requireGone(t *testing.T, temp string) {
	t.Helper()
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "a profile was left")
	require.Empty(t, processes(t, temp), "a process was left")
}
