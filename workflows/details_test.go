package workflows_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lanesAtWork has an active lane, and one about which an operator decides.
func lanesAtWork() run.State {
	s := run.State{Status: run.Running, Pipeline: "migrate", Wording: run.WordingStages}
	s.Lanes = &run.Lanes{Count: 9, Begun: 5, Done: 3, Failed: 1, Merged: 2, Active: []run.Lane{
		{LanePlace: run.LanePlace{Index: 2, Key: "c", Name: "c.go"}},
	}, Asked: []run.Lane{
		{LanePlace: run.LanePlace{Index: 4, Key: "e", Name: "e.go"}, Outcome: run.ChildFailed, Reason: "it is broken"},
	}}
	return s
}

// detailsOf has states: one for each part of the details that depends on the state.
var detailsOf = map[string]run.State{
	"no reason, no score, the first round": {Pipeline: "page", Status: run.Running, Phase: "write", Round: 1,
		Passes: run.PassCount{Total: 4}},
	"a later round of a set": {Pipeline: "page", Status: run.Running, Phase: "write", Set: "S2", Round: 2, Rounds: 3},
	"a score in stages": {Wording: run.WordingStages, Status: run.Running, Phase: "review",
		Stages: []run.StageRef{{Name: "plan"}, {Name: "review"}}, Score: new(3.25)},
	"an unknown cost":             {Status: run.Running, Spent: run.Totals{Unknown: 1}},
	"an unknown part of the cost": {Status: run.Running, Spent: run.Totals{USD: 2, Unknown: 1}},
	"several budgets": {Status: run.Running, Spent: run.Totals{USD: 3}, Used: run.Used{Calls: 2},
		Budget: run.Budget{CapUSD: 12, Calls: 9}},
	"a call": {Status: run.Running, InFlight: []run.InFlightCall{{Step: "032", Role: "builder", Attempt: 2,
		StartedAt: "2026-01-02T03:04:05.000Z"}}},
	"a call of a member": {Status: run.Running, InFlight: []run.InFlightCall{{Step: "look/1", Role: "critic",
		Member: "critic-A", Attempt: 1, StartedAt: "2026-03-01T10:00:00.000Z"}}},
	"a limit": {Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{N: 1,
		Limit: run.Limit{Kind: run.LimitPlan, Account: "max"}, Until: "2026-03-01T11:00:00.000Z"}})},
	"an instruction": {Status: run.Running, Instructions: []run.Instruction{{ID: 4, Role: "builder",
		Text: "Mind\nthis.", By: "ann"}}},
	"a failed pass": {Status: run.Paused, Reason: run.ConsecutiveFailures, Failure: &run.Failure{
		FailedPass: run.FailedPass{Step: "002", Category: run.CategoryAgentExit}, Starts: 3, Message: "exit 1"}},
	"a checkpoint without a pass":        {Status: run.Paused, Checkpoint: &run.CheckpointRef{ID: "cp-S1"}},
	"a checkpoint of a run that is done": {Status: run.Done, Checkpoint: &run.CheckpointRef{ID: "cp-S1"}},
	"a round of a loop with stages": {Wording: run.WordingStages, Status: run.Running, Phase: "review", Round: 2,
		Stages: []run.StageRef{{Name: "plan"}, {Name: "review", Rounds: 3}}, Spent: run.Totals{USD: 1.5, Unknown: 2}},
	"a budget that is spent": {Pipeline: "page", Status: run.Paused, Reason: run.BudgetThreshold, Phase: "write",
		Set: "S2", Round: 1, Passes: run.PassCount{Total: 56, LastSettled: 31}, Rounds: 1, Score: new(2.5),
		Budget: run.Budget{CapUSD: 100}, Spent: run.Totals{USD: 100.4},
		Checkpoint: &run.CheckpointRef{ID: "cp-S1", AtPass: 28}},
	"lanes": lanesAtWork(),
	"an error of an attempt": {Status: run.Running, Problem: &run.Problem{TS: "2026-01-02T03:04:05.000Z",
		Context: "pass-3", Category: "claude-p-timeout", Message: "late\nvery", Attempt: 2}},
	"an error of no attempt": {Status: run.Running, Problem: &run.Problem{Context: "pass-3",
		Category: "claude-p-timeout", Message: "late"}},
	"the subject of a question": {Status: run.AwaitingPhaseHandoff, Wording: run.WordingStages,
		Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h", Text: "Good?", Actions: []string{"halt"},
			Subject: run.Subject{Change: &run.Change{Files: []string{"a.go"}, More: true}, USD: 1.5,
				Judged: &run.Judged{Word: "rejected", Role: "reviewer", Findings: &run.Findings{Findings: 2, Blockers: 1}},
				Checks: []run.Value{{Name: "tests", Text: "failed"}}}}},
		Decisions: []run.PastDecision{{Kind: run.QuestionGate, Action: "retry", By: "ada", Note: "cost $1"}}},
	"no operation":                   {Status: "another"},
	"a question with an expiry":      {RunID: "r1", Status: run.AwaitingPhaseHandoff, Questions: openHandoff},
	"a question of a run that ended": {RunID: "r1", Status: run.Cancelled, Questions: openHandoff},
	"no question":                    {Status: run.Running},
	"projects": {Status: run.Running, Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{
		Alias: "lib", RunID: "lib-run"}, Outcome: run.ProjectDone, USD: 1.5}}},
}

// openHandoff is a question that expires.
var openHandoff = []run.Question{{Kind: run.QuestionHandoff, ID: "h", Text: "Good?",
	Actions:   []string{"continue", "halt"},
	Deadlines: run.Deadlines{ExpiresAt: "2026-03-02T10:00:00.000Z", OnExpiry: "halt"}}}

// TestDetailsByState compares the details of all states with testdata/details.txt.
func TestDetailsByState(t *testing.T) {
	in := contract.Input{Target: contract.Target{RunID: "r1", Dir: "/runs/1"}}
	var got strings.Builder
	for _, name := range slices.Sorted(maps.Keys(detailsOf)) {
		fmt.Fprintf(&got, "## %s\n\n%s\n", name, workflows.Details(detailsOf[name], in))
	}
	want, err := os.ReadFile("testdata/details.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// details are what the Web UI shows of the run now.
func (w *harness) details() string {
	w.t.Helper()
	v, err := w.env.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(w.t, err)
	var m sdkpb.WorkflowMetadata
	require.NoError(w.t, v.Get(&m))
	return m.GetCurrentDetails()
}

// TestDetailsShowTheWait: what a run waits for is shown while it waits, and not after it.
func TestDetailsShowTheWait(t *testing.T) {
	for name, row := range map[string]struct {
		hurt  func(*harness)
		wants string
	}{
		"a full disk": {func(w *harness) { w.dir.before = map[int]func(){2: func() { w.dir.full = 2 }} },
			"\nA disk is full: no space left on device. The next attempt is at 2026-01-02T03:04:20.000Z, or at once after " +
				"a resume.\n"},
		"a program": {func(w *harness) { w.agent.will(call(1, 1), times(6, breaks(noProgram()))...) },
			"\nWaiting: 001 builder: start agent scripted: not found. The next attempt is at 2026-01-02T03:04:20.000Z.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			row.hurt(w)
			shown := ""
			w.env.RegisterDelayedCallback(func() { shown = w.details(); w.signal("resume", nil) }, 14*time.Second)
			w.done()
			require.Contains(t, shown, row.wants)
			require.Contains(t, w.details(), "### small: done\n")
			require.NotContains(t, w.details(), "The next attempt")
		})
	}
}
