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

// A reset leaves the row of a call behind, and the run then finds its answer and journals it again. What a revert
// leaves behind has been paid for.
func TestCostReportLeavesOutWhatAResetAbandoned(t *testing.T) {
	for cause, want := range map[string]float64{"reset": 5, "revert": 7} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(rundir.LogsDir)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(rundir.CostLog)), []byte(
			`{"seq":2,"role":"builder","model":"m","costUsd":1}
{"seq":3,"role":"builder","model":"m","costUsd":2}
{"seq":5,"role":"builder","model":"m","costUsd":4}
`), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, rundir.EventsFile), []byte(
			`{"seq":1,"kind":"run.start"}
{"seq":2,"kind":"pass.end"}
{"seq":3,"kind":"pass.end"}
{"seq":4,"kind":"run.reverted","payload":{"to":2,"cause":"`+cause+`","state":{"v":1}}}
{"seq":5,"kind":"pass.end"}
`), 0o644))
		r, err := readCosts(rundir.At(dir))
		require.NoError(t, err)
		require.InDelta(t, want, r.Total.USD, 0, cause)
	}
}
