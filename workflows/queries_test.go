package workflows_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestListsOfQueriesAreNeverNull: clients in other languages read lists, of a run at its start and at its end.
func TestListsOfQueriesAreNeverNull(t *testing.T) {
	check := func(w *harness, at string) {
		for _, name := range []string{workflows.QueryStatus, workflows.QueryPlan, workflows.QueryCost, workflows.QueryHandoff,
			workflows.QueryHeld, workflows.QueryDirectory, workflows.QueryCheckpoints} {
			answer := strings.ReplaceAll(string(query[json.RawMessage](w, name)), `"score":null`, "") // it is no list
			require.NotContains(t, answer, "null", "%s, %s", name, at)
		}
	}
	w := newHarness(t, twoPasses)
	w.dir.when(run.KindRunStart, func() { check(w, "at the start") })
	w.done()
	check(w, "at the end")
}
