package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// everyRun returns the shared runs that have completed.
func everyRun(t *testing.T) []result {
	t.Helper()
	return []result{
		demoRun.get(t), failingRun.get(t), tinyRun.get(t), recoveredRun.get(t), pausedRun.get(t), budgetRun.get(t),
		claudeRun.get(t), moneyRun.get(t), screenshotRun.get(t), killedRun.get(t), lostRun.get(t),
	}
}

// costRows are the costs in state.json.
func costRows() rows {
	return rows{
		"CO-01 CO-07": func(t *testing.T) {
			for _, r := range everyRun(t) {
				sums := map[string]float64{}
				for _, row := range r.costs(t) {
					for name, key := range map[string]string{
						"totalInputTokens": "inputTokens", "totalOutputTokens": "outputTokens",
						"totalCacheReadTokens": "cacheRead", "totalCacheWriteTokens": "cacheWrite",
						"totalEstimatedCostUsd": "costUsd",
					} {
						sums[name] += row.number(t, key)
					}
				}
				s, total := r.state(t), 0.0
				for name, want := range sums {
					require.InDelta(t, want, s.number(t, "cost."+name), 1e-6, "%s of %s", name, r.dir)
				}
				for n := range s.in(t, "passRecords") {
					total += s.number(t, "passRecords."+n+".tokens.estimatedCostUsd")
				}
				for n := range s.in(t, "paCycleRecords") {
					total += s.number(t, "paCycleRecords."+n+".totalCycleCostUsd")
				}
				require.InDelta(t, total, s.number(t, "cost.totalEstimatedCostUsd"), 1e-6, r.dir)
				require.Positive(t, total)
			}
		},
		"CO-02 CO-03 CO-04": func(t *testing.T) {
			s := demoRun.get(t).state(t)
			for key, want := range map[string]map[string]float64{
				"byRole":    {"builder": 35, "verifier": 21, "pa": 14},
				"bySubset":  {"S1": 8, "S2": 8, "S3": 8, "S4": 8, "S5": 8, "S6": 8, "S7": 8},
				"byPACycle": {"1": 5, "2": 5, "3": 4},
			} {
				got := map[string]float64{}
				for name, row := range s.in(t, "cost."+key) {
					row := object(row.(map[string]any))
					require.Equal(t, []string{"costUsd", "inputTokens", "outputTokens", "passCount"}, row.keys())
					require.Positive(t, row.number(t, "costUsd"))
					got[name] = row.number(t, "passCount")
				}
				require.Equal(t, want, got, key)
			}
			total := 0.0
			for _, name := range []string{"builder", "verifier", "pa"} {
				total += s.number(t, "cost.byRole."+name+".costUsd")
			}
			require.InDelta(t, s.number(t, "cost.totalEstimatedCostUsd"), total, 1e-6)
			for _, n := range []string{"1", "2", "3"} {
				require.InDelta(t, s.number(t, "paCycleRecords."+n+".totalCycleCostUsd"),
					s.number(t, "cost.byPACycle."+n+".costUsd"), 1e-6)
			}
		},
		"CO-05 CO-06": func(t *testing.T) {
			r := budgetRun.get(t)
			require.InDelta(t, 0.5, outOfBudget.number(t, "cost.budgetHardCapUsd"), 1e-9)
			require.InDelta(t, 0.4, outOfBudget.number(t, "cost.budgetWarningThresholdUsd"), 1e-9, "80 % by default")
			require.Equal(t, true, outOfBudget.at(t, "cost.warningThresholdHit"))
			require.Equal(t, true, outOfBudget.at(t, "cost.hardCapHit"))
			require.Equal(t, 1, count(r.text(t), `\[WARN\]  Budget warning: `))
			require.Equal(t, false, r.state(t).at(t, "cost.hardCapHit"), "after the raise")
			require.Equal(t, false, tinyRun.get(t).state(t).at(t, "cost.hardCapHit"))
		},
	}
}
