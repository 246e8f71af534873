package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestWalkAmendment kills the starter, the server or the worker at several moments of an amendment. The same command
// adopts the change as soon as a worker polls, and the journal has it once. It runs in the exhaustive form only.
func TestWalkAmendment(t *testing.T) {
	if !*walkAll {
		t.Skip("part of make test-all")
	}
	t.Parallel()
	h := newEnv(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "pipeline.yaml")
	write := func(usd int) {
		require.NoError(t, os.WriteFile(file,
			fmt.Appendf(nil, "pipeline: amended\nagent: {run: [scripted], reply: claude-json}\n"+
				"budget: {usd: %d}\nroles: {writer: {prompt: p.md, gives: report}}\n"+
				"stages: [{name: draft, steps: [{ask: Continue}, {role: writer}]}]\n", usd), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "p.md"), []byte("Write."), 0o600))
	dir, usd := h.dir("run"), 10
	write(usd)
	h.starter("run", file, "--output-dir", dir, "--detach")
	until(t, "it asks", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
	amend := []string{"amend", dir, "--config", file}

	for part, victim := range []string{"starter", "server", "starter", "worker", "starter", "server", "starter"} {
		usd++
		write(usd)
		cmd := h.command(t.Context(), amend...)
		require.NoError(t, cmd.Start())
		after(time.Duration(1+part) * 100 * time.Millisecond)
		switch victim {
		case "server":
			h.kill(h.server())
		case "worker":
			h.kill(h.worker())
		default:
			require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
		}
		h.starter("server", "start")
		_ = cmd.Wait() // it may have completed
		until(t, "the same command adopts it", func() bool {
			_, code := h.try(amend...)
			return code == 0
		})
		require.InDelta(t, usd, metaOf(t, dir).State.Budget.CapUSD, 1e-9)
	}
	seen := map[float64]int{}
	for _, e := range of[run.RunAmended](eventsOf(t, dir), run.KindRunAmended) {
		require.NotNil(t, e.Budget)
		seen[e.Budget.CapUSD]++
	}
	for want := 11; want <= usd; want++ {
		require.Equal(t, 1, seen[float64(want)], "amendments to %d USD in %v", want, seen)
	}
	h.starter("decide", dir, "--action", "continue")
	until(t, "it is done", func() bool { return statusIs(dir, run.Done) })
	h.valid(dir)
}
