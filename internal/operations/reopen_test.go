package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestMayReopen is requirement 003 §6 and lifecycle's table: which closed run goes on, on which terms, and what the
// refusal says.
func TestMayReopen(t *testing.T) {
	forced := Reopening{Force: true, Reason: "the operator says so"}
	tests := []struct {
		name     string
		recorded run.Status
		live     run.Liveness
		how      Reopening
		state    func(*run.State)
		refused  string // empty: it goes on
	}{
		{name: "failed", recorded: run.Failed, live: run.LiveClosed},
		{name: "cancelled", recorded: run.Cancelled, live: run.LiveClosed},
		{name: "interrupted, as an epoch wrote it down", recorded: run.Interrupted, live: run.LiveClosed},
		{name: "running, and its workflow has ended", recorded: run.Running, live: run.LiveClosed},
		{name: "running, and its workflow is lost", recorded: run.Running, live: run.LiveGone},
		{name: "paused, and its workflow is lost", recorded: run.Paused, live: run.LiveGone},
		{name: "replaying, and its workflow is lost", recorded: run.Replaying, live: run.LiveGone},
		{name: "failed, and Temporal has forgotten it", recorded: run.Failed, live: run.LiveGone},
		{name: "running", recorded: run.Running, live: run.LiveOpen, refused: "its workflow is open"},
		{name: "paused", recorded: run.Paused, live: run.LiveOpen, refused: "its workflow is open"},
		{name: "nobody to ask", recorded: run.Running, live: run.LiveUnknown,
			refused: "whether the run is alive is unknown"},
		{name: "nobody to ask, forced", recorded: run.Running, live: run.LiveUnknown, how: forced},
		{name: "failed on another server, forced", recorded: run.Failed, live: run.LiveUnknown, how: forced},
		{name: "forced without a reason", recorded: run.Failed, live: run.LiveUnknown, how: Reopening{Force: true},
			refused: "needs --reason"},
		{name: "failed, forced without a reason", recorded: run.Failed, live: run.LiveClosed,
			how: Reopening{Force: true}, refused: "needs --reason"},
		{name: "failed, forced with blanks", recorded: run.Failed, live: run.LiveClosed,
			how: Reopening{Force: true, Reason: " \n"}, refused: "needs --reason"},
		{name: "cancelled, forced without a reason", recorded: run.Cancelled, live: run.LiveGone,
			how: Reopening{Force: true}, refused: "needs --reason"},
		{name: "interrupted, forced without a reason", recorded: run.Running, live: run.LiveGone,
			how: Reopening{Force: true}, refused: "needs --reason"},
		{name: "done, forced without a reason", recorded: run.Done, live: run.LiveClosed, how: Reopening{Force: true},
			refused: "done is final"},
		{name: "done", recorded: run.Done, live: run.LiveClosed, refused: "done is final"},
		{name: "done, forced", recorded: run.Done, live: run.LiveGone, how: forced, refused: "done is final"},
		{name: "halted", recorded: run.Halted, live: run.LiveClosed, refused: "was halted"},
		{name: "halted, forced", recorded: run.Halted, live: run.LiveClosed, how: forced},
		{name: "halted, forced without a reason", recorded: run.Halted, live: run.LiveClosed,
			how: Reopening{Force: true}, refused: "needs --reason"},
		{name: "nothing happened yet", recorded: "", live: run.LiveGone, refused: "has not begun"},
		{name: "a question is open", recorded: run.Failed, live: run.LiveClosed,
			state:   func(s *run.State) { s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "h-7"}} },
			refused: "h-7 is not decided"},
		{name: "no checkpoint", recorded: run.Failed, live: run.LiveClosed,
			state: func(s *run.State) { s.Checkpoint = nil }, refused: "no checkpoint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := run.State{Status: tt.recorded, Checkpoint: &run.CheckpointRef{ID: "cp-1"}}
			if tt.state != nil {
				tt.state(&s)
			}
			err := mayReopen(s, run.NewEffectiveStatus(tt.recorded, tt.live, "for a reason"), tt.how)
			if tt.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.refused)
		})
	}
}

// TestCauseGone: what `run` goes on with by itself (I-12). Everything else waits for somebody who says so.
func TestCauseGone(t *testing.T) {
	spent := func(cap float64) run.State {
		return run.State{Status: run.Paused, Reason: run.BudgetThreshold, Budget: run.Budget{CapUSD: cap},
			Spent: run.Totals{USD: 5}}
	}
	require.True(t, causeGone(spent(6)))
	require.True(t, causeGone(spent(0)))
	require.False(t, causeGone(spent(5)))
	require.True(t, causeGone(run.State{Status: run.Paused, Reason: run.DiskFull}))
	for _, reason := range []string{run.UserRequested, run.UserReview, run.QualityGate, run.PassFailed,
		run.ConsecutiveFailures} {
		require.False(t, causeGone(run.State{Status: run.Paused, Reason: reason}), reason)
	}
	require.False(t, causeGone(run.State{Status: run.Running}))
}
