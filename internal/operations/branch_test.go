package operations

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
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

// TestNewestCheckpointUntilATime: also where a revert has led to a second checkpoint of the same name, or where one is
// damaged.
func TestNewestCheckpointUntilATime(t *testing.T) {
	names := blobs.Of(testStore(t))
	at := func(seq int64) string { return fmt.Sprintf("2026-11-27T10:%02d:00.000Z", seq) }
	repeated := map[int64]string{6: "cp-S1", 11: "cp-S2", 36: "cp-S1", 37: "cp-S2"}
	for seq := int64(1); seq <= 40; seq++ {
		id := run.UnnamedID(seq)
		if name := repeated[seq]; name != "" {
			id = name
		}
		state := run.State{Version: run.StateVersion, RunID: "r", Seq: seq,
			Checkpoint: &run.CheckpointRef{ID: id, Seq: seq, TS: at(seq)}}
		require.NoError(t, rundir.KeepCheckpoint(t.Context(), names,
			run.Checkpoint{Version: run.CheckpointVersion, RunID: "r", ID: id, Seq: seq, State: state}))
	}
	newest := func(until string) string { t.Helper(); return must(newestUntil(t.Context(), names, "r", until))(t) }
	for seq := int64(1); seq <= 40; seq++ {
		id := newest(at(seq))
		require.Equal(t, run.UnnamedID(seq), id)
		c := must(rundir.LoadCheckpoint(t.Context(), names, "r", id))(t)
		require.Equal(t, seq, c.Seq, "a named one also has the name of its event")
	}
	require.Equal(t, "cp-40", newest(""))
	require.Empty(t, newest("2026-11-27T09:00:00.000Z"))

	marks := must(rundir.Marks(t.Context(), names, "r"))(t)
	for _, i := range []int{19, 29, 9} { // where the search looks
		require.NoError(t, names.Replace(t.Context(), marks[i].Name, []byte("{}")))
	}
	for _, seq := range []int64{8, 15, 25, 35} {
		require.Equal(t, run.UnnamedID(seq), newest(at(seq)))
	}
}

func TestRunWithoutThePlanIsRefusedAsInput(t *testing.T) {
	def := Definition{Plan: &pipeline.Plan{Stages: []pipeline.PlanStage{{Name: "plan"}, {Name: "implement"}}}}
	f := &Follow{Claim: run.Claim{RunID: "run-1"}}
	var refused *SourceError
	require.ErrorAs(t, f.skip(def, run.History{Completed: []run.PhaseMark{{Phase: "other"}}}, nil), &refused)
	require.ErrorContains(t, refused, "there is no plan to start with")
	require.NoError(t, f.skip(def, run.History{Completed: []run.PhaseMark{{Phase: "plan"}}}, nil))
	require.Equal(t, 1, f.From.Stage)
}

func TestBriefOfHaltedRun(t *testing.T) {
	dir := rundir.At(t.TempDir())
	require.NoError(t, os.MkdirAll(dir.Path(rundir.Orchestrator), 0o700))
	no := false
	s := run.State{
		Status: run.Halted, Reason: "final_acceptance_rejected", Pipeline: "review", Task: "Fix it.\n## Not a heading",
		Judged: &run.Judged{Word: "rejected", Approved: &no, Role: "reviewer", Outdated: true},
		Decisions: []run.PastDecision{{Kind: run.QuestionDelivery, Action: "skip", Phase: "delivery", By: "ada",
			Feedback: "not yet"}},
	}
	require.NoError(t, os.WriteFile(dir.Path(rundir.PlanFile), []byte("{}"), 0o600))
	text, err := briefOf(dir, run.Claim{RunID: "r-1"}, s)
	require.NoError(t, err)
	require.Equal(t, `Run r-1 of review ended: halted, final_acceptance_rejected.

## Its task

> Fix it.
> ## Not a heading

## Its last verdict: rejected by reviewer; the work has changed since

Its reply is missing.

## Decisions of operators

- skip of delivery delivery by ada: not yet
`, text)
	require.NoError(t, os.WriteFile(dir.Path(rundir.PlanFile), []byte("{"), 0o600))
	_, err = briefOf(dir, run.Claim{}, s)
	require.ErrorContains(t, err, "plan.json")
	s.Task = strings.Repeat("é", maxBriefText+1)
	require.NoError(t, os.WriteFile(dir.Path(rundir.PlanFile), []byte("{}"), 0o600))
	text = must(briefOf(dir, run.Claim{}, s))(t)
	require.Contains(t, text, "é …\n")
}
