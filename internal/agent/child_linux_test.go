package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessOutsideGroupIsKilled(t *testing.T) {
	other := commandIn(t.TempDir(), "wait")
	other.Mark = other.Dir
	stays := start(t, other)
	c := commandIn(t.TempDir(), "emigrate")
	c.Mark = c.Dir
	exit := result(t, start(t, c))
	require.Zero(t, exit.Code)
	_, emigrant := pids(t, c)
	requireGone(t, emigrant)
	require.True(t, stays.p.Identity().Alive())
	stays.Kill("test")
	result(t, stays)
}
