package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// externalAction is the step of the reader.
const externalAction = "{role: reader, effect: external_action}"

// TestLostActionIsNotRepeated: an operator learns whether it had its effect before it is executed again.
func TestLostActionIsNotRepeated(t *testing.T) {
	h := newHarness(t, "answer")
	h.define("{role: reader}", externalAction)
	h.leave(gone(t), gone(t), `{"type":"result","result":"half`)
	res := h.result()
	require.Equal(t, run.CategoryUnknown, res.Outcome)
	require.True(t, res.Permanent)
	require.Equal(t, 0, h.started())

	h.in.Call += "-again" // as after a resume
	res = h.accepted()
	require.Equal(t, 1, h.started())
}
