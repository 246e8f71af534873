package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReducedServerHasNoUnusedParts prepares the source in an empty cache, four times concurrently.
func TestReducedServerHasNoUnusedParts(t *testing.T) {
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
		for _, unused := range []string{
			"github.com/aws/", "cloud.google.com/", "k8s.io/", "github.com/jackc/", "github.com/lib/pq", "github.com/go-sql-driver/",
			"github.com/temporalio/ringpop-go", "go.temporal.io/server/common/resourcetest",
		} {
			require.False(t, strings.HasPrefix(p, unused), "the reduced server imports %s", p)
		}
	}
}

// TestExchangeRefuses shows the error after an update of the server.
func TestExchangeRefuses(t *testing.T) {
	pkg := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(pkg, "old.go"), []byte("package p\n"), 0o600))
	require.ErrorContains(t, exchange(part{pkg: "p", without: []string{"gone*.go"}}, pkg),
		"no file of p matches gone*.go in this version; correct the table in devserver/reduce")
	require.NoError(t, exchange(part{without: []string{"old.go"}, text: "package p\n"}, pkg))
	require.NoFileExists(t, filepath.Join(pkg, "old.go"))
	require.FileExists(t, filepath.Join(pkg, "reduced.go"))
}
