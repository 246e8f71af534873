package host

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTakenPortIsReplaced: neither the port of the server nor that of the UI may be in use; the next choice avoids it.
func TestTakenPortIsReplaced(t *testing.T) {
	l, err := net.Listen("tcp", loopback(0))
	require.NoError(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	other, err := choosePorts(nil, nil)
	require.NoError(t, err)
	require.False(t, ports{server: taken, ui: other.ui}.free())
	require.False(t, ports{server: other.server, ui: taken}.free())
	again, err := choosePorts([]int{taken}, []int{taken})
	require.NoError(t, err)
	require.NotContains(t, []int{again.server, again.ui}, taken)
	require.NotEqual(t, again.server, again.ui)
}

// TestPortOfAKilledServer: the kernel closes the sockets of a killed process some time after it counts as ended.
func TestPortOfAKilledServer(t *testing.T) {
	l, err := net.Listen("tcp", loopback(0))
	require.NoError(t, err)
	last := ports{server: l.Addr().(*net.TCPAddr).Port}
	time.AfterFunc(100*time.Millisecond, func() { l.Close() })
	awaitRelease(t.Context(), last)
	again, err := choosePorts([]int{last.server}, nil)
	require.NoError(t, err)
	require.Equal(t, last.server, again.server)
}

// TestServerOfARelease: a release has the server beside the starter, which may be called by a link in PATH.
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
