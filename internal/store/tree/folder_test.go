package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

// TestFolderProblems distinguishes errors of the folder from those of the store.
func TestFolderProblems(t *testing.T) {
	s := must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
	var folder *FolderError

	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc/hosts", filepath.Join(dir, "hosts")))
	_, err := Save(t.Context(), s, dir, Rules{}, nil)
	require.ErrorAs(t, err, &folder)
	var outside *OutsideError
	require.ErrorAs(t, err, &outside)
	require.Equal(t, OutsideError{Path: "hosts", Target: "/etc/hosts"}, *outside)

	dir = t.TempDir()
	deep(t, dir)
	_, err = Save(t.Context(), s, dir, Rules{}, nil)
	require.ErrorAs(t, err, &folder)
	require.ErrorContains(t, err, "longer than 4096 bytes")

	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = Save(stopped, s, dir, Rules{}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, errors.As(err, &folder))
	require.False(t, errors.As(ofFolder(fmt.Errorf("read: %w", syscall.ENOSPC)), &folder), "the disk is full")
	require.True(t, errors.As(ofFolder(fmt.Errorf("read: %w", syscall.EACCES)), &folder))
}

// deep makes folders in folders until their path is longer than a tree takes.
func deep(t *testing.T, dir string) {
	t.Helper()
	root := must(os.OpenRoot(dir))(t)
	for range 21 {
		name := strings.Repeat("d", 200)
		require.NoError(t, root.Mkdir(name, 0o700))
		next := must(root.OpenRoot(name))(t)
		require.NoError(t, root.Close())
		root = next
	}
	require.NoError(t, root.Close())
}
