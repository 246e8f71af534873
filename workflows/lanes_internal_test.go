package workflows

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lanesOf is an engine in a stage with these lanes at work.
func lanesOf(s run.State, active ...run.Lane) *loop {
	s.Lanes = &run.Lanes{Count: 9, Digest: "list", Active: active}
	s.Stages, s.Status = []run.StageRef{{Name: "work"}}, run.Running
	e := engineOf(s)
	e.in.Target.RunID, e.in.Start.Stages, e.round.Stage = "run", s.Stages, "work"
	return e
}

// TestJournaledShareCounts: the share of a lane counts before its record is read, as after continue-as-new.
func TestJournaledShareCounts(t *testing.T) {
	lane := func(key string, tokens int64) run.Lane {
		return run.Lane{LanePlace: run.LanePlace{Key: key, Budget: &run.Budget{Tokens: tokens}}}
	}
	e := lanesOf(run.State{Budget: run.Budget{Tokens: 1000}}, lane("a", 250), lane("b", 350))
	share, covered := e.lanes.share(run.Need{}, 1)
	require.True(t, covered)
	require.EqualValues(t, 400, share.Tokens)
	e.children.of("run.1.a").budget.Tokens = 550 // it was raised since
	share, _ = e.lanes.share(run.Need{}, 1)
	require.EqualValues(t, 100, share.Tokens)
}

// TestListOfAnotherStageIsNotUsed: after a revert, items are read from the list of the stage again.
func TestListOfAnotherStageIsNotUsed(t *testing.T) {
	e := lanesOf(run.State{})
	e.lanes.items, e.lanes.itemsOf = []contract.LaneItem{{Key: "other"}}, "list of a later stage"
	var read []string
	withWorkflow(t, map[string]any{contract.ExpandLanes: func(_ context.Context,
		in contract.ExpandInput) (contract.ExpandResult, error) {
		read = append(read, in.List)
		return contract.ExpandResult{List: in.List, Items: []contract.LaneItem{{Key: "this"}}}, nil
	}}, func(ctx workflow.Context) error {
		for range 2 {
			item, err := e.lanes.item(ctx, 0)
			require.NoError(t, err)
			require.Equal(t, "this", item.Key)
		}
		return nil
	})
	require.Equal(t, []string{"list"}, read, "once")
}

// TestLaneNeedsAnotherAnswer: the question about a lane is closed when the lane needs another answer than it offers.
func TestLaneNeedsAnotherAnswer(t *testing.T) {
	for need, open := range map[string]bool{run.LaneCheck: true, run.LaneFailed: false, "": false} {
		lane := run.Lane{LanePlace: run.LanePlace{Key: "a", Name: "a.go"}}
		q := run.Question{Kind: run.QuestionGate, ID: "gate:work:1", Phase: "work", Round: 1, Of: run.LaneCheck}
		e := lanesOf(run.State{Questions: []run.Question{q}}, lane)
		inside(t, func(ctx workflow.Context) error {
			e.lanes.closeQuestion(ctx, lane, need)
			return nil
		})
		_, still := e.questions.openLaneQuestion()
		require.Equal(t, open, still, need)
	}
}

// TestNewEpochDoesNotRepeatAnAnswer: a decision about a lane that the last epoch may have acted on is asked for again.
func TestNewEpochDoesNotRepeatAnAnswer(t *testing.T) {
	e := lanesOf(run.State{Decided: &run.Decided{ID: "gate:work:1", Kind: run.QuestionGate, Phase: "work", Round: 1}})
	_, made := e.questions.laneDecision()
	require.True(t, made)
	e.questions.forgetAnswered()
	_, made = e.questions.laneDecision()
	require.False(t, made)
}
