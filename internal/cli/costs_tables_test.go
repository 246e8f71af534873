package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

// TestCostReportTables sums a cost log by role, set, round and model. No two rows have the same figures.
func TestCostReportTables(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, filepath.FromSlash(rundir.CostLog))
	require.NoError(t, os.MkdirAll(filepath.Dir(log), 0o755))
	require.NoError(t, os.WriteFile(log, []byte(`{"pass":1,"role":"builder","subset":"S1","model":"m","inputTokens":1,`+
		`"outputTokens":10,"cacheRead":100,"cacheWrite":1000,"costUsd":1,"costKnown":"exact"}
{"pass":2,"role":"verifier","subset":"S1","model":"m","inputTokens":2,"outputTokens":20,"costUsd":2,"estimated":true}
{"pass":3,"role":"builder","subset":"S2","model":"n","inputTokens":4,"outputTokens":40,"costUsd":4,"costKnown":"exact"}
{"paCycle":1,"role":"weaver","model":"m","inputTokens":8,"outputTokens":80,"costUsd":8,"costKnown":"unknown"}
{"paCycle":2,"role":"weaver","model":"m","inputTokens":16,"outputTokens":160,"costUsd":16,"costKnown":"exact"}
`), 0o644))
	r, err := readCosts(rundir.At(dir))
	require.NoError(t, err)
	require.Zero(t, r.Skipped)
	row := func(name string, calls int, tokens int64) CostLine {
		return CostLine{Name: name, Calls: calls, Input: tokens, Output: 10 * tokens, USD: float64(tokens)}
	}
	with := func(l CostLine, change func(*CostLine)) CostLine {
		change(&l)
		return l
	}
	cached := func(l *CostLine) { l.CacheRead, l.CacheWrite = 100, 1000 }
	both := func(l *CostLine) { cached(l); l.Estimated, l.Unknown = 2, 1 }
	require.Equal(t, with(row("total", 5, 31), both), r.Total)
	require.ElementsMatch(t, []CostLine{with(row("builder", 2, 5), cached),
		with(row("verifier", 1, 2), func(l *CostLine) { l.Estimated = 2 }),
		with(row("weaver", 2, 24), func(l *CostLine) { l.Unknown = 1 })}, r.Role)
	require.ElementsMatch(t, []CostLine{
		with(row("S1", 2, 3), func(l *CostLine) { cached(l); l.Estimated = 2 }), row("S2", 1, 4)}, r.Subset)
	require.ElementsMatch(t, []CostLine{
		with(row("round 1", 1, 8), func(l *CostLine) { l.Unknown = 1 }), row("round 2", 1, 16)}, r.Cycle)
	require.ElementsMatch(t, []CostLine{with(row("m", 4, 27), both), row("n", 1, 4)}, r.Model)
}
