package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/run"
)

const spentAll = `session s-1; request m1; printf '{"type":"result","subtype":"error_max_budget_usd","is_error":true,` +
	`"errors":["Reached maximum budget"],"total_cost_usd":0.3,"usage":{"input_tokens":10,"output_tokens":5}}\n'; exit 1`

// TestAgentGetsWhatItMaySpend unless its command has another maximum: the budget of the run is not its cause then.
func TestAgentGetsWhatItMaySpend(t *testing.T) {
	for own, args := range map[string]string{
		", -p": "-p --max-budget-usd 0.2500", ", -p, --max-budget-usd, '0.1'": "-p --max-budget-usd 0.1",
	} {
		h := claude(t, spentAll)
		h.runAgent(h.agent + own)
		h.in.BudgetUSD = 0.25
		res := h.result()
		require.Equal(t, args, h.given("args", 1))
		require.Equal(t, run.CategoryBudgetExceeded, res.Outcome)
		require.True(t, res.Permanent)
		require.Equal(t, own == ", -p", res.OverBudget)
		require.InDelta(t, 0.3, res.Spend.USD, 1e-9)
	}
}

// TestPricesOfSettingsAreRecorded reads an answer again with other prices: its cost stays.
func TestPricesOfSettingsAreRecorded(t *testing.T) {
	h := claude(t, `session s-1; printf '{"type":"result","subtype":"success","is_error":false,"result":"hello",`+
		`"usage":{"input_tokens":1000000,"output_tokens":1000000},`+
		`"modelUsage":{"own-1":{"inputTokens":1000000,"outputTokens":1000000}}}\n'`)
	h.acts.prices = price.List{{Pattern: "own-*", Price: price.Of(2, 3, 0.5, 4)}}
	res := h.result()
	require.InDelta(t, 5, res.Spend.USD, 1e-9)
	require.Equal(t, []run.ModelPrice{{Model: "own-1", Input: 2, Output: 3, CacheRead: 0.5, CacheWrite: 4}},
		res.Spend.Prices)

	h.acts.prices = price.List{{Pattern: "own-*", Price: price.Of(20, 30, 0, 0)}}
	again := h.result()
	require.True(t, again.Reused)
	require.Equal(t, res.Spend, again.Spend)
}
