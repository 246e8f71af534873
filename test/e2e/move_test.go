package e2e_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestMovedRunContinues copies and moves the directory of a paused run. The copy is refused, and the run continues at
// its new place.
func TestMovedRunContinues(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	h.spoil(slow("5", "600"))
	dir, copied, moved := h.dir("run"), h.dir("copied"), h.dir("moved")
	h.begin(dir)
	h.mid("005")
	h.starter("pause", dir, "--now")
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	id := metaOf(t, dir).RunID
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	before := tree(t, copied)
	for _, command := range [][]string{
		{"resume", copied}, {"budget", copied, "--usd", "9"}, {"cancel", copied},
		{"run", "--config", tiny(), "--output-dir", copied},
	} {
		output, code := h.try(command...)
		require.Equal(t, 2, code, "%v: %s", command, output)
		require.Contains(t, output, copied+" is a copy: run "+id+" has its directory in "+dir)
	}
	sameTree(t, before, tree(t, copied))

	require.NoError(t, os.Rename(dir, moved))
	h.starter("resume", "--output-dir", moved)
	h.finish(moved)
	h.undisturbed(moved, 1)
	require.NoDirExists(t, dir)
	require.Contains(t, h.starter("status", id), moved)
	h.valid(moved)
}

// TestWatch watches a run in three terminals. One is interrupted, one is closed, and one stays to the end.
func TestWatch(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	fault, release := h.held("3")
	h.spoil(fault)
	dir := h.dir("run")
	h.begin(dir)
	h.mid("003")
	terminals := make([]*attached, 3)
	for i := range terminals {
		terminals[i] = h.attach("watch", dir)
	}
	for _, a := range terminals {
		until(t, "it shows the run", func() bool { return strings.Contains(a.output(), "builder") })
	}
	terminals[0].interrupt()
	require.Zero(t, terminals[0].wait(), terminals[0].output())
	require.NoError(t, terminals[1].cmd.Process.Signal(syscall.SIGHUP))
	require.NotZero(t, terminals[1].wait(), terminals[1].output())
	release()
	require.Zero(t, terminals[2].wait(), terminals[2].output())
	require.Contains(t, terminals[2].output(), "Done: 16 of 16 passes")
	events := h.undisturbed(dir, 0)
	require.Empty(t, of[run.RunPaused](events, run.KindRunPaused))
}
