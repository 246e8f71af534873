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
	e := loopIn(s)
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

// TestNeededProjects: those that are not done, and of them those that do not work either.
func TestNeededProjects(t *testing.T) {
	project := func(alias string, o run.ProjectOutcome, needs ...string) run.ProjectState {
		return run.ProjectState{ProjectRef: run.ProjectRef{Alias: alias, RunID: alias + "-run", Needs: needs}, Outcome: o}
	}
	e := loopIn(run.State{Projects: []run.ProjectState{project("done", run.ProjectDone), project("works",
		run.ProjectRunning),
		project("failed", run.ProjectFailed), project("new", run.ProjectPending), project("a", run.ProjectSkipped,
			"done"),
		project("b", run.ProjectSkipped, "failed"), project("c", run.ProjectPending, "done", "works", "failed", "new"),
		project("other", "of a later release"), project("d", run.ProjectPending, "other")}})
	c, _ := e.journal.now.Project("c")
	missing, blocked := e.projects.needed(c)
	require.Equal(t, [][]string{{"works", "failed", "new"}, {"failed"}}, [][]string{missing, blocked})
	d, _ := e.journal.now.Project("d")
	missing, blocked = e.projects.needed(d)
	require.Equal(t, [][]string{{"other"}, {"other"}}, [][]string{missing, blocked}, "what is not known blocks")
	require.Equal(t, []string{"a"}, e.projects.doneNow())
	require.Equal(t, []string{"works", "other"}, e.projects.active())
	require.True(t, e.children.changed())
	for _, p := range e.journal.now.Projects {
		if p.Outcome != run.ProjectDone && p.Outcome != run.ProjectPending {
			require.True(t, e.children.of(p.RunID).changed, "this execution has not read it")
			e.children.of(p.RunID).changed = false
		}
	}
	require.False(t, e.children.changed(), "those that are done or not started are not read")
	require.Equal(t, []string{""}, loopIn(run.State{Projects: e.journal.now.Projects[:1]}).projects.doneNow(), "all are done")
}

// TestBudgetOfAProject: not more than the run has left, with a warning at the same share.
func TestBudgetOfAProject(t *testing.T) {
	for name, row := range map[string]struct {
		run, own, want run.Budget
	}{
		"no budget of the run": {run.Budget{}, run.Budget{CapUSD: 50, WarnUSD: 40}, run.Budget{CapUSD: 50,
			WarnUSD: 40}},
		"without its own budget": {run.Budget{CapUSD: 12}, run.Budget{}, run.Budget{CapUSD: 10, WarnUSD: 8}},
		"more than the run has": {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 50, WarnUSD: 25},
			run.Budget{CapUSD: 10, WarnUSD: 5}},
		"less than the run has": {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 4, WarnUSD: 1, Calls: 3},
			run.Budget{CapUSD: 4, WarnUSD: 1, Calls: 3}},
		"less than a dollar": {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 0.5, WarnUSD: 0.25},
			run.Budget{CapUSD: 0.5, WarnUSD: 0.25}},
		"without its own warning":   {run.Budget{CapUSD: 12}, run.Budget{CapUSD: 4}, run.Budget{CapUSD: 4}},
		"a budget that is not left": {run.Budget{CapUSD: 1}, run.Budget{CapUSD: 4, WarnUSD: 1}, run.Budget{}},
	} {
		e := loopIn(run.State{Budget: row.run, Spent: run.Totals{USD: 2}})
		in := contract.ChildInput{Input: &contract.Input{Start: run.RunStart{Budget: row.own}}}
		require.Equal(t, row.want, e.projects.withinRest(in).Input.Start.Budget, name)
		require.Equal(t, row.own, in.Input.Start.Budget, "the input of the run stays")
	}
	e := loopIn(run.State{Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "delivered"},
		Delivery: &run.Delivered{}}, {ProjectRef: run.ProjectRef{Alias: "b"}}}})
	in := func(alias string, delivers bool, w *run.Workspace) contract.ChildInput {
		return contract.ChildInput{Alias: alias, Input: &contract.Input{Start: run.RunStart{Delivers: delivers, Workspace: w}}}
	}
	tree := &run.Workspace{}
	e.in.Projects = []contract.ChildInput{in("delivered", true, tree), in("b", true, tree), in("c", false, tree), in("d",
		true, nil)}
	all := e.projects.toDeliver()
	require.Len(t, all, 1)
	require.Equal(t, "b", all[0].Alias)
}

// TestRevertAcrossProjects: the projects that ended since the checkpoint are read again.
func TestRevertAcrossProjects(t *testing.T) {
	e := loopIn(run.State{Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "api"}}}, Commit: "c1"})
	e.children.of("api-run").changed = false
	commit, refused, err := e.reverts.restoreCheckout(nil, run.Checkpoint{})
	require.NoError(t, err)
	require.Equal(t, []string{"c1", ""}, []string{commit, refused})
	require.Empty(t, e.children.known)
}
