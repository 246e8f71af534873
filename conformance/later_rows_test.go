package conformance

import (
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// later also runs the checks that are known to fail.
var later = flag.Bool("later", false, "also run the checks of rows that docs/conformance.md puts off")

// TestLaterRows runs the checks of rows of which the page says what is missing.
func TestLaterRows(t *testing.T) {
	if !*later {
		t.Skip("docs/conformance.md says what is missing; -later runs these checks")
	}
	for id, check := range laterRows() {
		t.Run(id, check)
	}
}

// categories are the fifteen of requirement 002 §1.5.
var categories = []string{
	"claude-p-exit-nonzero", "claude-p-timeout", "claude-p-spawn-failed", "output-truncated", "output-empty", "output-no-artifact",
	"output-no-modification", "validation-failed", "screenshot-failed", "rate-limit", "budget-exceeded", "file-io", "state-corruption",
	"config-mismatch", "unknown",
}

// laterRows are checks that fail as things are.
func laterRows() rows {
	return rows{
		"ER-04": func(t *testing.T) {
			seen := map[string]bool{}
			for _, r := range append(inTrouble(t), budgetRun.get(t), demoRun.get(t), archivedRun.get(t), fullRun.get(t)) {
				for _, e := range r.log(t, "errors.jsonl") {
					require.Contains(t, categories, e.text(t, "category"))
					seen[e.text(t, "category")] = true
				}
			}
			missing := slices.DeleteFunc(slices.Clone(categories), func(c string) bool { return seen[c] })
			require.Empty(t, missing, "no record of these")
		},
		"RS-08": func(t *testing.T) {
			lostRun.get(t)
			require.NotZero(t, lost.wreck.code)
			require.Zero(t, lost.asked, "an agent was asked")
			require.Equal(t, lost.wreckBefore, lost.wreckAfter, "what is left was touched")
			require.Regexp(t, `(?i)damaged|unreadable|cannot be read`, lost.wreck.said)
		},
	}
}
