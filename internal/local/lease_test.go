package local_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/local"
)

func nobody(t *testing.T, dir string) bool {
	t.Helper()
	alone, err := local.NoTerminalAttached(dir)
	require.NoError(t, err)
	return alone
}

func TestAttachKeepsOthersFromBeingAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.True(t, nobody(t, dir))
	first, err := local.Attach(t.Context(), dir)
	require.NoError(t, err)
	second, err := local.Attach(t.Context(), dir)
	require.NoError(t, err)
	require.False(t, nobody(t, dir))
	require.NoError(t, first())
	require.False(t, nobody(t, dir))
	require.NoError(t, second())
	require.True(t, nobody(t, dir))
}

func TestAttachWaitsWhileAnotherIsAlone(t *testing.T) {
	dir := t.TempDir()
	release, alone, err := local.Alone(dir)
	require.NoError(t, err)
	require.True(t, alone)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	_, err = local.Attach(ctx, dir)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, release())
	detach, err := local.Attach(t.Context(), dir)
	require.NoError(t, err)
	_, alone, err = local.Alone(dir)
	require.NoError(t, err)
	require.False(t, alone)
	require.NoError(t, detach())
}

func TestConcurrentHostIDsAreEqual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	ids := make([]string, 8)
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i], errs[i] = local.HostID(dir) })
	}
	all.Wait()
	for i := range ids {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
	}
	other, err := local.HostID(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, ids[0], other)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host-id"), []byte("x y\n"), 0o600))
	_, err = local.HostID(dir)
	require.ErrorContains(t, err, "want 16 hex digits")
}

// TestHostIDReadsAnExistingIDOnly: a state directory that is full, or cannot be written, has it all the same.
func TestHostIDReadsAnExistingIDOnly(t *testing.T) {
	dir := t.TempDir()
	id, err := local.HostID(dir)
	require.NoError(t, err)
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dir, long, long))
	again, err := local.HostID(dir)
	require.NoError(t, err)
	require.Equal(t, id, again)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.WithinDuration(t, long, info.ModTime(), time.Second, "a file was made in the folder")
}
