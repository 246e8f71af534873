package records_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/records"
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

// TestSummary counts what an event added, and keeps the passes with the highest numbers.
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
		j.add(run.KindPassEnd, ended(p(n), int64(n)))
	}
	require.Equal(t, []int{2, 9, 10}, numbers(j.summary))
	require.Equal(t, j.state.PassRecords["10"], j.summary.LastPasses[2])
	j.add(run.KindPassEnd, ended(inCycle(1, "", "weaver", "report"), 1))
	require.Equal(t, []int{2, 9, 10}, numbers(j.summary), "it has no number")

	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown})
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true})
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Recovered: true})
	require.Equal(t, 1, j.summary.Unrecovered)
	require.Equal(t, 2, j.summary.Recovered)
	for _, id := range []string{"cp-a", "cp-b", "cp-c"} {
		had := records.Counted(&j.state)
		j.state.Checkpoints = append(j.state.Checkpoints, rundir.CheckpointRecord{ID: id})
		records.Summarize(&j.summary, run.Event{Kind: run.KindCheckpointCreated}, had, &j.state)
	}
	require.Equal(t, 3, j.summary.Checkpoints)
	require.Equal(t, pointer("cp-a"), j.summary.FirstCheckpoint)
	require.Equal(t, pointer("cp-c"), j.summary.LastCheckpoint)
	j.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Equal(t, "paused", j.summary.CurrentPhase)
	require.Equal(t, pointer("user-requested"), j.summary.PhaseReason)
}

// TestSummaryAfterARevert is that of the records that are left.
func TestSummaryAfterARevert(t *testing.T) {
	j := newJournal(t)
	j.start()
	for n := 1; n <= 3; n++ {
		j.add(run.KindPassEnd, ended(builder(n), int64(n)))
	}
	j.add(run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown})
	j.state.Checkpoints = []rundir.CheckpointRecord{{ID: "cp-x"}, {ID: "cp-y"}}
	state := j.head.State.Clone()
	delete(j.state.PassRecords, "3")
	j.state.Checkpoints = j.state.Checkpoints[:1]
	j.add(run.KindRunReverted, run.RunReverted{To: 4, Cause: "revert", Checkpoint: "cp-x", State: &state})
	require.Equal(t, []int{1, 2}, numbers(j.summary))
	require.Equal(t, 1, j.summary.Checkpoints)
	require.Equal(t, pointer("cp-x"), j.summary.FirstCheckpoint)
	require.Equal(t, pointer("cp-x"), j.summary.LastCheckpoint)
	require.Equal(t, 1, j.summary.Unrecovered)
	require.Zero(t, j.summary.Recovered, "a revert is no error")
}
