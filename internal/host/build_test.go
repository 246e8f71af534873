package host_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
)

// checkout is a source tree whose server is a small program that executes the test binary.
func checkout(t *testing.T) (root string, edit func(name, text string)) {
	t.Helper()
	root = t.TempDir()
	edit = func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	edit("go.mod", "module github.com/passbook-run/passbook\n\ngo 1.26.0\n")
	edit("devserver/go.mod", "module github.com/passbook-run/passbook/devserver\n\ngo 1.26.0\n")
	edit("devserver/main.go", `package main

import (
	"os"
	"syscall"
)

func main() {
	self := os.Getenv("`+realEnv+`")
	if err := syscall.Exec(self, append([]string{self}, os.Args[1:]...), os.Environ()); err != nil {
		panic(err)
	}
}
`)
	edit("devserver/reduce/main.go", `package main

import "os"

func main() { os.Stdout.WriteString("off\n") }
`)
	return root, edit
}

// TestLastBuiltServerRunsOutsideOfTheCheckout finds the server as a starter does that was installed elsewhere.
func TestLastBuiltServerRunsOutsideOfTheCheckout(t *testing.T) {
	o := host.ServerOptions{StateDir: t.TempDir(), CacheDir: t.TempDir()}
	t.Chdir(t.TempDir())
	_, _, err := host.CachedServer(o)
	require.ErrorContains(t, err, "start in a checkout of Passbook")
	for name, age := range map[string]time.Duration{
		"devserver-1111": time.Hour, "devserver-2222": time.Minute, "devserver-3333.new": 0, "other": 0,
	} {
		path := filepath.Join(o.CacheDir, name)
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700))
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
	}
	path, ok, err := host.CachedServer(o)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, filepath.Join(o.CacheDir, "devserver-2222"), path)
	require.Equal(t, path, must(host.BuildServer(t.Context(), o, nil))(t))
}

const realEnv = "PASSBOOK_LOCAL_TEST_REAL"

func TestBuildCachesOneServerPerSource(t *testing.T) {
	root, edit := checkout(t)
	t.Setenv(realEnv, must(filepath.Abs(os.Args[0]))(t))
	dir := stateDir(t)
	o := options(t, dir)
	o.Binary, o.SourceDir = "", root
	builds := func() int {
		n := 0
		must(host.EnsureServer(t.Context(), o, func(line string) {
			if line == host.BuildNotice {
				n++
			}
		}))(t)
		require.NoError(t, host.StopServer(t.Context(), dir, 0))
		return n
	}
	require.Equal(t, 1, builds())
	require.Equal(t, 0, builds())
	edit("devserver/main_test.go", "package main\n")
	require.Equal(t, 0, builds(), "a test is not part of the server")
	edit("devserver/more.go", "package main\n")
	require.Equal(t, 1, builds())
	edit("devserver/beforehand.go", "package main\n")
	path := must(host.BuildServer(t.Context(), o, nil))(t)
	require.FileExists(t, path)
	require.Equal(t, "1.32.1", must(host.ServerVersion(t.Context(), path))(t))
	require.Equal(t, 0, builds())

	deep := filepath.Join(root, "some", "folder")
	require.NoError(t, os.MkdirAll(deep, 0o700))
	t.Chdir(deep)
	o.SourceDir = ""
	require.Equal(t, 0, builds(), "the checkout above the working directory is the same")

	edit("devserver/more.go", "package main\n\nnonsense\n")
	_, err := host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "more.go:3:1: syntax error")

	t.Setenv("PATH", t.TempDir())
	_, err = host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "Go is not installed")

	t.Chdir(t.TempDir())
	require.Equal(t, 0, builds(), "outside of a checkout the last one runs")
	o.CacheDir = t.TempDir()
	_, err = host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "set TEMPORAL_ADDRESS")
}
