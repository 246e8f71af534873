package conformance

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// everyRun are the shared runs that are over. The slow run, which failingRun begins, takes its time beside those in
// between; later ones kill its worker.
func everyRun(t *testing.T) []result {
	t.Helper()
	return []result{
		demoRun.get(t), failingRun.get(t), againRun.get(t), troubledRun.get(t), restedRun.get(t), budgetRun.get(t),
		claudeRun.get(t), moneyRun.get(t), slowRun.get(t),
		blindRun.get(t), killedRun.get(t), lostRun.get(t),
	}
}

// costRows are what state.json says a run has cost.
func costRows() rows {
	return rows{
		"CO-01": func(t *testing.T) {
			for _, r := range everyRun(t) {
				var in, out, read, write, usd float64
				for _, row := range r.costs(t) {
					in, out, usd = in+row.number(t, "inputTokens"), out+row.number(t, "outputTokens"),
						usd+row.number(t, "costUsd")
					read, write = read+row.number(t, "cacheRead"), write+row.number(t, "cacheWrite")
				}
				cost := r.state(t).in(t, "cost")
				for name, want := range map[string]float64{
					"totalInputTokens": in, "totalOutputTokens": out, "totalCacheReadTokens": read,
					"totalCacheWriteTokens": write, "totalEstimatedCostUsd": usd,
				} {
					require.InDelta(t, want, cost.number(t, name), 1e-6, "%s of %s", name, r.dir)
				}
			}
		},
		"CO-02": func(t *testing.T) {
			roles := demoRun.get(t).state(t).in(t, "cost.byRole")
			counted(t, roles, map[string]int{"builder": 35, "verifier": 21, "pa": 14})
			total := 0.0
			for name := range roles {
				total += roles.number(t, name+".costUsd")
			}
			require.InDelta(t, demoRun.get(t).state(t).number(t, "cost.totalEstimatedCostUsd"), total, 1e-6)
		},
		"CO-03": func(t *testing.T) {
			counted(t, demoRun.get(t).state(t).in(t, "cost.bySubset"),
				map[string]int{"S1": 8, "S2": 8, "S3": 8, "S4": 8, "S5": 8, "S6": 8, "S7": 8})
		},
		"CO-04": func(t *testing.T) {
			counted(t, demoRun.get(t).state(t).in(t, "cost.byPACycle"), map[string]int{"1": 5, "2": 5, "3": 4})
			for n := 1; n <= 3; n++ {
				require.InDelta(t, demoRun.get(t).cycle(t, n).number(t, "totalCycleCostUsd"),
					demoRun.get(t).state(t).number(t, "cost.byPACycle."+strconv.Itoa(n)+".costUsd"), 1e-6)
			}
		},
		"CO-05": func(t *testing.T) {
			budgetRun.get(t)
			require.InDelta(t, 0.5, broke.number(t, "cost.budgetHardCapUsd"), 1e-9)
			require.InDelta(t, 0.4, broke.number(t, "cost.budgetWarningThresholdUsd"), 1e-9,
				"80 % when the definition says nothing")
		},
		"CO-06": func(t *testing.T) {
			r := budgetRun.get(t)
			require.Equal(t, true, broke.at(t, "cost.warningThresholdHit"))
			require.Equal(t, true, broke.at(t, "cost.hardCapHit"))
			require.Equal(t, 1, count(r.text(t), `\[WARN\]  Budget warning: `))
			require.Equal(t, false, r.state(t).at(t, "cost.hardCapHit"), "the raise took it back")
			require.Equal(t, false, againRun.get(t).state(t).at(t, "cost.hardCapHit"))
		},
		"CO-07": func(t *testing.T) {
			for _, r := range everyRun(t) {
				total, s := 0.0, r.state(t)
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
	}
}

// counted wants breakdown rows with these names and numbers of passes.
func counted(t *testing.T, rows object, want map[string]int) {
	t.Helper()
	require.Len(t, rows, len(want))
	for name, n := range want {
		row := rows.in(t, name)
		require.Equal(t, []string{"costUsd", "inputTokens", "outputTokens", "passCount"}, row.keys())
		require.EqualValues(t, n, row.number(t, "passCount"), name)
		require.Positive(t, row.number(t, "costUsd"))
	}
}
