package durable_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/folder"
)

// TestHeld asks for a lock without taking, making or changing anything.
func TestHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := durable.Held(folder.Folder{Root: filepath.Dir(path)}, "lock")
	require.NoError(t, err)
	require.False(t, held)
	require.NoFileExists(t, path)

	lock, err := durable.TryLock(path, durable.Self("test", time.Now()))
	require.NoError(t, err)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEmpty(t, before)
	held, err = durable.Held(folder.Folder{Root: filepath.Dir(path)}, "lock")
	require.NoError(t, err)
	require.True(t, held)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, lock.Unlock())
	held, err = durable.Held(folder.Folder{Root: filepath.Dir(path)}, "lock")
	require.NoError(t, err)
	require.False(t, held)
	lock, err = durable.TryLock(path, durable.Self("test", time.Now()))
	require.NoError(t, err, "asking leaves no lock behind")
	require.NoError(t, lock.Unlock())
}
