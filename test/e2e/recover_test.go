package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// TestFromTraces loses the directory and Temporal's history of a run in its middle. Traces and store have every prompt
// and reply, the page and the cost; what is missing is named, and a fork of it comes to the end of an undisturbed run.
func TestFromTraces(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("9", "600"))
	dir, saved, out := h.dir("run"), h.dir("traces.jsonl"), h.dir("recovered")
	h.begin(dir)
	h.mid("009")
	h.crash(h.worker())
	id, events := metaOf(t, dir).RunID, int64(len(eventsOf(t, dir)))
	require.NoError(t, os.WriteFile(saved, read(t, filepath.Join(dir, layout.TracesFile)), 0o600))
	before := tree(t, dir)
	require.NoError(t, os.RemoveAll(dir))
	h.starter("server", "stop")
	h.loseDatabase()

	output, code := h.try("rebuild", id, "--from-traces", saved, "--output-dir", out)
	require.Equal(t, 3, code, output)
	require.NoFileExists(t, filepath.Join(out, layout.EventsFile), "it is not a run directory")
	require.NoFileExists(t, filepath.Join(out, layout.ClaimFile))
	var report operations.Recovered
	require.NoError(t, json.Unmarshal(read(t, filepath.Join(out, operations.RecoveredFile)), &report))
	require.Equal(t, 8, report.Replies)
	require.Equal(t, 9, report.Prompts, "that of the call that was out is known too")
	require.LessOrEqual(t, report.AsOf, events)
	require.NotEmpty(t, report.Missing)
	require.Equal(t, report.State.Spent.USD, report.USD)
	again := tree(t, out)
	for _, n := range []string{"001", "004", "008"} {
		folder := ""
		for name := range again {
			if strings.HasPrefix(name, "calls/") && strings.Contains(name, "g0."+n+".") {
				folder = filepath.Dir(name)
			}
		}
		require.NotEmpty(t, again[folder+"/reply.txt"])
		require.Equal(t, before["_orchestrator/passes/pass-"+n+"/prompt.md"], again[folder+"/prompt.md"])
		require.Equal(t, before["_orchestrator/passes/pass-"+n+"/raw-output.txt"], again[folder+"/reply.txt"])
	}
	require.NotEmpty(t, again["artifact.html"])
	require.Equal(t, before["artifact.html"], again["artifact.html"])
	require.Equal(t, before["_orchestrator/pipeline.yaml"], again["given/pipeline.yaml"])

	require.Contains(t, output, "fork "+id+" --from "+report.Checkpoint)
	fork := h.dir("fork")
	h.starter("fork", id, "--from", report.Checkpoint, "--output-dir", fork)
	require.True(t, statusIs(fork, run.Done))
	require.Equal(t, foretell(t, tiny()).artifact(), artifactOf(t, fork))
}
