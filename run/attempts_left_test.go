package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogOfAttemptCountsWhatIsLeft says that no attempt is left only after the last one.
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
