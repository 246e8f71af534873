package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Row RS-18 has the names of what a start finds.
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
