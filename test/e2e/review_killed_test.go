package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestReviewKilled kills the worker of a run on a repository in the middle of a pass, between an answer and its commit,
// and while the run asks. Each call is paid for once, and nothing is delivered that was not accepted.
func TestReviewKilled(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	tr := h.trial(t, toCheckout...)
	tr.steerAgents("hold-implementer", "")
	tr.begin()
	until(t, "the implementer works", func() bool { return tr.held("implementer") })
	h.kill(h.worker())
	h.starter("server", "start")

	// A lock keeps the answer from being committed.
	lock := filepath.Join(tr.source, ".git", "refs", "heads", metaOf(t, tr.dir).Workspace.Branch+".lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	tr.untell("hold-implementer")
	c, id := h.dial(), metaOf(t, tr.dir).RunID
	until(t, "the commit is tried", func() bool {
		d, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		for _, a := range d.PendingActivities {
			if a.ActivityType.Name == "Carry" && a.LastFailure != nil {
				return true
			}
		}
		return false
	})
	h.kill(h.worker())
	require.NoError(t, os.Remove(lock))
	h.starter("server", "start")

	// A decision is sent twice while no worker polls: it is one decision.
	q := tr.asked(run.QuestionHandoff)
	h.kill(h.worker())
	for range 2 {
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", contract.VerbDecide,
			contract.Message{Action: "continue", By: "bob", ID: q.ID}))
	}
	h.starter("server", "start")

	events := tr.over(run.Done)
	require.Equal(t, "planner implementer reviewer", tr.calls())
	require.Equal(t, "line 1\nline 2", tr.git("show", "main:work.txt"))
	require.Equal(t, "work.txt", tr.git("diff", "--name-only", "feature", "main"), "half.txt was never accepted")
	require.Equal(t, "1", tr.git("rev-list", "--count", "feature.."+metaOf(t, tr.dir).Workspace.Branch))
	require.Len(t, of[run.WorkspaceUpdated](events, run.KindWorkspaceUpdated), 1)
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		require.Equal(t, 1, p.Attempts, p.Role)
	}
	require.Len(t, of[run.QuestionDecided](events, run.KindHandoffDecided), 1)
	require.Empty(t, of[run.DecisionRefused](events, run.KindDecisionRefused))
}

// TestRevertOfWorkspace reverts a run on a repository: the checkout is that of the checkpoint, and the run's branch
// gets a commit with it.
func TestRevertOfWorkspace(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	tr := h.trial(t)
	tr.steerAgents("hold-reviewer", "")
	tr.begin()
	until(t, "the reviewer works", tr.heldReviewer)
	h.starter("pause", tr.dir, "--now")
	until(t, "the run is paused", func() bool { return statusIs(tr.dir, run.Paused) })
	work := filepath.Join(tr.dir, "workspace", "work.txt")
	require.Equal(t, "line 1\nline 2\n", string(read(t, work)))
	branch := metaOf(t, tr.dir).Workspace.Branch
	was := tr.git("rev-parse", branch)

	lock := filepath.Join(tr.source, ".git", "refs", "heads", filepath.FromSlash(branch)+".lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	h.starter("revert", tr.dir, "--to", "pass-2", "--pause")
	until(t, "the revert is refused, because the branch is locked", func() bool { return metaOf(t, tr.dir).State.Refused == 1 })
	require.Equal(t, "line 1\nline 2\n", string(read(t, work)))
	require.NoError(t, os.Remove(lock))

	h.starter("revert", tr.dir, "--to", "pass-2", "--pause")
	until(t, "it is reverted", func() bool {
		m := metaOf(t, tr.dir)
		return m.State.Generation == 1 && m.Status == string(run.Paused)
	})
	require.Equal(t, "line 1\n", string(read(t, work)))
	require.NoFileExists(t, filepath.Join(tr.dir, "workspace", "half.txt"))
	require.Equal(t, was, tr.git("rev-parse", branch+"^"))
	require.Equal(t, tr.git("rev-parse", "main^{tree}"), tr.git("rev-parse", branch+"^{tree}"))
	require.Contains(t, tr.git("log", "-1", "--format=%B", branch), "Passbook-Run: "+metaOf(t, tr.dir).RunID)
	require.Equal(t, tr.git("rev-parse", branch), metaOf(t, tr.dir).Workspace.Commit)

	tr.untell("hold-reviewer")
	h.starter("resume", tr.dir)
	tr.over(run.Done)
	require.Equal(t, "planner implementer reviewer implementer reviewer", tr.calls())
	require.Equal(t, "line 1\nline 2", tr.git("show", "result:work.txt"))
	tr.untouched("result")
}

// untell removes a file that steers the agents.
func (tr *trial) untell(name string) {
	tr.t.Helper()
	require.NoError(tr.t, os.Remove(filepath.Join(tr.steer, name)))
}

// held reports whether the agent of a role was called and is held.
func (tr *trial) held(role string) bool {
	_, err := os.Stat(filepath.Join(tr.steer, "held-"+role))
	return err == nil
}

func (tr *trial) heldReviewer() bool { return tr.held("reviewer") }
