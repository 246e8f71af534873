package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReducedServerHasNoClouds prepares the source in an empty cache, four times concurrently.
func TestReducedServerHasNoClouds(t *testing.T) {
	cache := t.TempDir()
	var paths [4]string
	var wait sync.WaitGroup
	for i := range paths {
		wait.Go(func() {
			var err error
			if paths[i], err = reduce("..", cache); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, p := range paths {
		require.Equal(t, paths[0], p)
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Dir(filepath.Dir(paths[0]))}, left, "only the complete copy is left")

	cmd := exec.Command("go", "list", "-deps", "..")
	cmd.Env = append(os.Environ(), "GOWORK="+paths[0])
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	imported := strings.Fields(string(out))
	require.Contains(t, imported, "go.temporal.io/server/common/archiver/s3store", "its name is still there")
	for _, p := range imported {
		for _, cloud := range []string{"github.com/aws/", "cloud.google.com/", "k8s.io/"} {
			require.False(t, strings.HasPrefix(p, cloud), "the reduced server imports %s", p)
		}
	}
}

// TestExchangeRefuses shows the errors after an update of the server, and of a new file that replaces another.
func TestExchangeRefuses(t *testing.T) {
	dir, pkg := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(filepath.Join(dir, "reduce", "with", "a.go"), "package p\n")
	write(filepath.Join(pkg, "old.go"), "package p\n")
	require.ErrorContains(t, exchange(dir, part{without: []string{"gone*.go"}, with: "with"}, pkg),
		"no Go file matches gone*.go in this version; correct the table in devserver/reduce/main.go")
	require.ErrorContains(t, exchange(dir, part{without: []string{"old.go"}, with: "with"}, pkg),
		`reduce/with/a.go does not begin with "//go:build ignore\n"`)
	write(filepath.Join(dir, "reduce", "with", "a.go"), notBuilt+"\npackage p\n")
	write(filepath.Join(pkg, "old.go"), "package p\n")
	require.NoError(t, exchange(dir, part{without: []string{"old.go"}, with: "with"}, pkg))
	require.NoFileExists(t, filepath.Join(pkg, "old.go"))
	text, err := os.ReadFile(filepath.Join(pkg, "a.go"))
	require.NoError(t, err)
	require.Equal(t, "package p", string(bytes.TrimSpace(text)))
}
