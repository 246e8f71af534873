package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// pausedBehind pauses the run when its first pass has settled, and then does something.
func pausedBehind(t *testing.T, then func(w *harness)) *harness {
	t.Helper()
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { then(w) })
	return w
}

func TestRevertContinuesFromCheckpoint(t *testing.T) {
	for _, way := range []string{"signal", "update"} {
		t.Run(way, func(t *testing.T) {
			w := pausedBehind(t, func(w *harness) {
				if way == "signal" {
					w.signal("revert", message{"to": "cp-1", "by": "ada", "note": "not good"})
				} else {
					w.update("revert", message{"to": "cp-1", "by": "ada", "note": "not good"})
				}
			})
			w.done()
			require.Equal(t, []string{"g0.001.1.-.1", "g1.001.1.-.1", "g1.002.1.-.1"}, w.agent.ids,
				"calls of the next generation are new calls")
			r := payloads[run.RunReverted](w, run.KindRunReverted)
			require.Len(t, r, 1)
			require.Equal(t, "revert", r[0].Cause)
			require.Equal(t, "cp-1", r[0].Checkpoint)
			require.EqualValues(t, 1, r[0].To)
			require.Equal(t, "ada", r[0].By)
			require.Equal(t, "not good", r[0].Note)
			require.InDelta(t, 1.0, r[0].WasUSD, 1e-9)
			require.EqualValues(t, 2, r[0].Abandoned.First)
			s := w.dir.state(t)
			require.Equal(t, 1, s.Generation)
			require.Equal(t, 1, s.Starts, "it is the same start")
			require.InDelta(t, 1.0, s.SunkUSD, 1e-9)
			require.InDelta(t, 3.0, s.Total(), 1e-9, "what was spent before the revert is spent")
			require.Equal(t, 2, s.Passes.LastSettled)
			require.Contains(t, w.story(run.KindCheckpointCreated)[1], "cp-REVERT-20260102T",
				"the revert can be reverted")
		})
	}
}

// Checkpoints of one second have different names: the files of the first must not change.
func TestPausesInOneSecondHaveTheirOwnCheckpoints(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.agent.will(call(2, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		w.onPause(func() { w.signal("resume", nil) })
		w.signal("resume", nil)
	})
	w.done()
	var ids []string
	for _, c := range payloads[run.CheckpointCreated](w, run.KindCheckpointCreated) {
		if strings.HasPrefix(c.ID, "cp-PAUSE-") {
			ids = append(ids, c.ID)
		}
	}
	require.Len(t, ids, 2)
	require.Equal(t, ids[0]+"-2", ids[1])
}

func TestRevertToBoundaryKeepsPass(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(2, 1), after(func() { w.signal("pause", nil) }))
	at := ""
	w.onPause(func() {
		for _, e := range w.dir.events(t) {
			if e.Kind == run.KindArtifactUpdated {
				at = run.UnnamedID(e.Seq) // it belongs to the pass: the checkpoint follows it
				break
			}
		}
		w.signal("revert", message{"to": at})
	})
	w.done()
	require.Equal(t, []string{"g0.001.1.-.1", "g0.002.1.-.1", "g1.002.1.-.1"}, w.agent.ids)
	require.Equal(t, "page of run-1/g0.001.1.-.1", w.agent.inputs[2].Artifact.Digest,
		"it continues from the artifact of the first pass")
}

// TestRevertStaysPaused: the same revert once more does nothing, except that it may continue the run.
func TestRevertStaysPaused(t *testing.T) {
	for _, rest := range []bool{true, false} {
		w := pausedBehind(t, func(w *harness) {
			w.onPause(func() {
				require.Equal(t, []string{"g0.001.1.-.1"}, w.agent.ids, "nothing is called before a resume")
				require.Zero(t, w.dir.state(t).Passes.LastSettled)
				w.signal("revert", message{"to": "cp-1", "rest": rest})
				if rest {
					w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, 1e9)
				}
			})
			w.signal("revert", message{"to": "cp-1", "rest": true})
		})
		w.done()
		require.Equal(t, []string{"g0.001.1.-.1", "g1.001.1.-.1", "g1.002.1.-.1"}, w.agent.ids)
		require.Len(t, payloads[run.RunReverted](w, run.KindRunReverted), 1, "the same revert twice is one")
	}
}

func TestReopenWithRevert(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	w.reopened(contract.Reopen{
		Epoch: 2, From: run.Cancelled, By: "ada", Revert: &contract.PendingRevert{To: "cp-1", By: "ada"},
	})
	w.done()
	require.Equal(t, []string{"g0.001.1.-.1", "g1.001.1.-.1", "g1.002.1.-.1"}, w.agent.ids)
	s := w.dir.state(t)
	require.Equal(t, 2, s.Epoch)
	require.Equal(t, 1, s.Generation)
	require.Equal(t, []string{"run.resumed", "run.reverted"}, w.story(run.KindRunResumed, run.KindRunReverted))
}

