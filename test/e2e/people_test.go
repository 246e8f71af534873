package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestFinishedIsFinal(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("run")
	h.finish(dir)
	h.starter("run", "--config", tiny(), "--output-dir", dir) // the first start adds what it found to the decision log
	before := tree(t, dir)
	output := h.starter("run", "--config", tiny(), "--output-dir", dir)
	require.Contains(t, output, "is done: nothing to do, the run was not changed")
	sameTree(t, before, tree(t, dir))
	require.Equal(t, tinyCalls, h.count("start", ""))
}

func TestDetach(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("1", "1"))
	dir := h.dir("run")
	output := h.starter("run", "--config", tiny(), "--output-dir", dir, "--detach")
	require.Contains(t, output, "Detached")
	require.False(t, statusIs(dir, run.Done), "it stayed to the end")
	until(t, "the run finishes by itself", func() bool { return statusIs(dir, run.Done) })
	h.undisturbed(dir, 0)
}

// TestCtrlC is requirement 002 §8.4: the first one lets the running pass end, the second does not.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("3", "2") + slow("6", "600"))
	dir := h.dir("run")

	a := h.attach("run", "--config", tiny(), "--output-dir", dir)
	h.mid("003")
	a.interrupt()
	require.Zero(t, a.wait(), a.output())
	for _, line := range []string{
		"Graceful shutdown requested. Finishing current pass...", "Press Ctrl+C again to force exit.",
		"Pipeline paused by user. Resume with: ", " resume " + dir,
	} {
		require.Contains(t, a.output(), line)
	}
	require.Equal(t, 3, stateOf(t, dir).LastCompletedCorpusPass, "the running pass was to be finished")
	h.pausedByUser(dir, 1)

	h.starter("resume", dir)
	agent := h.mid("006")
	a = h.attach("run", "--config", tiny(), "--output-dir", dir)
	until(t, "the starter is attached", func() bool { return strings.Contains(a.output(), "builder") })
	a.interrupt()
	until(t, "the first Ctrl+C is noted", func() bool { return strings.Contains(a.output(), "Press Ctrl+C again") })
	require.True(t, agent.Alive(), "the first Ctrl+C ended the agent")
	a.interrupt()
	require.Equal(t, 130, a.wait(), a.output())
	require.Contains(t, a.output(), "Force exit. State saved at last completed pass.")
	require.False(t, agent.Alive(), "the agent still runs")
	require.Equal(t, 5, stateOf(t, dir).LastCompletedCorpusPass)
	h.pausedByUser(dir, 2)

	h.starter("resume", dir)
	h.finish(dir)
	h.undisturbed(dir, 1)
	require.Equal(t, 2, h.count("start", "006"), "the pass is done again")
}

// pausedByUser wants a run that rests because a person said so, with so many checkpoints of pauses.
func (h *environment) pausedByUser(dir string, times int) {
	h.t.Helper()
	meta, state := metaOf(h.t, dir), stateOf(h.t, dir)
	require.Equal(h.t, string(run.Paused), meta.Status)
	require.Equal(h.t, run.UserRequested, meta.Reason)
	require.Equal(h.t, "paused", state.CurrentPhase)
	require.Equal(h.t, run.UserRequested, *state.PhaseReason)
	n := 0
	for _, c := range state.Checkpoints {
		if strings.HasPrefix(c.ID, "cp-PAUSE-") {
			n++
			require.FileExists(h.t, dir+"/"+c.CheckpointDir+"/manifest.json")
		}
	}
	require.Equal(h.t, times, n)
	require.Empty(h.t, meta.State.InFlight)
}

// TestBudget lets the small pipeline run out of money after some passes.
func TestBudget(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	folder := h.copyExample()
	replace(t, folder, "corpus-tiny.yaml", "budget: {usd: 2, warn_at: 0.8}", "budget: {usd: 0.5, warn_at: 0.8}")
	definition, dir := folder+"/corpus-tiny.yaml", h.dir("run")
	output, code := h.try("run", "--config", definition, "--output-dir", dir)
	require.Equal(t, 3, code, output)
	require.Contains(t, output, "of $0.50 are spent; the mean of role ")
	meta := metaOf(t, dir)
	require.Equal(t, run.BudgetThreshold, meta.Reason)
	spent := meta.State.Total()
	require.Less(t, spent, 0.5)
	require.Greater(t, spent+meta.State.Need.USD, 0.5, "the rest covers the next call")
	started := h.count("start", "")
	require.Equal(t, started, h.count("answered", ""))

	output, code = h.try("resume", dir)
	require.Equal(t, 5, code, output)
	require.Contains(t, output, "raise the budget first")
	output, code = h.try("budget", dir, "--usd", "0.1")
	require.Equal(t, 2, code, output)
	require.Equal(t, started, h.count("start", ""), "it went on without money")
	require.Equal(t, run.BudgetThreshold, metaOf(t, dir).Reason)

	h.starter("budget", dir, "--usd", "5")
	h.starter("resume", dir)
	h.starter("run", "--config", definition, "--output-dir", dir)
	events := h.undisturbed(dir, 0)
	require.Len(t, of[run.BudgetEvent](events, run.KindBudgetWarning), 1)
	require.Len(t, of[run.BudgetEvent](events, run.KindBudgetExceeded), 1)
	require.Len(t, of[run.BudgetEvent](events, run.KindBudgetRaised), 1)
}

// TestIdle: what was started in the background stops by itself when nobody needs it.
func TestIdle(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_IDLE=2s")
	dir := h.dir("run")
	h.spoil(slow("2", "4"))
	h.begin(dir)
	h.mid("002")
	worker, server := h.worker(), h.server()
	until(t, "the run is over", func() bool { return statusIs(dir, run.Done) })
	until(t, "worker and server stop", func() bool { return !worker.Alive() && !server.Alive() })
	st := h.running()
	require.Nil(t, st.Worker)
	require.Nil(t, st.Server)
	h.undisturbed(dir, 0)
	require.Contains(t, h.starter("status", dir), "done")
}
