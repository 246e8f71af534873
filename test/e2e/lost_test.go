package e2e_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLostDirectory takes the run directory away: in the middle of a run, and when it is over.
func TestLostDirectory(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("5", "3"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("005")
	require.NoError(t, os.RemoveAll(dir))
	until(t, "the directory is there again", func() bool { _, err := os.Stat(dir + "/meta.json"); return err == nil })
	h.finish(dir)
	h.undisturbed(dir, 0)

	whole, id := tree(t, dir), metaOf(t, dir).RunID
	require.NotEmpty(t, whole)
	require.NoError(t, os.RemoveAll(dir))
	h.starter("rebuild", id, "--output-dir", dir)
	sameTree(t, whole, tree(t, dir))
}

// TestRebuildOfAChain writes a directory again whose run had several executions, half of it in segments.
func TestRebuildOfAChain(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_CONTINUE_AFTER=5")
	dir := h.dir("run")
	h.begin(dir)
	h.finish(dir)
	h.undisturbed(dir, 0)
	whole, id := tree(t, dir), metaOf(t, dir).RunID
	require.NoError(t, os.RemoveAll(dir))
	h.starter("rebuild", id, "--output-dir", dir)
	sameTree(t, whole, tree(t, dir))
}