func TestRevertRestoresCheckout(t *testing.T) {
	w := newHarness(t, reviewed+"      - {role: implementer}\n")
	w.trees.changes = &run.WorkspaceUpdated{Tree: run.Blob{Digest: "first tree"}, Changed: 2}
	w.agent.will(call(2, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { w.signal("revert", message{"to": "cp-1"}) })
	w.done()
	var carried []string
	for _, c := range w.trees.carries {
		carried = append(carried, c.Tree.Tree.Digest)
	}
	require.Equal(
		t, []string{
			"tree of run-1/g0.001.1.-.1", "tree of run-1/g0.002.1.-.1", "first tree", "tree of run-1/g1.001.1.-.1",
			"tree of run-1/g1.002.1.-.1",
		}, carried,
	)
	reverted := w.trees.carries[2]
	require.Equal(t, []string{"tree of run-1/g0.002.1.-.1", "tree of run-1/g0.002.1.-.1"},
		[]string{reverted.DiffFrom.Digest, reverted.Previous.Digest})
	require.Contains(t, reverted.Message, "Revert to cp-1\n\nPassbook-Run: run-1\n")
	updates := payloads[run.WorkspaceUpdated](w, run.KindWorkspaceUpdated)
	require.Equal(t, run.WorkspaceUpdated{Cause: "reverted", Tree: run.Blob{Digest: "first tree"}, Changed: 2,
		Commit: "commit of first tree"}, updates[2])
	back := payloads[run.RunReverted](w, run.KindRunReverted)[0].State
	require.Equal(t, "first tree", back.Tree.Digest)
	require.Equal(t, "commit of first tree", back.Commit,
		"the branch goes forward with a commit: nothing on it is lost")
}

func TestRevertJournalsEditsFirst(t *testing.T) {
	w := pausedBehind(t, func(w *harness) {
		w.dir.edited = &run.Blob{Digest: "edited by hand"}
		w.signal("revert", message{"to": "cp-1"})
		w.dir.when(run.KindRunReverted, func() { w.dir.edited = nil })
	})
	w.done()
	var received []string
	for _, u := range payloads[run.ArtifactUpdated](w, run.KindArtifactUpdated) {
		received = append(received, u.Cause+" "+u.Artifact.Digest)
	}
	require.Equal(t, []string{" page of run-1/g0.001.1.-.1", "edited edited by hand", "reverted seed"}, received[:3])
	kinds := w.story(run.KindArtifactUpdated, run.KindCheckpointCreated, run.KindRunReverted)
	require.Contains(t, kinds[3], "cp-REVERT-", "the edit is in the checkpoint of what was: %v", kinds)
}

func TestBudgetUpdateDuringRevertIsKept(t *testing.T) {
	w := newHarness(t, reviewed+"      - {role: implementer}\n")
	w.agent.will(call(2, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { w.signal("revert", message{"to": "cp-1"}) })
	w.trees.carrying = func(in contract.SyncWorkspaceInput) {
		if in.Tree.Tree.Digest == "first tree" {
			require.NoError(t, w.update("budget", message{"usd": 77}).refused)
		}
	}
	w.done()
	require.InDelta(t, 77, w.dir.state(t).Budget.CapUSD, 1e-9)
}

// A revert whose checkout cannot be restored is refused, and the run waits where it was.
func TestRevertWithoutCheckoutIsRefused(t *testing.T) {
	w := newHarness(t, reviewed+"      - {role: implementer}\n")
	w.agent.will(call(2, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		w.trees.errs = slices.Repeat([]error{errCheckedOut}, 6)
		w.signal("revert", message{"to": "cp-1", "by": "ada"})
		w.dir.when(run.KindDecisionRefused, func() { w.signal("resume", nil) })
	})
	w.done()
	refused := payloads[run.DecisionRefused](w, run.KindDecisionRefused)
	require.Len(t, refused, 1)
	require.Equal(t, "revert", refused[0].Verb)
	require.Regexp(t, "^revert the checkout to cp-1: .*the branch is checked out elsewhere", refused[0].Reason)
	require.Empty(t, payloads[run.RunReverted](w, run.KindRunReverted))
	require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
	require.Equal(t, []string{"g0.001.1.-.1", "g0.002.1.-.1"}, w.agent.ids)
	require.Zero(t, w.dir.state(t).Generation)
}
