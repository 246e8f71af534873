package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Golden compares a text with the reviewed file testdata/NAME.txt of the package, which update rewrites.
func Golden(t testing.TB, update bool, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "if it is meant, run go test in this package with -update")
}
