package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlanIsInForceWhenAStepBegins follows from which step an amendment counts: a running step keeps its plan until it
// begins again.
func TestPlanIsInForceWhenAStepBegins(t *testing.T) {
	start := RunStart{RunID: "r", Epoch: 1, Plan: "first", TotalPasses: 3, Stages: []StageRef{{Name: "a"}}}
	amended := RunAmended{New: PlanRef{Plan: "second"}, Terms: PlanTerms{TotalPasses: 3}}
	during := amended
	during.Running = true
	begin, end := PassStart{Pass: Pass{Step: "001"}}, PassEnd{Pass: Pass{Step: "001"}, Outcome: CategoryOK,
		Next: &Place{Round: 1, Step: 1}}
	first, second := &Place{Round: 1}, &Place{Round: 1, Step: 1}
	for name, row := range map[string]struct {
		events []any
		plan   string
		from   *Place
	}{
		"not amended":      {[]any{start}, "first", nil},
		"before a step":    {[]any{start, amended}, "second", first},
		"between steps":    {[]any{start, begin, end, amended}, "second", second},
		"during a step":    {[]any{start, begin, during}, "second", nil},
		"the step settles": {[]any{start, begin, during, end}, "second", second},
		"the step begins again": {[]any{start, begin, during, RunPaused{Reason: PassFailed}, RunResumed{Epoch: 1}},
			"second", first},
		"an epoch begins": {[]any{start, begin, during,
			RunResumed{Epoch: 2, State: &State{Plan: &CurrentPlan{PlanRef: PlanRef{Plan: "second"}, Seq: 3}, Next: *first}}},
			"second", first},
		"while the run is paused": {[]any{start, begin, RunPaused{Reason: PassFailed}, amended}, "second", first},
	} {
		t.Run(name, func(t *testing.T) {
			s := Folded(t, State{}, row.events...)
			require.Equal(t, row.plan, s.PlanInForce(start).Plan)
			require.Equal(t, row.from, s.Plan.From)
		})
	}
}

// TestAmendedBudgetCounts: only a definition with another budget replaces the one that an operator has set.
func TestAmendedBudgetCounts(t *testing.T) {
	s := Folded(t, State{}, RunStart{RunID: "r", Epoch: 1, Plan: "first", Budget: Budget{CapUSD: 1, WarnUSD: 0.8}})
	s.Spent.USD, s.Warned = 0.9, true
	s = Folded(t, s, RunAmended{New: PlanRef{Plan: "second"}})
	require.Equal(t, Budget{CapUSD: 1, WarnUSD: 0.8}, s.Budget)
	s = Folded(t, s, RunAmended{New: PlanRef{Plan: "third"}, Budget: &Budget{CapUSD: 5, WarnUSD: 4}})
	require.Equal(t, Budget{CapUSD: 5, WarnUSD: 4}, s.Budget)
	require.False(t, s.Warned)
}

// TestRevertKeepsAmendments: a fork begins with its checkpoint's plan, a revert keeps the newest one.
func TestRevertKeepsAmendments(t *testing.T) {
	start := RunStart{RunID: "r", Epoch: 1, Plan: "first"}
	then := Folded(t, State{}, start)
	now := Folded(t, then, PassEnd{Pass: Pass{Step: "001"}, Outcome: CategoryOK, Next: &Place{Round: 1, Step: 1}},
		RunAmended{New: PlanRef{Plan: "second"}})
	back := Checkpoint{State: then}.Reverted(now)
	require.Equal(t, "second", back.Plan.Plan)
	require.Equal(t, &Place{Round: 1}, back.Plan.From)
	require.Equal(t, &Place{Round: 1, Step: 1}, now.Plan.From, "the state before stays as it was")
	require.Nil(t, Checkpoint{State: now}.Branched().Plan, "run.start names the plan of a fork")
}

// TestAmendedRoundsAreShown: the maximum of a loop is that of the plan in force, also after a revert.
func TestAmendedRoundsAreShown(t *testing.T) {
	stages := func(rounds int) []StageRef { return []StageRef{{Name: "review", Kind: "repeat", Rounds: rounds}} }
	then := Folded(t, State{}, RunStart{RunID: "r", Epoch: 1, Plan: "first", Wording: WordingStages, Stages: stages(2)})
	now := Folded(t, then, RunAmended{New: PlanRef{Plan: "second"}, Terms: PlanTerms{Stages: stages(5)}})
	require.Equal(t, stages(5), now.Stages)
	require.Equal(t, stages(5), Checkpoint{State: then}.Reverted(now).Stages)
	older := Folded(t, now, RunAmended{New: PlanRef{Plan: "third"}})
	require.Equal(t, stages(5), older.Stages, "an amendment of an earlier release has no stages")
}
