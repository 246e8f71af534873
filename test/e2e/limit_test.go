package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

const limitedPipeline = `pipeline: limited
agent: {run: [scripted], env: [PASSBOOK_CALL_LOG, PASSBOOK_FAULTS]}
limits: {after_reset: {min: 100ms, max: 200ms}}
roles:
  reader: {prompt: read.md, gives: report}
stages:
  - name: read
    steps: [{role: reader}, {role: reader}, {role: reader}]
`

// TestLimitOutlivesServerAndWorker kills both while a run waits for a usage limit. No call is made before the reset,
// one after it, and no attempt is used. It takes about 12 s.
func TestLimitOutlivesServerAndWorker(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil("- {at: 2, do: is_error, text: \"You've hit your limit · resets in 7s\"}\n")
	folder := t.TempDir()
	config, dir := filepath.Join(folder, "limited.yaml"), h.dir("run")
	require.NoError(t, os.WriteFile(config, []byte(limitedPipeline), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "read.md"), []byte("Read it.\n"), 0o600))
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	until(t, "the run waits", func() bool {
		m, err := rundir.At(dir).Meta()
		return err == nil && run.Status(m.Status) == run.WaitingLimit
	})
	limited := metaOf(t, dir).State.Limited
	server, worker := h.server(), h.worker()
	h.kill(worker)
	h.kill(server)
	var listed struct {
		Runs []struct{ Limited *run.Limited }
	}
	require.NoError(t, json.Unmarshal([]byte(h.starter("list", "--offline", "--status", "waiting_limit", "--json")),
		&listed))
	require.Equal(t, limited, listed.Runs[0].Limited)
	h.starter("run", "--config", config, "--output-dir", dir)
	events := eventsOf(t, dir)
	require.Equal(t, string(run.Done), metaOf(t, dir).Status)
	require.Equal(t, 2, h.count("start", "002"), "%v", h.calls())
	require.Equal(t, 4, h.count("start", ""))
	for _, p := range of[run.PassStart](events, run.KindPassStart) {
		require.Equal(t, 1, p.Attempt)
	}
	attempts := of[run.PassAttempt](events, run.KindPassAttempt)
	require.Len(t, attempts, 1)
	require.Equal(t, run.LimitPlan, attempts[0].Limit.Kind)
	reset, err := time.Parse(run.TimeFormat, limited.Reset)
	require.NoError(t, err)
	for _, e := range events {
		if e.Kind == run.KindRunUnlimited {
			at, err := time.Parse(run.TimeFormat, e.TS)
			require.NoError(t, err)
			require.True(t, at.After(reset), "%s is before the reset %s", at, reset)
		}
	}
	require.Len(t, of[run.RunUnlimited](events, run.KindRunUnlimited), 1)
	h.noAgents()
}
