package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestLifecycleOfAWorkspace takes a run on a repository back, and replays it.
func TestLifecycleOfAWorkspace(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	t.Run("revert", func(t *testing.T) { testRevertOfAWorkspace(t, h.within(t)) })
	t.Run("replay", func(t *testing.T) { testReplayOfAWorkspace(t, h.within(t)) })
}

// testRevertOfAWorkspace: the checkout is what it was at the checkpoint, and the run's branch goes forward with a
// commit that says so.
func testRevertOfAWorkspace(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("hold-reviewer", "")
	tr.begin()
	until(t, "the reviewer is asked", func() bool { return tr.heldReviewer() })
	h.starter("pause", tr.dir, "--now")
	until(t, "the run rests", func() bool { return statusIs(tr.dir, run.Paused) })
	work := filepath.Join(tr.dir, "workspace", "work.txt")
	require.Equal(t, "line 1\nline 2\n", string(read(t, work)))
	branch := "passbook/" + metaOf(t, tr.dir).RunID
	was := tr.git("rev-parse", branch)

	h.starter("revert", tr.dir, "--to", "pass-2", "--pause")
	until(t, "it rests there", func() bool {
		m := metaOf(t, tr.dir)
		return m.State.Generation == 1 &&
			m.Status == string(run.Paused)
	})
	require.Equal(t, "line 1\n", string(read(t, work)))
	require.NoFileExists(t, filepath.Join(tr.dir, "workspace", "half.txt"))
	require.Equal(t, was, tr.git("rev-parse", branch+"^"), "the branch goes forward")
	require.Equal(t, tr.git("rev-parse", "main^{tree}"), tr.git("rev-parse", branch+"^{tree}"))
	require.Contains(t, tr.git("log", "-1", "--format=%B", branch), "Passbook-Run: "+metaOf(t, tr.dir).RunID)
	require.Equal(t, tr.git("rev-parse", branch), metaOf(t, tr.dir).Workspace.Commit)

	tr.untell("hold-reviewer")
	h.starter("resume", tr.dir)
	tr.over(run.Done)
	require.Equal(t, "planner implementer reviewer implementer reviewer", tr.calls(),
		"the implementer is asked again, and the planner is not")
	require.Equal(t, "line 1\nline 2", tr.git("show", "result:work.txt"))
	tr.untouched("result")
}

// testReplayOfAWorkspace: a replay comes to the same tree in a checkout of its own without a call, and delivers nothing
// a second time.
func testReplayOfAWorkspace(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("verdicts", "rejected\n")
	tr.begin()
	tr.over(run.Done)
	require.NoError(t, h.dial().GetWorkflow(t.Context(), metaOf(t, tr.dir).RunID, "").Get(t.Context(), nil))
	source, calls, result := tr.dir, tr.calls(), tr.git("rev-parse", "result")
	before := tree(t, source)
	tr.dir = filepath.Join(tr.folder, "replay")
	h.starter("replay", source, "--output-dir", tr.dir)
	tr.over(run.Done)
	require.Equal(t, calls, tr.calls(), "an agent was called")
	require.Equal(t, result, tr.git("rev-parse", "result"), "it is delivered already")
	meta, was := metaOf(t, tr.dir), metaOf(t, source)
	require.Equal(t, was.State.Tree.Digest, meta.State.Tree.Digest)
	require.Equal(t, "line 1\nline 2\nline 3\n", string(read(t, filepath.Join(tr.dir, "workspace", "work.txt"))))
	require.Equal(t, tr.git("rev-parse", "passbook/"+was.RunID+"^{tree}"),
		tr.git("rev-parse", "passbook/"+meta.RunID+"^{tree}"))
	sameTree(t, before, tree(t, source))
	tr.untouched("result")
}
