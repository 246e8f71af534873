package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

// TestReportedCosts has rows of each breakdown that differ in every figure.
func TestReportedCosts(t *testing.T) {
	row := func(n int64) rundir.RoleCost {
		return rundir.RoleCost{InputTokens: 10 * n, OutputTokens: 3 * n, CostUSD: float64(n), PassCount: int(n),
			UnknownCalls: int(2 * n)}
	}
	shown := func(name string, n int64, share int) costRow {
		return costRow{Name: name, Passes: int(n), Input: 10 * n, Output: 3 * n, USD: float64(n), Unknown: int(2 * n),
			Share: share}
	}
	var s source
	s.book.Cost = rundir.CostTracker{
		TotalEstimatedCostUSD: 8,
		ByRole:                map[string]rundir.RoleCost{"builder": row(1), "verifier": row(2)},
		BySubset:              map[string]rundir.RoleCost{"S2": row(3), "S10": row(4)},
		ByPACycle:             map[string]rundir.RoleCost{"1": row(5)},
	}
	s.found.Spend.USD, s.found.Spend.Unknown, s.found.Spend.Sunk, s.found.Spend.CapUSD = 8, 7, 6, 5
	require.Equal(t, money{Total: 8, Unknown: 7, Sunk: 6, Cap: 5, Parts: []part{
		{Name: "role", Rows: []costRow{shown("builder", 1, 13), shown("verifier", 2, 25)}},
		{Name: s.words().Round, Rows: []costRow{shown(s.words().Round+" 1", 5, 63)}},
		{Name: "set", Rows: []costRow{shown("S2", 3, 38), shown("S10", 4, 50)}},
	}}, breakdown(s))
}
