package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFoundBy: requirement RS-18.
func TestFoundBy(t *testing.T) {
	for status, want := range map[Status]string{
		Done: "already-complete", Failed: "failed-needs-decision", Halted: "failed-needs-decision",
		Cancelled: "failed-needs-decision", Paused: "paused", AwaitingPhaseHandoff: "paused", Running: "", Replaying: "",
	} {
		found, reason := FoundBy(State{Status: status, Reason: "a reason"})
		require.Equal(t, want, found, status)
		require.Equal(t, want != "", OfStart(found), status)
		if want != "" {
			require.Equal(t, "the run is "+string(status)+": a reason", reason)
		}
	}
	_, reason := FoundBy(State{Status: Done})
	require.Equal(t, "the run is done", reason)
	require.False(t, OfStart(FreshStart))
	require.False(t, OfStart(ResumeRun))
}

// TestLogOfAttemptCountsWhatIsLeft: testdata/every-kind.txt has the line of a last attempt.
func TestLogOfAttemptCountsWhatIsLeft(t *testing.T) {
	payload, err := Payload(PassAttempt{Category: CategorySpawnFailed, Attempt: 1, Attempts: 3})
	require.NoError(t, err)
	lines := LogOf(Entry{Event: Event{Kind: KindPassAttempt, Payload: payload}, After: &State{}}).Lines
	require.Contains(t, lines[len(lines)-1].Text, "2 of 3 attempts are left")
}
