package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// continued wants an interrupted run to complete in a second epoch, behind what its journal already had.
func (h *environment) continued(dir string, before []byte, why string) {
	h.t.Helper()
	t := h.t
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	events := h.undisturbed(dir, 1)
	require.Equal(t, string(before), string(read(t, dir+"/events.jsonl")[:len(before)]))
	cut := of[run.RunInterrupted](events, run.KindRunInterrupted)
	require.Len(t, cut, 1)
	require.Contains(t, cut[0].Reason, why)
	back := of[run.RunResumed](events, run.KindRunResumed)
	require.Len(t, back, 1)
	require.Equal(t, 2, back[0].Epoch)
	require.Equal(t, run.Interrupted, back[0].From)
	require.Len(t, of[run.RunEnd](events, run.KindRunEnd), 1)
	require.Equal(t, 2, metaOf(t, dir).Epoch)
}

// TestTerminatedRunContinues terminates a workflow during a call. Two resumes at once open one epoch, and the call that
// ran meanwhile is not made again.
func TestTerminatedRunContinues(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	h.spoil(slow("5", "4"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("005")
	before := read(t, dir+"/events.jsonl")
	require.NoError(t, h.dial().TerminateWorkflow(t.Context(), metaOf(t, dir).RunID, "", "test"))
	until(t, "the run is interrupted", func() bool {
		return h.status(dir).EffectiveStatus.Status == run.Interrupted
	})
	require.Equal(t, run.Running, h.status(dir).EffectiveStatus.Recorded)
	diagnosis, code := h.try("diagnose", dir)
	require.Zero(t, code)
	require.Contains(t, diagnosis, "terminated")
	require.Contains(t, diagnosis, "resume "+dir)

	codes := make([]int, 2)
	var both sync.WaitGroup
	for i := range codes {
		both.Go(func() { _, codes[i] = h.try("resume", dir) })
	}
	both.Wait()
	require.Contains(t, codes, 0)
	h.continued(dir, before, "terminated")
	require.Equal(t, 1, h.count("start", "005"))
}

// TestMissingDatabase loses Temporal's database, and in the harder case the store as well: the directory alone
// suffices (requirement 004).
func TestMissingDatabase(t *testing.T) {
	t.Parallel()
	for name, storeToo := range map[string]bool{"database": false, "database and store": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			h.spoil(slow("9", "600"))
			dir := h.dir("run")
			h.begin(dir)
			h.mid("009")
			before := read(t, dir+"/events.jsonl")
			worker, server := h.worker(), h.server()
			h.crash(worker)
			h.kill(server)
			h.loseDatabase()
			if storeToo {
				require.NoError(t, os.RemoveAll(filepath.Join(h.state(), "store")))
			}
			output := h.starter("resume", dir)
			require.Equal(t, storeToo, strings.Contains(output, "of the store from the directory"), output)
			h.continued(dir, before, "no longer has its workflow")
		})
	}
}

// loseDatabase removes the database of a server that has ended.
func (h *environment) loseDatabase() {
	h.t.Helper()
	databases, err := filepath.Glob(filepath.Join(h.state(), "server", "temporal-*"))
	require.NoError(h.t, err)
	require.NotEmpty(h.t, databases)
	for _, f := range databases {
		require.NoError(h.t, os.Remove(f))
	}
}
