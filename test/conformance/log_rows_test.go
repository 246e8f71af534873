package conformance

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var sixLogs = []string{"cost.jsonl", "decisions.jsonl", "errors.jsonl", "orchestrator.log", "passes.jsonl",
	"quality.jsonl"}

// logRows are the six logs, and the lines of the five that programs read.
func logRows() rows {
	return rows{
		"LG-01 LG-03": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t), budgetRun.get(t)} {
				require.Equal(t, sixLogs, names(t, r.path(logs)), r.dir)
				for _, name := range sixLogs {
					if strings.HasSuffix(name, ".jsonl") {
						r.log(t, name)
					}
				}
			}
		},
		"LG-02": func(t *testing.T) {
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t)} {
				require.Empty(t, r.seen.shrunk, r.dir)
				require.Len(t, r.seen.sizes, 6)
			}
			r := pausedRun.get(t)
			for name, was := range atPause.logs {
				require.True(t, strings.HasPrefix(string(r.file(t, logs+name)), was), name)
			}
		},
		"LG-04": func(t *testing.T) {
			r := pausedRun.get(t)
			require.Contains(t, atPause.report, "1 line skipped: torn, or of another program.")
			set, err := filepath.Glob(r.path("_orchestrator/torn/_orchestrator-logs-cost-damaged-*"))
			require.NoError(t, err)
			require.Len(t, set, 1, "the torn line is kept in a separate file")
			require.True(t, strings.HasSuffix(string(read(t, set[0])), torn))
			require.Len(t, r.costs(t), len(tinyRun.get(t).costs(t)), "nothing else is lost")
			require.NotContains(t, starter(t, "cost-report", r.dir), "were skipped")
			report := parse(t, []byte(starter(t, "cost-report", "--json", r.dir)))
			require.InDelta(t, r.state(t).number(t, "cost.totalEstimatedCostUsd"), report.number(t, "total.cost_usd"), 1e-6)
		},
		"LG-19": testDecisions,
		"LG-20": func(t *testing.T) {
			skipped := pausedRun.get(t).decisions(t, "skip-pass")
			require.Len(t, skipped, 3+6, "one for each pass that is done, at each of the two resumes")
			for i, n := range []int{1, 2, 3, 1, 2, 3, 4, 5, 6} {
				require.Equal(t, "pass already completed", skipped[i].text(t, "reason"))
				require.EqualValues(t, n, skipped[i].number(t, "passNumber"))
			}
			require.Empty(t, demoRun.get(t).decisions(t, "skip-pass"))
		},
		"LG-21 ST-33": func(t *testing.T) {
			r := recoveredRun.get(t)
			rows, history := r.log(t, "errors.jsonl"), r.state(t).objects(t, "errorHistory")
			for _, row := range rows {
				require.ElementsMatch(t, []string{"ts", "context", "category", "message", "recovered",
					"recoveredAtAttempt", "diagnostics"}, row.keys())
			}
			for _, all := range [][]object{rows, history} {
				found := where(all, "context", "pass-3")
				require.Len(t, found, 1)
				require.Equal(t, true, found[0]["recovered"])
				require.EqualValues(t, 2, found[0]["recoveredAtAttempt"])
				require.Contains(t, found[0].text(t, "diagnostics"), "Connection reset by peer")
			}
			require.Len(t, history, len(where(rows, "recovered", true))+2,
				"one record for all attempts of auditor B, and one for those of refine")
		},
		"LG-22": func(t *testing.T) {
			rows, total := demoRun.get(t).log(t, "cost.jsonl"), 0.0
			require.Len(t, rows, 70)
			perCycle := map[any]int{}
			for _, row := range rows {
				perCycle[row["paCycle"]]++
			}
			require.Equal(t, map[any]int{nil: 56, 1.0: 5, 2.0: 5, 3.0: 4}, perCycle)
			for _, row := range rows {
				require.Subset(t, row.keys(), []string{"ts", "role", "model", "inputTokens", "outputTokens",
					"cacheRead", "cacheWrite", "costUsd", "cumulativeCostUsd"})
				_, cycle := row["paCycle"]
				_, pass := row["pass"]
				require.NotEqual(t, cycle, pass, "a line is of a pass or of a cycle")
				require.Equal(t, pass, row["subset"] != nil)
				total += row.number(t, "costUsd")
				require.InDelta(t, total, row.number(t, "cumulativeCostUsd"), 1e-6)
			}
		},
		"LG-23": testQualityLines,
		"LG-24": func(t *testing.T) {
			rows := demoRun.get(t).log(t, "passes.jsonl")
			require.Len(t, rows, 56)
			for i, row := range rows {
				rec := demoRun.get(t).record(t, i+1)
				require.Subset(t, row.keys(), []string{"conviction", "discovery", "artifactSizeChars"})
				for ours, theirs := range map[string]string{
					"pass": "globalPassNumber", "subset": "subsetId", "subsetPass": "subsetPassNumber",
					"rotation": "rotation", "role": "agentRole",
					"durationMs": "durationMs", "validationPassed": "validationPassed", "retries": "retryCount",
					"inputTokens":  "tokens.inputTokens",
					"outputTokens": "tokens.outputTokens", "costUsd": "tokens.estimatedCostUsd",
					"conviction": "hasConvictionAddition", "discovery": "hasDiscoveryAddition",
				} {
					require.Equal(t, rec.at(t, theirs), row.at(t, ours), "%s of pass %d", ours, i+1)
				}
			}
		},
		"LG-26": func(t *testing.T) {
			plain := []string{"execute-pass", "accept-output", "extract-conviction", "extract-discovery",
				"create-checkpoint"}
			for _, r := range []result{demoRun.get(t), recoveredRun.get(t), pausedRun.get(t), budgetRun.get(t),
				archivedRun.get(t)} {
				for _, d := range r.log(t, "decisions.jsonl") {
					if !slices.Contains(plain, d.text(t, "decision")) {
						require.NotEmpty(t, d.text(t, "reason"), "%v", d)
					}
				}
			}
		},
	}
}

