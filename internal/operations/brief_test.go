package operations

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

func TestBriefOfHaltedRun(t *testing.T) {
	dir := projector.At(t.TempDir())
	require.NoError(t, os.MkdirAll(dir.Path(layout.Orchestrator), 0o700))
	no := false
	s := run.State{
		Status: run.Halted, Reason: "final_acceptance_rejected", Pipeline: "review", Task: "Fix it.\n## Not a heading",
		Judged: &run.Judged{Word: "rejected", Approved: &no, Role: "reviewer", Outdated: true},
		Decisions: []run.PastDecision{{Kind: run.QuestionDelivery, Action: "skip", Phase: "delivery", By: "ada",
			Feedback: "not yet"}},
	}
	text, err := briefOf(dir, run.Claim{RunID: "r-1"}, s)
	require.NoError(t, err, "a directory without a plan is of an earlier version")
	require.Equal(t, `Run r-1 of review ended: halted, final_acceptance_rejected.

## Its task

> Fix it.
> ## Not a heading

## Its last verdict: rejected by reviewer; the work has changed since

Its reply is missing.

## Decisions of operators

- skip of delivery delivery by ada: not yet
`, text)
	require.NoError(t, os.WriteFile(dir.Path(layout.PlanFile), []byte("{"), 0o600))
	_, err = briefOf(dir, run.Claim{}, s)
	require.ErrorContains(t, err, "plan.json")
	s.Task = strings.Repeat("é", maxBriefText+1)
	require.NoError(t, os.Remove(dir.Path(layout.PlanFile)))
	text, err = briefOf(dir, run.Claim{}, s)
	require.NoError(t, err)
	require.Contains(t, text, "é …\n")
}
