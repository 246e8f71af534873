package local

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A port that another program listens on is not free, whichever of both it is, and the next choice avoids it.
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
