package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A release has the server beside the starter, which may be called through a link in a folder of PATH.
func TestServerOfARelease(t *testing.T) {
	release, bin := t.TempDir(), t.TempDir()
	starter, server := filepath.Join(release, "starter"), filepath.Join(release, "passbook-server")
	link := filepath.Join(bin, "starter")
	require.NoError(t, os.WriteFile(starter, nil, 0o700))
	require.NoError(t, os.Symlink(starter, link))
	require.Empty(t, serverBeside(starter), "a build of a checkout")

	require.NoError(t, os.WriteFile(server, nil, 0o600))
	require.Empty(t, serverBeside(starter), "a file that cannot be executed")
	require.NoError(t, os.Chmod(server, 0o700))
	require.Equal(t, server, serverBeside(starter))
	require.Equal(t, server, serverBeside(link))

	require.NoError(t, os.Remove(starter))
	require.Empty(t, serverBeside(link), "a link to nothing")
}
