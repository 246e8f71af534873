package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoHasLeftTheGroupIsEndedToo: what loses its parent comes to the supervisor, of this child alone, also without the mark.
func TestWhoHasLeftTheGroupIsEndedToo(t *testing.T) {
	other := commandIn(t.TempDir(), "wait")
	other.Mark = other.Dir
	stays := start(t, other)
	c := commandIn(t.TempDir(), "emigrate")
	c.Mark = c.Dir
	exit := result(t, start(t, c))
	require.Zero(t, exit.Code)
	_, emigrant := pids(t, c)
	requireGone(t, emigrant)
	require.True(t, stays.Identity().Alive())
	stays.Kill("test")
	result(t, stays)
}
