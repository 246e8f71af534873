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
