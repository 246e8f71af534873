package view_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// TestScreenExplainsStatusAsDiagnoseDoes compares the live screen with diagnose, reports and the Web UI.
func TestScreenExplainsStatusAsDiagnoseDoes(t *testing.T) {
	for _, row := range []struct {
		status       run.Status
		reason, want string
	}{
		{run.Paused, run.UserRequested, "Press r to resume."},
		{run.Paused, run.UserReview, "Press r to resume."},
		{run.Paused, run.BudgetThreshold, "$0.00 of $1.00 are spent.\nPress b to raise it, then r to resume."},
		{run.Paused, run.QualityGate, "Press r to resume."},
		{run.Paused, run.PassFailed, ": agent exited with code 1\nFix the cause, then press r to resume."},
		{run.Paused, run.GateFailed, ": agent exited with code 1\nFix the cause, then press r to resume."},
		{run.Paused, run.DiskFull, ": agent exited with code 1.\nFree space there, then press r to resume."},
		{run.Halted, "handoff-halt", "Reason: handoff-halt.\nPress r to resume it, with a reason."},
		{run.Failed, "", "Press r to resume it in a new epoch"},
		{run.Cancelled, "", "Press r to resume it in a new epoch"},
		{run.Interrupted, "", "Press r to resume it in a new epoch"},
	} {
		s := run.State{Status: row.status, Reason: row.reason, Budget: run.Budget{CapUSD: 1},
			Problem: &run.Problem{Category: run.CategoryAgentExit, Message: "agent exited with code 1"}}
		why := view.WhyPaused(s, row.status)
		require.Contains(t, why, strings.TrimSuffix(run.Means(row.status, row.reason), "."), row.status)
		require.Contains(t, why, row.want, row.status)
	}
}
