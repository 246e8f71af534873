package work

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueuesAreFourAndThoseOfAHostAreItsOwn(t *testing.T) {
	a, b := QueuesOf("passbook", "a"), QueuesOf("passbook", "b")
	require.Equal(t, Queues{Shared: "passbook", Calls: "passbook-calls", Dir: "passbook-dir-a", HostCalls: "passbook-calls-a"}, a)
	require.Equal(t, a.Shared, b.Shared)
	require.Equal(t, a.Calls, b.Calls)
	require.NotEqual(t, a.Dir, b.Dir)
	require.NotEqual(t, a.HostCalls, b.HostCalls)
}
