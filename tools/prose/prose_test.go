package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBlankCodeKeepsTextInPlace(t *testing.T) {
	source := strings.Join([]string{
		"// Package p does one thing.",
		"package p",
		`import "a b/c"`,
		"type t struct { F int `json:\"two words\"` } /* and more */",
		`const message = "two\nwords"; const key = "word"`,
		"var raw = `über two", "lines`", "",
	}, "\n")
	got, err := blankCode("p.go", []byte(source))
	require.NoError(t, err)
	require.Len(t, got, len(source))
	want := []string{
		"   Package p does one thing.",
		"", "",
		"                                              and more */",
		`                "two  words"`,
		"           über two", "lines", "",
	}
	for i, line := range strings.Split(string(got), "\n") {
		require.Equal(t, want[i], strings.TrimRight(line, " "), "line %d", i+1)
	}
}

func TestPendingPathsAreSkippedUntilFixed(t *testing.T) {
	list := filepath.Join(t.TempDir(), pendingFile)
	require.NoError(t, os.WriteFile(list, []byte("# why\ndocs/a.md\ngone.go\nnew/\n"), 0o600))
	p, err := readPending(list)
	require.NoError(t, err)
	for path, want := range map[string]bool{"docs/a.md": true, "a.md": false, "new/x.go": true, "docs/a.md.go": false,
		"docs/b.md": false} {
		require.Equal(t, want, p.has(path), path)
	}
	require.NoError(t, p.prune([]finding{{Path: "docs/b.md"}, {Path: "new/x.go"}}))
	left, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, "# why\nnew/\n", string(left))
}
