package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
)

// TestUnreportedCostIsUnknown counts the cost of an agent that failed and reported nothing as unknown, not as zero.
func TestUnreportedCostIsUnknown(t *testing.T) {
	priced := &price.Price{Input: 1, Output: 1}
	const reported = `{"type":"result","is_error":true,"result":"it broke","total_cost_usd":0.25,` +
		`"usage":{"input_tokens":3,"output_tokens":4}}`
	for name, row := range map[string]struct {
		kind, stdout string
		exit         agent.Exit
		price        *price.Price
		known        run.CostKnown
		usd          float64
	}{
		"exit 1":                      {adapter.ClaudeJSON, "", agent.Exit{Code: 1}, nil, run.CostUnknown, 0},
		"timed out":                   {adapter.Text, "", agent.Exit{Code: -1, TimedOut: true}, priced, run.CostUnknown, 0},
		"exit 0, nothing":             {adapter.ClaudeJSON, "", agent.Exit{}, nil, run.CostUnknown, 0},
		"exit 1, after a report":      {adapter.ClaudeJSON, reported, agent.Exit{Code: 1}, nil, run.CostExact, 0.25},
		"its program was not started": {adapter.ClaudeJSON, "", agent.Exit{Code: 127}, nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			reply, failure := agent.ReadReply(row.kind, []byte(row.stdout), row.exit, "", agent.Prices{Own: row.price}, 100)
			require.NotNil(t, failure)
			cost := spend(reply, failure)
			require.Equal(t, row.known, cost.Known)
			require.InDelta(t, row.usd, cost.USD, 1e-9)
		})
	}
}
