package local

import (
	"net"
	"testing"

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
