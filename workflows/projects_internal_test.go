package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestNeededProjects: those that are not done, and of them those that do not work either.
func TestNeededProjects(t *testing.T) {
	project := func(alias string, o run.ProjectOutcome, needs ...string) run.ProjectState {
		return run.ProjectState{ProjectRef: run.ProjectRef{Alias: alias, RunID: alias + "-run", Needs: needs}, Outcome: o}
	}
	e := engineOf(run.State{Projects: []run.ProjectState{project("done", run.ProjectDone), project("works",
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
	require.Equal(t, []string{""}, engineOf(run.State{Projects: e.journal.now.Projects[:1]}).projects.doneNow(), "all are done")
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
		e := engineOf(run.State{Budget: row.run, Spent: run.Totals{USD: 2}})
		in := contract.ChildInput{Input: &contract.Input{Start: run.RunStart{Budget: row.own}}}
		require.Equal(t, row.want, e.projects.withinRest(in).Input.Start.Budget, name)
		require.Equal(t, row.own, in.Input.Start.Budget, "the input of the run stays")
	}
	e := engineOf(run.State{Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "delivered"},
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
	e := engineOf(run.State{Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "api"}}}, Commit: "c1"})
	e.children.of("api-run").changed = false
	commit, refused, err := e.reverts.restoreCheckout(nil, run.Checkpoint{})
	require.NoError(t, err)
	require.Equal(t, []string{"c1", ""}, []string{commit, refused})
	require.Empty(t, e.children.known)
}
