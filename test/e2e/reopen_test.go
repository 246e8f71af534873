package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/run"
)

// torn wants the run shown as interrupted, in words that say what became of its workflow, by every verb that reads.
func (h *environment) torn(dir, why string) {
	h.t.Helper()
	until(h.t, "the end of the workflow is seen", func() bool {
		return h.status(dir).EffectiveStatus.Status == run.Interrupted
	})
	output := h.status(dir)
	require.Equal(h.t, run.Running, output.EffectiveStatus.Recorded)
	require.Contains(h.t, output.EffectiveStatus.Detail, why)
	require.Contains(h.t, h.starter("status", dir),
		"interrupted (recorded: running; "+output.EffectiveStatus.Detail+")")
	diagnosis, code := h.try("diagnose", dir)
	require.Equal(h.t, 3, code)
	require.Contains(h.t, diagnosis, why)
	require.Contains(h.t, diagnosis, "resume "+dir)
}

// wentOn wants the story of an interrupted run: what was there is the beginning of what is, and one epoch follows the
// other.
func (h *environment) wentOn(dir string, before []byte, why string) {
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

// away ends a workflow in the middle of a call, behind the run's back, and gives what the directory held.
func away(t *testing.T, end func(c client.Client, id string)) (h *environment, dir string, before []byte) {
	t.Helper()
	h = newEnv(t, uncached)
	h.spoil(slow("5", "4"))
	dir = h.dir("run")
	h.begin(dir)
	h.mid("005")
	before = read(t, dir+"/events.jsonl")
	end(h.dial(), metaOf(t, dir).RunID)
	return h, dir, before
}

func TestTerminated(t *testing.T) {
	t.Parallel()
	h, dir, before := away(t, func(c client.Client, id string) {
		require.NoError(t,
			c.TerminateWorkflow(t.Context(), id, "", "test"))
	})
	h.torn(dir, "terminated")
	h.starter("resume", dir)
	h.wentOn(dir, before, "terminated")
	require.Equal(t, 1, h.count("start", "005"), "the call that was out was answered all the same, and found")
}

// TestDeleted goes on with `run`, as people do who start the same command again.
func TestDeleted(t *testing.T) {
	t.Parallel()
	h, dir, before := away(t, func(c client.Client, id string) {
		_, err := c.WorkflowService().DeleteWorkflowExecution(t.Context(),
			&workflowservice.DeleteWorkflowExecutionRequest{
				Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
			})
		require.NoError(t, err)
	})
	h.torn(dir, "") // terminated first, gone a moment later
	output := h.finish(dir)
	require.Contains(t, output, "It was interrupted, and continues in epoch 2")
	h.wentOn(dir, before, "")
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
			require.Contains(t, h.starter("status", dir),
				"running (as recorded; whether it is alive is unknown: no Temporal server runs on this machine")
			databases, err := filepath.Glob(filepath.Join(h.state(), "server", "temporal-*"))
			require.NoError(t, err)
			require.NotEmpty(t, databases)
			for _, f := range databases {
				require.NoError(t, os.Remove(f))
			}
			if storeToo {
				require.NoError(t, os.RemoveAll(filepath.Join(h.state(), "store")))
			}
			output := h.starter("resume", dir)
			require.Equal(t, storeToo, len(h.restored(output)) > 0, output)
			h.wentOn(dir, before, "no longer has its workflow")
		})
	}
}

// restored returns the line about files that the store had lost; empty: none.
func (h *environment) restored(output string) string {
	for line := range strings.Lines(output) {
		if strings.Contains(line, "of the store from the directory") {
			return line
		}
	}
	return ""
}

// TestCancelledRunResumes cancels a run, which closes it in the journal, and resumes it twice at once: one epoch comes
// of it.
func TestCancelledRunResumes(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("4", "600"))
	dir := h.dir("run")
	h.begin(dir)
	agent := h.mid("004")
	c := h.dial()
	require.NoError(t, c.CancelWorkflow(t.Context(), metaOf(t, dir).RunID, ""))
	until(t, "the run is cancelled", func() bool { return statusIs(dir, run.Cancelled) })
	until(t, "its agent is gone", func() bool { return !agent.Alive() })
	h.agree(c, dir, run.Cancelled)
	output, code := h.try("run", "--config", tiny(), "--output-dir", dir)
	require.Equal(t, 1, code)
	require.Contains(t, output, "To resume it: ")

	codes := make([]int, 2)
	var both sync.WaitGroup
	for i := range codes {
		both.Go(func() { _, codes[i] = h.try("resume", dir) })
	}
	both.Wait()
	require.Contains(t, codes, 0)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	events := h.undisturbed(dir, 1)
	require.Len(t, of[run.RunResumed](events, run.KindRunResumed), 1)
	require.Empty(t, of[run.RunInterrupted](events, run.KindRunInterrupted))
	require.Len(t, of[run.RunEnd](events, run.KindRunEnd), 2)

	output, code = h.try("resume", dir)
	require.Equal(t, 5, code)
	require.Contains(t, output, "done is final")
}

// TestFailedRunResumes loses the plan from the store: no attempt can help, so the run fails and says why. The directory
// brings it back.
func TestFailedRunResumes(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("2", "3"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("002")
	h.starter("pause", dir)
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
	h.kill(h.worker()) // it knows the plan by heart
	start := of[run.RunStart](eventsOf(t, dir), run.KindRunStart)[0]
	blobs := find(t, filepath.Join(h.state(), "store"), start.Plan)
	require.Len(t, blobs, 1)
	require.NoError(t, os.Remove(blobs[0]))
	h.try("resume", dir)
	until(t, "the run has failed", func() bool { return statusIs(dir, run.Failed) })
	require.Contains(t, *metaOf(t, dir).Error, "it is not in the store")
	h.agree(h.dial(), dir, run.Failed)
	h.starter("resume", dir)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.undisturbed(dir, 0)
}

// find gives the files below a folder that a digest names: their names end as it does.
func find(t *testing.T, root, digest string) []string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && len(e.Name()) > 16 && digest[len(digest)-16:] == e.Name()[len(e.Name())-16:] {
			all = append(all, path)
		}
		return err
	}))
	return all
}
