package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// lanesAtWork has an active lane, one that is between two steps, and one that waits.
func lanesAtWork() run.State {
	s := run.State{Status: run.Running, Pipeline: "migrate", Wording: run.WordingStages}
	s.Lanes = &run.Lanes{Count: 9, Begun: 5, Done: 3, Failed: 1, Merged: 2, Active: []run.Lane{
		{Index: 2, Key: "c", Name: "c.go", Step: 1}, {Index: 3, Key: "d", Name: "d.go"},
		{Index: 4, Key: "e", Name: "e.go", Waiting: &run.LaneWait{Why: run.LaneFailed, Question: "it is broken"}},
	}}
	s.InFlight = []run.InFlightCall{{Step: "work/2", Lane: "c", Role: "reviewer", Attempt: 2, Call: "call",
		StartedAt: "2026-03-01T10:00:00.000Z"}}
	return s
}

func TestDetailsListLanes(t *testing.T) {
	text := workflows.Details(lanesAtWork(), workflows.Input{})
	require.Contains(t, text, "- 3 of 9 lanes done, 2 active, 1 failed, 1 waiting, 2 merged\n"+
		"- lane 3, **c.go**: step 2, reviewer, attempt 2, since 2026-03-01T10:00:00.000Z\n"+
		"- lane 4, **d.go**: step 1\n"+
		"- lane 5, **e.go**: waits for an operator: it is broken\n")
	require.NotContains(t, text, "- running:", "calls of lanes are listed once")
}
