package activities

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCallWithoutWorkerKeepsMachineAwake: a worker that hands its calls over releases its hold; their supervisors have
// the file open until the calls end.
func TestCallWithoutWorkerKeepsMachineAwake(t *testing.T) {
	h := newHarness(t, "wait")
	hold, file, err := os.Pipe()
	require.NoError(t, err)
	released := make(chan error, 1)
	h.acts.cfg.KeepAwake = func() (*os.File, func()) { return file, func() { released <- file.Close() } }
	done := h.begin(t.Context(), h.acts)
	h.awaitStart(1)
	h.acts.HandOver()
	require.NoError(t, (<-done).err)
	require.NoError(t, <-released)
	require.NoError(t, hold.SetReadDeadline(time.Now()))
	_, err = hold.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
	h.letGo()
	require.NoError(t, hold.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err = hold.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, hold.Close())
}