// testDecisions requires one decision of each kind, with its fields.
func testDecisions(t *testing.T) {
	demo, recovered, paused, poor := demoRun.get(t), recoveredRun.get(t), pausedRun.get(t), budgetRun.get(t)
	for _, row := range []struct {
		r        result
		decision string
		n        int // how often; 0: at least once
		fields   []string
	}{
		{paused, "resume", 2, []string{"reason", "passNumber"}},
		{paused, "skip-pass", 9, []string{"reason", "passNumber"}},
		{demo, "execute-pass", 70, []string{"role"}},
		{demo, "accept-output", 70, []string{"validationResult"}},
		{demo, "extract-conviction", 56, []string{"length", "passNumber"}},
		{demo, "skip-discovery", 1, []string{"reason", "passNumber"}},
		{demo, "create-checkpoint", 10, []string{"id", "atPass", "artifactHash"}},
		{poor, "pause-pipeline", 1, []string{"reason", "cost", "threshold"}},
		{recovered, "retry-pass", 0, []string{"attempt", "reason", "exitCode"}},
		{demo, "accept-no-modification", 2, []string{"reason", "passNumber"}},
	} {
		found := row.r.decisions(t, row.decision)
		require.NotEmpty(t, found, row.decision)
		if row.n > 0 {
			require.Len(t, found, row.n, row.decision)
		}
		for _, d := range found {
			require.Subset(t, d.keys(), append(row.fields, "ts"), "%v", d)
		}
	}
	pass := where(demo.decisions(t, "execute-pass"), "passNumber", 36.0)[0]
	for key, want := range map[string]string{"role": "builder", "subset": "S5", "rotation": "B"} {
		require.Equal(t, want, pass[key], key)
	}
	require.Equal(t, labelsOf(36), pass.list(t, "files"))
	require.Equal(t, "no discovery markers found in output", demo.decisions(t, "skip-discovery")[0].text(t, "reason"))
	require.EqualValues(t, 5, where(demo.decisions(t, "accept-output"), "passNumber", 36.0)[0].number(t, "checks"))
	spent := poor.decisions(t, "pause-pipeline")[0]
	require.Positive(t, spent.number(t, "cost"))
	require.Less(t, spent.number(t, "threshold")-spent.number(t, "cost"), 0.1, "too little for another call")
}

func testQualityLines(t *testing.T) {
	rows := demoRun.get(t).log(t, "quality.jsonl")
	for kind, want := range map[string]struct {
		n    int
		keys []string
	}{
		"validation":      {56, []string{"result", "checks", "warnings", "warningDetails"}},
		"verifier-depth":  {21, []string{"deeplyIntegrated", "surfaceLevel", "absent"}},
		"pa-score":        {3, []string{"paCycle", "score", "threshold", "auditorCount"}},
		"no-modification": {2, []string{"subset", "rotation"}},
	} {
		found := where(rows, "type", kind)
		require.Len(t, found, want.n, kind)
		for _, row := range found {
			require.Subset(t, row.keys(), append(want.keys, "ts"))
		}
	}
	depth := where(rows, "type", "verifier-depth")
	for i, want := range [][]float64{{0, 3, 2}, {3, 2, 0}, {5, 0, 0}} {
		require.Equal(t, want, []float64{depth[i].number(t, "deeplyIntegrated"), depth[i].number(t, "surfaceLevel"),
			depth[i].number(t, "absent")})
	}
	scores := where(rows, "type", "pa-score")
	require.Nil(t, scores[0]["metThreshold"])
	require.Equal(t, true, scores[2]["metThreshold"])
	require.Equal(t, []any{"Discovery log entry missing"},
		where(where(rows, "type", "validation"), "pass", 35.0)[0].list(t, "warningDetails"))
}
