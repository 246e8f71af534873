package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestHeldUpNamesCauseAndFix(t *testing.T) {
	d := rundir.At("/runs/1")
	h := Host{Program: "starter"}
	full := h.HeldText(run.Held{Cause: "write /runs/1/x: no space left on device", DiskFull: true}, d)
	require.Equal(t, "Paused, a disk is full: write /runs/1/x: no space left on device. Nothing is lost. Free space "+
		"there, then run: starter resume /runs/1", full)
	away := h.HeldText(run.Held{Cause: "Project failed, last with: open /runs/1/x: permission denied"}, d)
	require.Equal(t, "Blocked: Project failed, last with: open /runs/1/x: permission denied. Fix the cause: the run "+
		"retries every few seconds and continues automatically.", away)
}

func TestStateDirectoryWithSpaceHasNoNotice(t *testing.T) { require.Empty(t, stateFull(t.TempDir())) }
