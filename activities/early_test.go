package activities

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/calls"
)

// supervisors counts the supervisors that the harness starts. The function returns their process ids.
func (h *harness) supervisors() func() []int {
	log := filepath.Join(h.dir, "supervisors")
	script := `echo $$ >>"$0"; exec "$@"`
	h.acts.cfg.Supervisor = append([]string{"/bin/sh", "-c", script, log}, h.acts.cfg.Supervisor...)
	return func() (ids []int) {
		raw, err := os.ReadFile(log)
		if !os.IsNotExist(err) {
			require.NoError(h.t, err)
		}
		for _, word := range strings.Fields(string(raw)) {
			ids = append(ids, must(strconv.Atoi(word))(h.t))
		}
		return ids
	}
}

// early returns the supervisor that waits for a first delivery; nil: there is none.
func (h *harness) early() *earlySupervisor {
	h.acts.mu.Lock()
	defer h.acts.mu.Unlock()
	return h.acts.early[h.acts.deliveryDir(callID(h.in), 1)]
}

func TestSupervisorStartsBeforeTheEventsAreWritten(t *testing.T) {
	h := newHarness(t, "answer")
	started := h.supervisors()
	waits := false
	h.acts.cfg.OnPoint = func(p Point, _ string) { waits = waits || p == PointRequested && h.early() != nil }
	in := h.startsAs(filepath.Join(h.dir, "run"))
	require.NotNil(t, must(h.turn(t.Context(), in))(t).Pass)
	require.True(t, waits)
	require.Len(t, started(), 1, "the call has another supervisor than the one that waited for it")
	require.Empty(t, h.acts.early)

	require.True(t, must(h.turn(t.Context(), in))(t).Pass.Reused)
	require.Empty(t, h.acts.early)
	for _, id := range started() {
		require.ErrorIs(t, syscall.Kill(id, 0), syscall.ESRCH, "a supervisor without a call is left")
	}
	require.Equal(t, 1, h.started())
}

func TestSupervisorEndsIfTheEventsAreNotWritten(t *testing.T) {
	h := newHarness(t, "answer")
	started := h.supervisors()
	in := h.startsAs(filepath.Join(h.dir, "run"))
	in.First = 5
	require.Nil(t, must(h.turn(t.Context(), in))(t).Pass)
	require.Empty(t, h.acts.early)
	require.Len(t, started(), 1)
	for _, id := range started() {
		require.ErrorIs(t, syscall.Kill(id, 0), syscall.ESRCH, "a supervisor without a call is left")
	}
	require.NoDirExists(t, filepath.Join(h.acts.cfg.Scratch, calls.FolderName(callID(h.in))))
}

func TestLostEarlySupervisorIsReplaced(t *testing.T) {
	h := newHarness(t, "answer")
	started := h.supervisors()
	h.acts.cfg.OnPoint = func(p Point, _ string) {
		if s := h.early(); p == PointRequested && s != nil {
			<-s.started
			h.await(func() bool { return len(started()) == 1 })
			require.NoError(t, syscall.Kill(s.process.Identity().PID, syscall.SIGKILL))
			<-s.process.Done()
		}
	}
	require.NotNil(t, must(h.turn(t.Context(), h.startsAs(filepath.Join(h.dir, "run"))))(t).Pass)
	require.Len(t, started(), 2)
	require.Equal(t, 1, h.started())
}
