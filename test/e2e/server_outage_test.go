package e2e_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestServerOutage freezes or kills the server during a call, for many heartbeats and until the agent has answered. The
// call is not made again, and the run continues when the server is back.
func TestServerOutage(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"frozen": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			h.spoil(slow("4", "7"))
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
			require.True(t, worker.Alive(), "the worker waits for the server")
			require.Equal(t, string(run.Running), metaOf(t, dir).Status)
			require.Equal(t, 4, h.count("start", ""), "no further call is made without the server")
			if !gone {
				h.signal(server, syscall.SIGCONT)
			}
			h.finish(dir)
			h.undisturbed(dir, 0)
			require.Equal(t, 1, h.count("start", "004"))
		})
	}
}
