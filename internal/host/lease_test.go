package host_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
)

func alone(t *testing.T, dir string) bool {
	t.Helper()
	return must(host.NoTerminalAttached(dir))(t)
}

func TestAttachKeepsOthersFromBeingAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.True(t, alone(t, dir))
	first := must(host.Attach(t.Context(), dir))(t)
	second := must(host.Attach(t.Context(), dir))(t)
	require.False(t, alone(t, dir))
	require.NoError(t, first())
	require.False(t, alone(t, dir))
	require.NoError(t, second())
	require.True(t, alone(t, dir))
}

func TestAttachWaitsWhileAnotherIsAlone(t *testing.T) {
	dir := t.TempDir()
	release, alone, err := host.Alone(dir)
	require.NoError(t, err)
	require.True(t, alone)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	_, err = host.Attach(ctx, dir)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, release())
	detach := must(host.Attach(t.Context(), dir))(t)
	_, alone, err = host.Alone(dir)
	require.NoError(t, err)
	require.False(t, alone)
	require.NoError(t, detach())
}

func TestHostID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	ids := make([]string, 8)
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i], errs[i] = host.HostID(dir) })
	}
	all.Wait()
	for i := range ids {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
	}
	require.NotEqual(t, ids[0], must(host.HostID(t.TempDir()))(t))

	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(dir, long, long))
	require.Equal(t, ids[0], must(host.HostID(dir))(t))
	require.WithinDuration(t, long, must(os.Stat(dir))(t).ModTime(), time.Second, "a full state directory suffices")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host-id"), []byte("x y\n"), 0o600))
	_, err := host.HostID(dir)
	require.ErrorContains(t, err, "want 16 hex digits")
}
