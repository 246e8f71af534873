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
		run.AwaitingGateDecision,
		run.AwaitingHumanReview, run.Done, run.Halted, run.Cancelled, run.Failed, run.Interrupted,
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
			run.AwaitingHumanReview,
			run.Done, run.Halted,
			run.Cancelled, run.Failed, run.Interrupted,
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

// TestStatusTable is the table of statuses: class, the words of requirement 003, and what follows from the class.
func TestStatusTable(t *testing.T) {
	rows := []struct {
		status          run.Status
		class           run.Class
		rfc             string
		closed, settled bool
	}{
		{run.Unknown, run.Diagnostic, "pending", false, false},
		{run.Pending, run.Live, "pending", false, false},
		{run.Running, run.Live, "running", false, false},
		{run.Replaying, run.Live, "replaying", false, false},
		{run.Paused, run.OperatorPause, "waiting_for_signal", false, false},
		{run.WaitingLimit, run.OperatorPause, "waiting_for_signal", false, false},
		{run.AwaitingPhaseHandoff, run.OperatorPause, "waiting_for_human", false, false},
		{run.AwaitingGateDecision, run.OperatorPause, "waiting_for_human", false, false},
		{run.AwaitingHumanReview, run.OperatorPause, "waiting_for_human", false, false},
		{run.Done, run.SettledTerminal, "completed", true, true},
		{run.Halted, run.SettledTerminal, "canceled", true, true},
		{run.Cancelled, run.SettledTerminal, "canceled", true, true},
		{run.Failed, run.Terminal, "failed", true, false},
		{run.Interrupted, run.Torn, "failed", true, false},
	}
	require.Len(t, rows, len(statuses()))
	for _, r := range rows {
		require.Equal(t, r.class, r.status.Class(), r.status)
		require.Equal(t, r.rfc, r.status.RFC(), r.status)
		require.Equal(t, r.closed, r.status.Closed(), r.status)
		require.Equal(t, r.settled, r.status.Settled(), r.status)
		require.True(t, r.status.Known(), r.status)
	}
	require.False(t, run.Status("finished").Known())
}
