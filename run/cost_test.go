package run_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestUnknownCostIsNamedOnce(t *testing.T) {
	end := run.PassEnd{Pass: run.Pass{Role: "writer"}, Outcome: run.CategoryOK, Validation: run.Validation{Passed: true},
		DurationMS: 1000, Spend: run.Spend{Known: run.CostUnknown}}
	after := run.State{Spent: run.Totals{Unknown: 1}}
	raw, err := json.Marshal(end)
	require.NoError(t, err)
	e := run.Event{Kind: run.KindPassEnd, Payload: raw}.Decoded()
	require.Equal(t, "  ✓ writer                    1.0s  cost unknown  PASS",
		run.Headline(run.Entry{Event: e, After: &after}))
	after.Spent.USD = 1.5
	require.Equal(t, "  ✓ writer                    1.0s  cost unknown  PASS  ≥ $1.50",
		run.Headline(run.Entry{Event: e, After: &after}))
}

// TestLowerBoundIsShown describes a call that was ended: it cost at least what it reported.
func TestLowerBoundIsShown(t *testing.T) {
	call := run.Spend{USD: 0.25, Known: run.CostAtLeast}
	require.Equal(t, "cost ≥ $0.25: the agent's report is incomplete", call.Text())
	var all run.Totals
	all.Add(call)
	all.Add(run.Spend{USD: 1, Known: run.CostExact})
	require.Equal(t, run.CostAtLeast, all.Known)
	require.Equal(t, "≥ $1.25 (1 call not fully known)", run.CostText(all.USD, all.Unknown))
}

func TestFailureTextCountsStarts(t *testing.T) {
	f := run.Failure{FailedPass: run.FailedPass{Category: run.CategoryAgentExit}, Message: "001 writer failed", Starts: 1}
	require.Equal(t, "001 writer failed (agent-exit-nonzero)", f.Text(run.WordingStages))
	f.Starts = 3
	require.Equal(t, "failed in 3 starts, the last time: 001 writer failed (agent-exit-nonzero)",
		f.Text(run.WordingStages))
}
