package run

import (
	"strings"
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

// TestLogOfAttemptCountsWhatIsLeft reports that no attempt is left only after the last one.
func TestLogOfAttemptCountsWhatIsLeft(t *testing.T) {
	for attempt, want := range map[int]string{
		1: "2 of 3 attempts are left, and another one would fail too", 3: "no attempt is left",
	} {
		payload, err := Payload(PassAttempt{Pass: Pass{Step: "001", Role: "writer"}, Category: CategorySpawnFailed,
			Message: "program not found", Attempt: attempt, Attempts: 3})
		require.NoError(t, err)
		e := Event{Seq: 1, TS: "2026-01-02T03:04:05.000Z", Kind: KindPassAttempt, Payload: payload}
		var output []string
		for _, l := range LogOf(Entry{Event: e, After: &State{Wording: WordingStages}}).Lines {
			output = append(output, l.Text)
		}
		text := strings.Join(output, "\n")
		require.Contains(t, text, want)
		require.Equal(t, attempt == 3, strings.Contains(text, "no attempt is left"), text)
	}
}

func TestSenderNamesTheToken(t *testing.T) {
	require.Equal(t, "ci (token)", Sender("ci", "token ci"))
	require.Equal(t, "ada (token ci)", Sender("ada", "token ci"))
	require.Equal(t, "ada (signed)", Sender("ada", "key ada"))
	require.Equal(t, "ada (not signed)", Sender("ada", "none"))
}
