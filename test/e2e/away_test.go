package e2e_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestServerOutage takes the server away in the middle of a call, for many heartbeats and until the agent has long
// answered: once it does not answer, once it is gone. The answer is not asked for again, the run goes on when the
// server is back, and meanwhile its directory says where it stands.
func TestServerOutage(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"frozen": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			h.spoil(slow("4", "3"))
			dir := h.dir("run")
			h.begin(dir)
			h.mid("004")
			worker, server := h.worker(), h.server()
			if gone {
				h.kill(server)
			} else {
				h.signal(server, syscall.SIGSTOP)
			}
			until(t, "the agent has answered", func() bool { return h.count("answered", "004") == 1 })
			after(5 * time.Second) // five heartbeats more: its delivery is long given up
			require.True(t, worker.Alive(), "the worker waits for the server")
			require.Equal(t, string(run.Running), metaOf(t, dir).Status)
			require.Equal(t, 4, h.count("start", ""), "nothing is asked while nobody can decide it")
			if !gone {
				h.signal(server, syscall.SIGCONT)
			}
			h.finish(dir)
			h.undisturbed(dir, 0)
			require.Equal(t, 1, h.count("start", "004"))
		})
	}
}
