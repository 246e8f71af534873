package e2e_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestReplayAndFork replays a run: no call is made. With the directory of the source gone, a fork at a checkpoint makes
// only the calls behind it.
func TestReplayAndFork(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	source, replayed, forked := h.dir("source"), h.dir("replayed"), h.dir("forked")
	h.finish(source)
	id, page, before := metaOf(t, source).RunID, artifactOf(t, source), tree(t, source)
	require.Equal(t, tinyCalls, h.count("start", ""))

	h.starter("replay", source, "--output-dir", replayed)
	require.Equal(t, tinyCalls, h.count("start", ""), "an agent was called")
	require.Equal(t, page, artifactOf(t, replayed))
	got := metaOf(t, replayed)
	require.Zero(t, got.State.Total(), "the source paid for the calls")
	require.Equal(t, id, got.Source.RunID)
	require.Equal(t, run.ModeReplay, got.Source.Mode)
	sameTree(t, before, tree(t, source))
	clean(t, replayed)

	require.NoError(t, os.RemoveAll(source)) // the store has all that a fork needs
	h.starter("fork", id, "--from", "cp-S1", "--output-dir", forked)
	require.Equal(t, 2*tinyCalls-8, h.count("start", ""), "exactly the calls behind the checkpoint are made")
	require.Equal(t, page, artifactOf(t, forked))
	require.Equal(t, run.ModeFork, metaOf(t, forked).Source.Mode)
	clean(t, forked)
}
