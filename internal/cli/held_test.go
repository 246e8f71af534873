package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestNoticesAreNotRepeated(t *testing.T) {
	var n notices
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		after time.Duration
		text  string
		fresh bool
	}{
		{0, "", false}, {0, "full: a", true}, {5 * time.Second, "full: a", false}, {10 * time.Second, "full: b", false},
		{15 * time.Second, "", false},
		{2 * time.Minute, "full: a", false}, {2 * time.Minute, "full: b", true},
	} {
		require.Equal(t, row.fresh, n.fresh(row.text, now.Add(row.after)), "%s after %s", row.text, row.after)
	}
}

// TestScreenShowsWhatHoldsUpARun shows a notice until the directory records a newer state.
func TestScreenShowsWhatHoldsUpARun(t *testing.T) {
	var n notice
	require.Empty(t, n.why(run.State{Status: run.Running}, run.Running))
	n.set("Blocked: x")
	require.Equal(t, "Blocked: x", n.why(run.State{Status: run.Running}, run.Running))
	paused := run.State{Status: run.Paused, Reason: run.DiskFull,
		Problem: &run.Problem{Message: "no space left on device"}}
	require.Equal(t,
		"The run is paused: the disk is full: no space left on device.\nFree space there, then press r to resume.",
		n.why(paused, run.Paused))
}

// TestPauseForFullDiskMayEndAtOnce keeps a terminal attached unless the pause lasts.
func TestPauseForFullDiskMayEndAtOnce(t *testing.T) {
	var p pauseForDisk
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full, asked, running := run.State{Status: run.Paused, Reason: run.DiskFull},
		run.State{Status: run.Paused, Reason: run.UserRequested}, run.State{Status: run.Running}
	require.False(t, p.briefly(asked, true, now))
	require.True(t, p.briefly(full, true, now))
	require.True(t, p.briefly(full, true, now.Add(time.Second)))
	require.False(t, p.briefly(running, false, now.Add(time.Second)))
	require.True(t, p.briefly(full, true, now.Add(5*time.Second)), "another pause")
	require.False(t, p.briefly(full, true, now.Add(8*time.Second)))
}
