package view

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestPhaseOfAnEndByAnOperator: it is no failure, although state.json has no other phase for it.
func TestPhaseOfAnEndByAnOperator(t *testing.T) {
	for want, row := range map[string]struct {
		status        run.Status
		phase, reason string
	}{
		"CANCELLED":                   {run.Cancelled, "failed", "cancelled"},
		"HALTED (phase_handoff_halt)": {run.Halted, "failed", run.ReasonHandoffHalt},
		"FAILED (no agent here)":      {run.Failed, "failed", "no agent here"},
		"PAUSED (user-requested)":     {run.Paused, "paused", run.UserRequested},
		"COMPLETE":                    {run.Done, "complete", ""},
	} {
		require.Equal(t, want, phase(run.State{Status: row.status},
			rundir.Summary{CurrentPhase: row.phase, PhaseReason: &row.reason}))
	}
}
