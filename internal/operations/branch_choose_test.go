package operations

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// TestCheckpointsToChooseFrom leaves out checkpoints without work, and those that a revert has undone.
func TestCheckpointsToChooseFrom(t *testing.T) {
	plan := &pipeline.Plan{Stages: []pipeline.PlanStage{{Name: "build"}, {Name: "review"}}}
	at := func(seq int64, id string, stage, round, step int) run.Checkpoint {
		return run.Checkpoint{ID: id, Seq: seq, State: run.State{Next: run.Place{Stage: stage, Round: round, Step: step}}}
	}
	var all []run.Checkpoint
	for _, c := range slices.Backward([]run.Checkpoint{
		at(1, "cp-1", 0, 1, 0), at(4, "cp-4", 0, 1, 1), at(7, "cp-plan", 1, 1, 0), at(8, "cp-8", 1, 1, 0),
		at(12, "cp-12", 1, 2, 0), at(15, "cp-15", 1, 3, 0), at(16, "cp-REVERT", 1, 3, 0), at(17, "cp-17", 1, 1, 0),
		at(20, "cp-20", 1, 1, 1), at(24, "cp-24", 2, 1, 0),
	}) {
		if (Branching{}).continues(plan, c) {
			all = before(all, c)
		}
	}
	slices.Reverse(all)
	require.Equal(t, []BranchPoint{
		{"cp-1", "from stage build"}, {"cp-4", "from stage build, step 2"}, {"cp-plan", "from stage review"},
		{"cp-20", "from stage review, step 2"},
	}, points(plan, all))

	for i := range 20 {
		all = append(all, at(int64(30+i), "cp-round", 1, 2+i, i%2))
	}
	plan.Stages[0].Rounds = []pipeline.PlanRound{{Steps: make([]pipeline.PlanStep, 2)}}
	plan.Stages[1].Rounds = []pipeline.PlanRound{{Steps: make([]pipeline.PlanStep, 1)}}
	require.Equal(t, "from stage build, after its last step",
		points(plan, []run.Checkpoint{at(5, "cp-5", 0, 1, 2)})[0].Place)
	require.False(t, Branching{}.continues(plan, at(23, "cp-23", 1, 1, 1)), "the last step of the last stage is done")
	plan.Stages[0].Rounds, plan.Stages[1].Rounds = nil, nil
	list := points(plan, all)
	require.Len(t, list, 12, "only starts of stages and rounds")
	require.Equal(t, BranchPoint{"cp-round", "from stage review, round 2"}, list[2])
}
