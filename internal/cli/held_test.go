package cli

import (
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

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

func TestHeldUpNamesCauseAndFix(t *testing.T) {
	d := projector.At("/runs/1")
	full := heldWords(run.Held{Cause: "write /runs/1/x: no space left on device", DiskFull: true}, d.Dir)
	require.Equal(t, "Paused, a disk is full: write /runs/1/x: no space left on device. Nothing is lost. Free space "+
		"there, then run: starter resume /runs/1", full)
	away := heldWords(run.Held{Cause: "Project failed, last with: open /runs/1/x: permission denied"}, d.Dir)
	require.Equal(t, "Held up: Project failed, last with: open /runs/1/x: permission denied. Fix the cause: the run "+
		"retries every few seconds and continues automatically.", away)
}

// TestScreenShowsWhatHoldsUpARun shows a notice until the directory records a newer state.
func TestScreenShowsWhatHoldsUpARun(t *testing.T) {
	var n notice
	require.Empty(t, n.why(run.State{Status: run.Running}, run.Running))
	n.set("Held up: x")
	require.Equal(t, "Held up: x", n.why(run.State{Status: run.Running}, run.Running))
	paused := run.State{Status: run.Paused, Reason: run.DiskFull,
		Problem: &run.Problem{Message: "no space left on device"}}
	require.Equal(t,
		"The run is paused: the disk is full: no space left on device.\nFree space there, then press r to resume.",
		n.why(paused, run.Paused))
}

func TestStateDirectoryWithSpaceHasNoNotice(t *testing.T) { require.Empty(t, stateFull(t.TempDir())) }

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
