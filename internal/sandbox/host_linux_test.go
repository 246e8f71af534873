package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRootOnlyFilesAreHidden finds keys of services, which root's agents could read.
func TestRootOnlyFilesAreHidden(t *testing.T) {
	etc := t.TempDir()
	for name, mode := range map[string]os.FileMode{"keytab": 0o600, "hosts": 0o644, "vpn/server.key": 0o640,
		"vpn/server.conf": 0o644, "letsencrypt/live/site/key.pem": 0o644} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(etc, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(etc, name), nil, mode))
	}
	require.NoError(t, os.Chmod(filepath.Join(etc, "letsencrypt/live"), 0o700))
	found := private(etc, depth)
	require.Equal(t, []string{filepath.Join(etc, "keytab"), filepath.Join(etc, "letsencrypt/live"),
		filepath.Join(etc, "vpn/server.key")}, found)
	require.Equal(t, []string{"--ro-bind", "/dev/null", found[0], "--tmpfs", found[1], "--remount-ro", found[1],
		"--ro-bind", "/dev/null", found[2]}, maskArgs(found))
}
