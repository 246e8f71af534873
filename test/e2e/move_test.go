package e2e_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestCopyIsNotTheRun copies the directory of a run that rests, and asks the copy for everything that would make it
// the run's. Then the directory is moved, and goes on from its new place.
func TestCopyIsNotTheRun(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("5", "600"))
	dir, copied, moved := h.dir("run"), h.dir("copied"), h.dir("moved")
	h.begin(dir)
	h.mid("005")
	h.starter("pause", dir, "--now")
	until(t, "the run rests", func() bool { return statusIs(dir, run.Paused) })
	id := metaOf(t, dir).RunID
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	before := tree(t, copied)
	for _, verb := range [][]string{
		{"resume", copied}, {"resume", "--output-dir", copied}, {"budget", copied, "--usd", "9"}, {"attach", copied},
		{"cancel", copied}, {"revert", copied, "--to", "cp-1"}, {"decide", copied, "--action", "continue"},
		{"run", "--config", tiny(), "--output-dir", copied},
	} {
		output, code := h.try(verb...)
		require.Equal(t, 2, code, "%v: %s", verb, output)
		require.Contains(t, output, copied+" is a copy: run "+id+" has its directory in "+dir)
		require.Contains(t, output, "starter resume "+dir+")")
	}
	sameTree(t, before, tree(t, copied))
	require.True(t, statusIs(dir, run.Paused))
	require.Contains(t, h.starter("status", copied), "paused", "it can be looked at")

	require.NoError(t, os.Rename(dir, moved))
	h.starter("resume", "--output-dir", moved)
	h.finish(moved)
	h.undisturbed(moved, 1)
	require.NoDirExists(t, dir)
	require.Contains(t, h.starter("status", id), moved)
	h.sound(moved)
}

// TestClosedRunIsMoved moves the directory of a cancelled run: its next epoch is at the new place, and says on which
// cluster.
func TestClosedRunIsMoved(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("4", "600"))
	dir, moved := h.dir("run"), h.dir("moved")
	h.begin(dir)
	h.mid("004")
	require.NoError(t, h.dial().CancelWorkflow(t.Context(), metaOf(t, dir).RunID, ""))
	until(t, "the run is cancelled, and its workflow has ended", func() bool {
		return statusIs(dir, run.Cancelled) && h.status(dir).EffectiveStatus.Liveness == run.LiveClosed
	})
	require.NoError(t, os.Rename(dir, moved))
	require.Contains(t, h.starter("resume", "--output-dir", moved), "continues in epoch 2")
	h.finish(moved)
	h.undisturbed(moved, 1)
	require.NoDirExists(t, dir)
	var owner rundir.Owner
	require.NoError(t, json.Unmarshal(read(t, moved+"/"+layout.OwnerFile), &owner))
	claim, err := projector.At(moved).Claim()
	require.NoError(t, err)
	require.NotEmpty(t, claim.Cluster)
	require.Equal(t, claim.Cluster, owner.Cluster)
	require.True(t, owner.Embedded)
}

// TestAttach attaches three terminals to a run. One lets go, one is closed, one stays to the end; the run does not
// notice.
func TestAttach(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("3", "3"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("003")
	terminals := make([]*attached, 3)
	for i := range terminals {
		terminals[i] = h.attach("attach", dir)
	}
	for _, a := range terminals {
		until(t, "it is attached", func() bool { return strings.Contains(a.output(), "builder") })
	}
	terminals[0].interrupt()
	require.Zero(t, terminals[0].wait(), terminals[0].output())
	require.Contains(t, terminals[0].output(), "Detached: the run continues. To pause it: ")
	require.NoError(t, terminals[1].cmd.Process.Signal(syscall.SIGHUP))
	require.Equal(t, 129, terminals[1].wait(), terminals[1].output())
	require.Contains(t, terminals[1].output(), "Ended by a signal (hangup). The run continues.")
	require.Zero(t, terminals[2].wait(), terminals[2].output())
	require.Contains(t, terminals[2].output(), "Done: 16 of 16 passes")
	events := h.undisturbed(dir, 0)
	require.Empty(t, of[run.RunPaused](events, run.KindRunPaused))

	require.Contains(t, h.starter("attach", metaOf(t, dir).RunID), "Done: 16 of 16 passes")
}
