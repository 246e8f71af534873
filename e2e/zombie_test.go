package e2e_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store/fakes3"
)

// TestAZombieWorker freezes the worker of one host in the middle of a call, long past its heartbeat. A worker of another host takes the call over and answers
// it. When the first one goes on, its own answer changes nothing, but what it has cost is counted.
func TestAZombieWorker(t *testing.T) {
	t.Parallel()
	url := fakes3.Start(t)
	h := newHouse(t, "PASSBOOK_STORE="+url)
	h.spoil(slow("5", "8"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("005")
	zombie := h.worker()
	h.signal(zombie, syscall.SIGSTOP)

	other := exec.Command(filepath.Join(programs, "worker"))
	other.Dir = project
	other.Env = append(h.env, "PASSBOOK_STATE_DIR="+h.dir("elsewhere"), "TEMPORAL_ADDRESS="+h.running().Server.Address)
	var said strings.Builder
	other.Stdout, other.Stderr = &said, &said
	require.NoError(t, other.Start())
	id, err := process.Of(other.Process.Pid)
	require.NoError(t, err)
	h.met[id.PID] = id
	ended := make(chan struct{})
	go func() { defer close(ended); _ = other.Wait() }()
	t.Cleanup(func() { _ = other.Process.Kill(); <-ended })

	until(t, "the other host has answered", func() bool { return h.count("start", "005") == 2 && h.count("answered", "005") > 0 })
	until(t, "the frozen worker's agent has answered too", func() bool { return h.count("answered", "005") == 2 })
	h.signal(zombie, syscall.SIGCONT)
	h.finish(dir)
	events := complete(t, dir)
	require.Equal(t, foretell(t, tiny()).artifact(), artifactOf(t, dir))
	h.sound(dir)
	ends := 0
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		if p.Number == 5 {
			ends++
		}
	}
	require.Equal(t, 1, ends)
	late := []run.PassAttempt{}
	for _, p := range of[run.PassAttempt](events, run.KindPassAttempt) {
		if p.Category == "superseded" {
			late = append(late, p)
		}
	}
	require.Len(t, late, 1, said.String())
	require.Contains(t, late[0].Call, "/g0.005.")
	require.Positive(t, late[0].Spend.USD)
	sum := 0.0
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		sum += p.Spend.USD
	}
	require.InDelta(t, sum+late[0].Spend.USD, metaOf(t, dir).State.Total(), 1e-6, "both answers are paid for, and counted")
	require.Equal(t, tinyCalls+1, h.count("answered", ""))
	h.noAgents()
}
