package rundir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// numbers are those of the last passes.
func numbers(s rundir.Summary) (all []int) {
	for _, r := range s.LastPasses {
		all = append(all, r.GlobalPassNumber)
	}
	return all
}

// TestSummary counts checkpoints and errors, and keeps the passes with the highest numbers.
func TestSummary(t *testing.T) {
	threshold := 3.5
	j := newJournal(t)
	j.start()
	require.Equal(t, rundir.Summary{CurrentPhase: "write", Threshold: &threshold, MaxCycles: 6}, j.summary)
	p := func(n int) run.Pass {
		p := builder(1)
		p.Number = n
		return p
	}
	for _, n := range []int{2, 1, 10, 9, 2, 9} {
		j.add(run.KindPassEnd, endedPass(p(n), int64(n)))
	}
	require.Equal(t, []int{2, 9, 10}, numbers(j.summary))
	require.Equal(t, j.state.PassRecords["10"], j.summary.LastPasses[2])
	j.add(run.KindPassEnd, endedPass(inCycle(1, "", "weaver", "report"), 1))
	require.Equal(t, []int{2, 9, 10}, numbers(j.summary), "it has no number")

	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown})
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true})
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true})
	require.Equal(t, 1, j.summary.Unrecovered)
	require.Equal(t, 2, j.summary.Recovered)
	for _, id := range []string{"cp-a", "cp-b", "cp-c"} {
		j.state.Checkpoints = append(j.state.Checkpoints, rundir.CheckpointRecord{ID: id})
	}
	j.summary = rundir.Summarize(&j.state)
	require.Equal(t, 3, j.summary.Checkpoints)
	require.Equal(t, pointer("cp-a"), j.summary.FirstCheckpoint)
	require.Equal(t, pointer("cp-c"), j.summary.LastCheckpoint)
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Equal(t, "paused", j.summary.CurrentPhase)
	require.Equal(t, pointer("user-requested"), j.summary.PhaseReason)
}
