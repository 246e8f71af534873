package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestAdoptedSessionIsOfTheFirstCall: the first accepted call of its role continues the adopted session, whatever other
// calls come before it; a revert to before that call continues it again.
func TestAdoptedSessionIsOfTheFirstCall(t *testing.T) {
	adopted := &run.Adopted{Program: "claude", Session: "s-1", Digest: "d", Host: "here", File: "run-1/s-1",
		Phase: "polish", Role: "writer", Before: run.Spend{USD: 7, Known: run.CostExact}}
	s := fold(run.State{}, []run.Event{event(t, run.KindRunStart, "", run.RunStart{RunID: "run-1", Epoch: 1, Adopted: adopted})})
	want := &run.KeptSession{ID: "s-1", Host: "here", Digest: "d", Program: "claude", File: "run-1/s-1"}
	end := func(phase, role string, outcome run.Category) {
		p := run.PassEnd{Pass: run.Pass{Step: "001", Role: role}, Outcome: outcome, Spend: run.Spend{USD: 1, Known: run.CostExact}}
		s = fold(s, []run.Event{event(t, run.KindPassEnd, phase, p)})
	}
	require.Equal(t, want, s.SessionOf("polish", "writer"))
	require.Nil(t, s.SessionOf("build", "writer"))
	checkpoint := run.Checkpoint{State: s.Clone()}
	end("build", "command", run.CategoryOK)
	end("polish", "critic", run.CategoryOK)
	end("polish", "writer", run.CategoryOutputEmpty)
	require.Equal(t, want, s.SessionOf("polish", "writer"))
	end("polish", "writer", run.CategoryOK)
	require.Nil(t, s.SessionOf("polish", "writer"))
	require.Equal(t, want, checkpoint.Reverted(s).SessionOf("polish", "writer"))
	require.Equal(t, want, checkpoint.Branched().SessionOf("polish", "writer"))
	require.Equal(t, adopted, checkpoint.Branched().Adopted)
	require.Less(t, s.Total(), 7.0, "the costs before are apart")
	require.Equal(t, "$7.00 before the adoption, not in the budget", s.Adopted.CostText())
	s.Adopted.Before.Known = run.CostAtLeast
	require.Equal(t, "≥ $7.00 before the adoption, not in the budget", s.Adopted.CostText())
}
