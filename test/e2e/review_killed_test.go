package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestReviewKilled kills the worker at critical points, in a separate environment.
func TestReviewKilled(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	t.Run("in the middle of a pass", func(t *testing.T) { testKilledInAPass(t, h.within(t)) })
	t.Run("between answer and commit", func(t *testing.T) { testKilledBeforeTheCommit(t, h.within(t)) })
	t.Run("while it waits", func(t *testing.T) { testAnsweredWithoutAWorker(t, h.within(t)) })
}

// testKilledInAPass: what a pass has done when its worker dies is never seen again; the call that goes on alone is
// joined, or made once more.
func testKilledInAPass(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("hold-implementer", "")
	tr.begin()
	until(t, "the implementer is at work", func() bool {
		_,
			err := os.Stat(filepath.Join(tr.steer, "held-implementer"))
		return err == nil
	})
	h.kill(h.worker())
	require.NoError(t, os.Remove(filepath.Join(tr.steer, "hold-implementer")))
	h.starter("server", "start")
	events := tr.over(run.Done)
	require.Equal(t, "line 1\nline 2", tr.git("show", "result:work.txt"))
	require.Equal(t, "work.txt", tr.git("diff", "--name-only", "main", "result"), "half.txt was never accepted")
	require.Len(t, of[run.WorkspaceUpdated](events, run.KindWorkspaceUpdated), 1)
	var paid []string
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		paid = append(paid, fmt.Sprintf("%s %d", p.Role, p.Attempts))
	}
	require.Equal(t, []string{"planner 1", "implementer 1", "command 1", "reviewer 1"}, paid)
	tr.untouched("result")
}

// testKilledBeforeTheCommit: the answer is in the store, and a lock keeps its commit from being made when the worker
// dies.
func testKilledBeforeTheCommit(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("hold-implementer", "")
	tr.begin()
	until(t, "the implementer is at work", func() bool {
		_,
			err := os.Stat(filepath.Join(tr.steer, "held-implementer"))
		return err == nil
	})
	lock := filepath.Join(tr.source, ".git", "worktrees", "workspace", "index.lock")
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	require.NoError(t, os.Remove(filepath.Join(tr.steer, "hold-implementer")))
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
	tr.over(run.Done)
	require.Equal(t, "planner implementer reviewer", tr.calls(), "one call paid")
	require.Equal(t, "line 1\nline 2", tr.git("show", "result:work.txt"))
	require.Equal(t, "1", tr.git("rev-list", "--count", "main..passbook/"+id))
	tr.untouched("result")
}

// testAnsweredWithoutAWorker: a signal is sent twice while nobody is there; the first worker that comes takes it once.
func testAnsweredWithoutAWorker(t *testing.T, h *environment) {
	tr := h.trial(t, toCheckout...)
	tr.begin()
	q := tr.asked(run.QuestionHandoff)
	c, id := h.dial(), metaOf(t, tr.dir).RunID
	h.kill(h.worker())
	for range 2 {
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", workflows.VerbDecide,
			workflows.Message{Action: "continue", By: "bob", ID: q.ID}))
	}
	require.True(t, statusIs(tr.dir, run.AwaitingPhaseHandoff), "nobody is there to take the decision")
	began := time.Now()
	h.starter("server", "start")
	events := tr.over(run.Done)
	t.Logf("went on within %s", time.Since(began))
	require.Len(t, of[run.QuestionDecided](events, run.KindHandoffDecided), 1)
	require.Empty(t, of[run.DecisionRefused](events, run.KindDecisionRefused), "the same answer twice is one answer")
	require.Equal(t, "line 1\nline 2", tr.git("show", "main:work.txt"))
}

// untell takes a file that steers the agents away again.
func (tr *trial) untell(name string) {
	tr.t.Helper()
	require.NoError(tr.t, os.Remove(filepath.Join(tr.steer, name)))
}

// heldReviewer says that the reviewer was asked and is held.
func (tr *trial) heldReviewer() bool {
	_, err := os.Stat(filepath.Join(tr.steer, "held-reviewer"))
	return err == nil
}
