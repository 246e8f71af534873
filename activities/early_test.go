package activities

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// supervisors counts the supervisors that the harness starts. The function returns their process ids.
func (h *harness) supervisors() func() []int {
	log := filepath.Join(h.dir, "supervisors")
	script := `case " $*" in *" enter "*) ;; *) echo $$ >>"$0" ;; esac; exec "$@"` // not inside of a sandbox
	h.acts.cfg.Sandbox.Read = append(h.acts.cfg.Sandbox.Read, h.acts.cfg.Supervisor[0])
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

// noSupervisors requires that none waits for a call, and that these have ended.
func (h *harness) noSupervisors(started []int) {
	h.t.Helper()
	require.Empty(h.t, h.acts.early)
	for _, id := range started {
		require.ErrorIs(h.t, syscall.Kill(id, 0), syscall.ESRCH, "a supervisor without a call is left")
	}
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
