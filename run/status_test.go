package run_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func statuses() []run.Status {
	return []run.Status{
		run.Unknown, run.Pending, run.Running, run.Replaying, run.Paused, run.WaitingLimit, run.AwaitingPhaseHandoff,
		run.AwaitingGateDecision, run.AwaitingHumanReview, run.Done, run.Halted, run.Cancelled, run.Failed,
		run.Interrupted,
	}
}

// TestTransitions is the whole table, written out by hand: requirement 003 §3 with the edges it forgot. Every pair that
// is not listed is refused, X to X among them.
func TestTransitions(t *testing.T) {
	want := map[run.Status][]run.Status{
		run.Unknown: {run.Pending, run.Running},
		run.Pending: {run.Running, run.Cancelled},
		run.Running: {
			run.Replaying, run.Paused, run.WaitingLimit, run.AwaitingPhaseHandoff, run.AwaitingGateDecision,
			run.AwaitingHumanReview, run.Done, run.Halted, run.Cancelled, run.Failed, run.Interrupted,
		},
		run.Replaying:            {run.Running, run.Paused, run.Cancelled, run.Failed, run.Interrupted},
		run.Paused:               {run.Running, run.Halted, run.Cancelled, run.Failed, run.Interrupted},
		run.WaitingLimit:         {run.Running, run.Paused, run.Halted, run.Cancelled, run.Failed, run.Interrupted},
		run.AwaitingPhaseHandoff: {run.Running, run.Halted, run.Cancelled, run.Failed, run.Interrupted},
		run.AwaitingGateDecision: {run.Running, run.Halted, run.Cancelled, run.Failed, run.Interrupted},
		run.AwaitingHumanReview:  {run.Running, run.Done, run.Halted, run.Cancelled, run.Failed, run.Interrupted},
		run.Done:                 {},
		run.Halted:               {run.Running},
		run.Cancelled:            {run.Running},
		run.Failed:               {run.Running},
		run.Interrupted:          {run.Running},
	}
	for _, from := range statuses() {
		for _, to := range statuses() {
			err := run.Transition(from, to)
			if slices.Contains(want[from], to) {
				require.NoError(t, err, "%s to %s", from, to)
				continue
			}
			var refused *run.TransitionError
			require.ErrorAs(t, err, &refused, "%s to %s", from, to)
			require.Equal(t, from, refused.From)
			require.Equal(t, to, refused.To)
			require.ElementsMatch(t, want[from], refused.Allowed)
		}
	}
	require.Error(t, run.Transition("no such word", run.Running))
}

// TestClosedStatuses: TestDocs compares the classes of all statuses with docs/run-state.md.
func TestClosedStatuses(t *testing.T) {
	settled := []run.Status{run.Done, run.Halted, run.Cancelled}
	for _, s := range statuses() {
		require.True(t, s.Known(), s)
		require.Equal(t, slices.Contains(settled, s), s.Settled(), s)
		require.Equal(t, s.Settled() || s == run.Failed || s == run.Interrupted, s.Closed(), s)
		require.Equal(t, s.Settled() || s == run.Failed, run.Snapped(run.State{Status: s}, run.History{}).Terminal, s)
	}
	require.False(t, run.Status("finished").Known())
}
