package activities

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// external is a harness whose reader's step declares an external action.
func external(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, "answer")
	h.external = true
	self, err := os.Executable()
	require.NoError(t, err)
	h.lay(self)
	return h
}

// TestLostActionIsNotRepeated: an operator learns whether it had its effect before it is executed again.
func TestLostActionIsNotRepeated(t *testing.T) {
	h := external(t)
	h.leave(gone(t), gone(t), `{"type":"result","result":"half`)
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryUnknown, res.Outcome)
	require.True(t, res.Permanent)
	require.Contains(t, res.Message, "delivery 1 of this external action ended without a result")
	require.Equal(t, 0, h.started())

	h.in.Call += "-again" // as after a resume
	res, err = h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome)
	require.Equal(t, 1, h.started())
}

func TestCompleteAnswerOfLostActionCounts(t *testing.T) {
	h := external(t)
	h.leave(gone(t), gone(t), envelopeOf("From beyond.")+"\n")
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome)
	require.Equal(t, 0, h.started())
}
