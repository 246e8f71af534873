package conformance

import (
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// runsWithErrors returns the runs with errors.
func runsWithErrors(t *testing.T) []result {
	t.Helper()
	return []result{failingRun.get(t), recoveredRun.get(t), claudeRun.get(t), screenshotRun.get(t)}
}

// categories are the fifteen of requirement 002 §1.5.
var categories = []string{
	"claude-p-exit-nonzero", "claude-p-timeout", "claude-p-spawn-failed", "output-truncated", "output-empty",
	"output-no-artifact",
	"output-no-modification", "validation-failed", "screenshot-failed", "rate-limit", "budget-exceeded", "file-io",
	"state-corruption",
	"config-mismatch", "unknown",
}

// errorRows are the records of errors.
func errorRows() rows {
	return rows{
		"ER-01": func(t *testing.T) {
			for _, r := range runsWithErrors(t) {
				logged, kept := r.log(t, "errors.jsonl"), r.state(t).objects(t, "errorHistory")
				require.NotEmpty(t, kept, r.dir)
				for _, e := range kept {
					require.Equal(t, []string{"category", "context", "diagnostics", "message", "recovered",
						"recoveredAtAttempt", "timestamp"}, e.keys())
					require.Regexp(t, moment, e.text(t, "timestamp"))
					require.NotEmpty(t, e.text(t, "message"))
					at, numbered := e["recoveredAtAttempt"].(float64)
					require.Equal(t, e["recovered"] == true, numbered && at > 0, "%v", e)
					same := where(logged, "ts", e["timestamp"])
					for _, key := range []string{"context", "category", "message", "recovered", "recoveredAtAttempt"} {
						same = where(same, key, e[key])
					}
					require.NotEmpty(t, same, "the log has no line of %v", e)
				}
				recovered := where(logged, "recovered", true)
				require.Len(t, where(kept, "recovered", true), len(recovered),
					"every error that was recovered from has a record")
				require.GreaterOrEqual(t, len(logged)-len(recovered), len(where(kept, "recovered", false)),
					"a start without success is one record, and a line for each attempt")
			}
		},
		"ER-02 ER-03": func(t *testing.T) {
			r, seen := failingRun.get(t), map[string]bool{}
			output := r.errorsOf(t, passOf(t, failing, "crash"))[0].text(t, "diagnostics") // of 10,000 characters
			require.Greater(t, utf8.RuneCountInString(output), 500)
			require.Contains(t, output, "Connection reset by peer", "the end has the cause")
			for _, r := range runsWithErrors(t) {
				for _, e := range r.log(t, "errors.jsonl") {
					require.LessOrEqual(t, utf8.RuneCountInString(e.text(t, "diagnostics")), 2000)
					require.Regexp(t, `^(pass-[1-9]\d*|pa-cycle-[1-9]\d*-(auditor-[A-C]|weaver|refine|screenshot))$`,
						e.text(t, "context"))
					seen[e.text(t, "context")] = true
				}
			}
			for _, context := range []string{"pass-3", "pa-cycle-1-auditor-B", "pa-cycle-1-refine",
				"pa-cycle-2-screenshot"} {
				require.True(t, seen[context], context)
			}
		},
		"ER-04": func(t *testing.T) {
			seen := map[string]bool{}
			for _, r := range append(runsWithErrors(t), budgetRun.get(t), demoRun.get(t), archivedRun.get(t),
				killedRun.get(t)) {
				for _, e := range r.log(t, "errors.jsonl") {
					require.Contains(t, categories, e.text(t, "category"))
					seen[e.text(t, "category")] = true
				}
			}
			missing := slices.DeleteFunc(slices.Clone(categories), func(c string) bool { return seen[c] })
			require.Equal(t, []string{"output-no-modification", "file-io", "unknown"}, missing,
				"the first is not an error; scripts show the others")
			require.NotEmpty(t, where(demoRun.get(t).log(t, "quality.jsonl"), "type", "no-modification"))
		},
	}
}
