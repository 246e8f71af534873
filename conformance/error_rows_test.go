package conformance

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// inTrouble are the runs in which something went wrong.
func inTrouble(t *testing.T) []result {
	t.Helper()
	return []result{failingRun.get(t), slowRun.get(t), troubledRun.get(t), claudeRun.get(t), blindRun.get(t)}
}

// errorRows are the records of what went wrong.
func errorRows() rows {
	return rows{
		"ER-01": func(t *testing.T) {
			for _, r := range inTrouble(t) {
				logged, kept := r.log(t, "errors.jsonl"), r.state(t).objects(t, "errorHistory")
				require.NotEmpty(t, kept, r.dir)
				require.Len(t, logged, len(kept))
				for i, e := range kept {
					require.Equal(t, []string{"category", "context", "diagnostics", "message", "recovered", "recoveredAtAttempt", "timestamp"}, e.keys())
					require.Regexp(t, moment, e.text(t, "timestamp"))
					require.NotEmpty(t, e.text(t, "message"))
					at, numbered := e["recoveredAtAttempt"].(float64)
					require.Equal(t, e["recovered"] == true, numbered && at > 1, "%v", e)
					for _, key := range []string{"context", "category", "message", "recovered", "recoveredAtAttempt", "diagnostics"} {
						require.Equal(t, e[key], logged[i][key], "the log and the state tell the same")
					}
					require.Equal(t, e["timestamp"], logged[i]["ts"])
				}
			}
		},
		"ER-02": func(t *testing.T) {
			seen := map[string]bool{}
			for _, r := range inTrouble(t) {
				for _, e := range r.log(t, "errors.jsonl") {
					require.Regexp(t, `^(pass-[1-9]\d*|pa-cycle-[1-9]\d*-(auditor-[A-C]|weaver|refine|screenshot))$`, e.text(t, "context"))
					seen[e.text(t, "context")] = true
				}
			}
			for _, context := range []string{"pass-3", "pa-cycle-1-auditor-B", "pa-cycle-1-refine", "pa-cycle-2-screenshot"} {
				require.True(t, seen[context], context)
			}
		},
		"ER-03": func(t *testing.T) {
			r := failingRun.get(t)
			said := r.errorsOf(t, passOf(t, failing, "crash"))[0].text(t, "diagnostics")
			require.LessOrEqual(t, utf8.RuneCountInString(said), 2000, "of ten thousand characters")
			require.Greater(t, utf8.RuneCountInString(said), 500)
			require.Contains(t, said, "Connection reset by peer", "the end says more than the beginning")
			for _, r := range inTrouble(t) {
				for _, e := range r.log(t, "errors.jsonl") {
					require.LessOrEqual(t, utf8.RuneCountInString(e.text(t, "diagnostics")), 2000)
				}
			}
		},
	}
}
