package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/passbook-run/passbook/activities/contract"
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

// detailsOf has states, and what their details contain and do not contain.
var detailsOf = map[string]struct {
	s    run.State
	want []string
	not  []string
}{
	"no reason, no score, the first round": {run.State{Pipeline: "page", Status: run.Running, Phase: "write", Round: 1,
		Passes: run.PassCount{Total: 4}}, []string{"### page: running\n\n",
		"| progress | cost | score | stage |\n|---|---|---|---|\n| pass 0 of 4 | 0.00 USD | – | write |\n\n- available"},
		[]string{"rounds", "checkpoint", "last error", "failed:", "instruction", "%"}},
	"a later round of a set": {run.State{Pipeline: "page", Status: run.Running, Phase: "write", Set: "S2", Round: 2,
		Rounds: 3}, []string{"| pass 0 of 0; rounds finished: 3 |", "| write, S2, round 2 |"}, nil},
	"a score in stages": {run.State{Wording: run.WordingStages, Status: run.Running, Phase: "review",
		Stages: []run.StageRef{{Name: "plan"}, {Name: "review"}},
		Score:  new(3.25)}, []string{"| progress | cost | score |\n|---|---|---|\n" +
		"| stage 2 of 2 (review) | 0.00 USD | 3.2 |\n"},
		nil},
	"an unknown cost": {run.State{Status: run.Running, Spent: run.Totals{Unknown: 1}},
		[]string{"| unknown |"}, []string{"USD", "not fully known"}},
	"an unknown part of the cost": {run.State{Status: run.Running, Spent: run.Totals{USD: 2, Unknown: 1}},
		[]string{"| ≥ 2.00 USD, 1 call not fully known |"}, nil},
	"several budgets": {run.State{Status: run.Running, Spent: run.Totals{USD: 3}, Used: run.Used{Calls: 2},
		Budget: run.Budget{CapUSD: 12, Calls: 9}}, []string{"| 3.00 of 12.00 USD (25%), 2 of 9 calls |"}, nil},
	"a call": {run.State{Status: run.Running, InFlight: []run.InFlightCall{{Step: "032", Role: "builder", Attempt: 2,
		StartedAt: "2026-01-02T03:04:05.000Z"}}},
		[]string{"- running: **032** builder, attempt 2, since 2026-01-02T03:04:05.000Z\n", run.Next(run.Running, "")}, nil},
	"a call of a member": {run.State{Status: run.Running, InFlight: []run.InFlightCall{{Step: "look/1", Role: "critic",
		Member: "critic-A", Attempt: 1, StartedAt: "2026-03-01T10:00:00.000Z"}}},
		[]string{"- running: **look/1** critic critic-A, attempt 1, since 2026-03-01T10:00:00.000Z\n"}, nil},
	"a limit": {run.State{Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{N: 1,
		Limit: run.Limit{Kind: run.LimitPlan, Account: "max"}, Until: "2026-03-01T11:00:00.000Z"}})},
		[]string{"- **waits until 2026-03-01 11:00 (UTC) for account max (usage limit)**\n"}, nil},
	"an instruction": {run.State{Status: run.Running, Instructions: []run.Instruction{{ID: 4, Role: "builder",
		Text: "Mind\nthis.", By: "ann", Auth: "none"}}},
		[]string{"- instruction (for role builder, by ann (not signed), not used yet): Mind\\nthis.\n"}, nil},
	"a failed pass": {run.State{Status: run.Paused, Reason: run.ConsecutiveFailures, Failure: &run.Failure{
		FailedPass: run.FailedPass{Step: "002", Category: run.CategoryAgentExit}, Starts: 3, Message: "exit 1"}},
		[]string{"- failed: **002** failed in 3 starts, the last time: exit 1 (claude-p-exit-nonzero)\n",
			"Fix the cause of the failures, then resume with force and a reason:\n\n```\n" +
				"starter resume /runs/1 --force --reason "}, nil},
	"a checkpoint without a pass": {run.State{Status: run.Paused, Checkpoint: &run.CheckpointRef{ID: "cp-S1"}},
		[]string{"- continues from checkpoint cp-S1\n"}, nil},
	"a checkpoint of a run that is done": {run.State{Status: run.Done, Checkpoint: &run.CheckpointRef{ID: "cp-S1"}},
		[]string{"### : done\n"}, []string{"continues from"}},
	"a round of a loop with stages": {run.State{Wording: run.WordingStages, Status: run.Running, Phase: "review", Round: 2,
		Stages: []run.StageRef{{Name: "plan"}, {Name: "review", Rounds: 3}}, Spent: run.Totals{USD: 1.5, Unknown: 2}},
		[]string{"| progress | cost |\n|---|---|\n" +
			"| stage 2 of 2 (review), round 2 of at most 3 | ≥ 1.50 USD, 2 calls not fully known |\n\n"}, []string{"$"}},
	"a budget that is spent": {run.State{Pipeline: "page", Status: run.Paused, Reason: run.BudgetThreshold, Phase: "write",
		Set: "S2", Round: 1, Passes: run.PassCount{Total: 56, LastSettled: 31}, Rounds: 1, Score: new(2.5),
		Budget: run.Budget{CapUSD: 100}, Spent: run.Totals{USD: 100.4},
		Checkpoint: &run.CheckpointRef{ID: "cp-S1", AtPass: 28}},
		[]string{"### page: paused (budget-threshold)\n\n| progress | cost | score | stage |\n|---|---|---|---|\n" +
			"| pass 31 of 56; rounds finished: 1 | 100.40 of 100.00 USD (100%) | 2.5 | write, S2 |\n\n" +
			"- continues from checkpoint cp-S1, pass 28\n" +
			"- available actions: fork, replay, resume, cancel, revert, budget, steer, amend\n- directory `/runs/1`\n\n" +
			run.Means(run.Paused, run.BudgetThreshold) + " " + run.Next(run.Paused, run.BudgetThreshold) + "\n\n```\n" +
			"starter budget /runs/1 --usd 200 && starter resume /runs/1\neval \"`starter server env`\"\n" +
			"temporal workflow update execute --workflow-id r1 --name budget --input '{\"usd\":200}'\n" +
			"temporal workflow update execute --workflow-id r1 --name resume --input '{}'\n```\n"}, nil},
	"lanes": {lanesAtWork(), []string{"- 3 of 9 lanes done, 2 active, 1 failed, 1 waiting, 2 merged\n" +
		"- lane 3, **c.go**: step 2, reviewer, attempt 2, since 2026-03-01T10:00:00.000Z\n" +
		"- lane 4, **d.go**: step 1\n- lane 5, **e.go**: waits for an operator: it is broken\n"}, []string{"- running:"}},
	"an error of an attempt": {run.State{Status: run.Running, Problem: &run.Problem{TS: "2026-01-02T03:04:05.000Z",
		Context: "pass-3", Category: "claude-p-timeout", Message: "late\nvery", Attempt: 2}},
		[]string{"- last error, 2026-01-02T03:04:05.000Z: **pass-3** claude-p-timeout in attempt 2: late\\nvery\n"}, nil},
	"an error of no attempt": {run.State{Status: run.Running, Problem: &run.Problem{Context: "pass-3",
		Category: "claude-p-timeout", Message: "late"}}, []string{"**pass-3** claude-p-timeout: late\n"}, nil},
	"the subject of a question": {run.State{Status: run.AwaitingPhaseHandoff, Wording: run.WordingStages,
		Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h", Text: "Good?", Actions: []string{"halt"},
			Subject: run.Subject{Change: &run.Change{Files: []string{"a.go"}, More: true}, USD: 1.5,
				Judged: &run.Judged{Word: "rejected", Role: "reviewer", Findings: &run.Findings{Findings: 2, Blockers: 1}},
				Checks: []run.Value{{Name: "tests", Text: "failed"}}}}},
		Decisions: []run.PastDecision{{Kind: run.QuestionGate, Action: "retry", By: "ada", Note: "cost $1"}}},
		[]string{"**Good?** Waiting for a decision (halt):\n\n- verdict: rejected by reviewer, 1 blocker, 2 findings\n",
			"- checks: tests failed\n- changed: a.go, …\n- cost: 1.50\n- earlier: retry of gate by ada: cost 1\n"}, nil},
	"no operation": {run.State{Status: "another"}, []string{"- available actions: none\n"}, nil},
	"a question with an expiry": {run.State{RunID: "r1", Status: run.AwaitingPhaseHandoff, Questions: openHandoff},
		[]string{"**Good?** Waiting for a decision (continue, halt) until 2026-03-02T10:00:00.000Z, then halt:\n",
			"\nstarter decide /runs/1 --action continue",
			"\neval \"`starter server env`\"\ntemporal workflow update execute --workflow-id r1 --name decide ",
			"\ntemporal workflow signal --workflow-id r1 --name decide "}, nil},
	"a question of a run that ended": {run.State{RunID: "r1", Status: run.Cancelled, Questions: openHandoff},
		[]string{"The run ended with an open question. Decide it to continue the run:\n"},
		[]string{"Waiting for a decision", "temporal workflow"}},
	"no question": {run.State{Status: run.Running}, []string{run.Means(run.Running, "") + " " +
		run.Next(run.Running, "")}, []string{"temporal workflow signal"}},
	"projects": {run.State{Status: run.Running, Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{
		Alias: "lib", RunID: "lib-run"}, Outcome: run.ProjectDone, USD: 1.5}}},
		[]string{"- project **lib**, workflow `lib-run`: done", "USD 1.50"}, []string{"$"}},
}

// openHandoff is a question that expires.
var openHandoff = []run.Question{{Kind: run.QuestionHandoff, ID: "h", Text: "Good?",
	Actions:   []string{"continue", "halt"},
	Deadlines: run.Deadlines{ExpiresAt: "2026-03-02T10:00:00.000Z", OnExpiry: "halt"}}}

// TestDetailsByState has a row for each part that depends on the state.
func TestDetailsByState(t *testing.T) {
	in := workflows.Input{Target: contract.Target{RunID: "r1", Dir: "/runs/1"}}
	for name, row := range detailsOf {
		t.Run(name, func(t *testing.T) {
			text := workflows.Details(row.s, in)
			for _, part := range row.want {
				require.Contains(t, text, part)
			}
			for _, part := range row.not {
				require.NotContains(t, text, part)
			}
			require.Contains(t, text, "\n- directory `/runs/1`\n\n")
		})
	}
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
