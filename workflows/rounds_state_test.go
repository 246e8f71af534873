package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// atRound lets an engine be in a round whose steps are these.
func atRound(e *engine, at run.Place, steps ...contract.Step) {
	e.readAt = run.Place{Stage: at.Stage, Round: at.Round}
	e.round.Stage, e.round.Steps = "work", steps
}

// TestRoutesOfAnAskStep: work is repeated in the round of the question, at the step in question.
func TestRoutesOfAnAskStep(t *testing.T) {
	for name, row := range map[string]struct {
		steps []contract.Step
		ask   int
		step  int
		redo  string
	}{
		"the first step":         {[]contract.Step{changeStep, askStep, buildStep}, 1, 0, run.RedoStep},
		"a later step of a loop": {[]contract.Step{reviewStep, askStep, reviewStep, changeStep}, 1, 3, ""},
		"a judgement":            {[]contract.Step{reviewStep, askStep}, 1, 0, run.RedoStep},
	} {
		t.Run(name, func(t *testing.T) {
			e, at := engineOf(run.State{}), run.Place{Round: 5, Step: row.ask}
			atRound(e, at, row.steps...)
			e.round.Repeat = &pipeline.Repeat{Max: 9}
			withWorkflow(t, nil, func(ctx workflow.Context) error {
				lead, err := e.askRoutes(ctx, at)
				require.Equal(t, &run.Place{Round: 5, Step: row.step}, lead.back)
				require.Equal(t, row.redo, lead.redo)
				return err
			})
		})
	}
}

// TestWorkBefore: without a delivery, the last work is repeated, whether or not it changes something.
func TestWorkBefore(t *testing.T) {
	for name, row := range map[string]struct {
		delivers, judged bool
		steps            []contract.Step
		want             int
	}{
		"delivered":           {true, false, []contract.Step{changeStep, reportStep, reviewStep}, 0},
		"not delivered":       {false, false, []contract.Step{changeStep, reportStep, reviewStep}, 1},
		"judged":              {false, true, []contract.Step{changeStep, reportStep, reviewStep}, 1},
		"only judgements":     {true, false, []contract.Step{reviewStep, testStep}, 0},
		"work before a check": {true, true, []contract.Step{reportStep, reviewStep}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := engineOf(run.State{})
			e.in.Start.Delivers, e.in.Start.Judged = row.delivers, row.judged
			atRound(e, run.Place{Round: 1}, row.steps...)
			withWorkflow(t, nil, func(ctx workflow.Context) error {
				lead, err := e.workBefore(ctx, 1)
				require.Equal(t, &run.Place{Round: 1, Step: row.want}, lead.back)
				return err
			})
		})
	}
}

// TestAlreadyAtCheckpoint: a revert to the checkpoint of the last revert does nothing, unless something has changed.
func TestAlreadyAtCheckpoint(t *testing.T) {
	blob := func(digest string) *run.Blob { return &run.Blob{Digest: digest} }
	for name, change := range map[string]func(e *engine){
		"":                   func(*engine) {},
		"another checkpoint": func(e *engine) { e.revertedTo = 8 },
		"another place":      func(e *engine) { e.j.state.Next.Step = 1 },
		"another tree":       func(e *engine) { e.j.state.Tree = blob("edited") },
		"no tree":            func(e *engine) { e.j.state.Tree = nil },
		"another try":        func(e *engine) { e.j.state.Tries = []run.Tries{{Judged: 2}} },
	} {
		e := engineOf(run.State{Tree: blob("tree")})
		e.revertedTo = 7
		change(e)
		require.Equal(t, name == "", e.alreadyAt(run.Checkpoint{Seq: 7, State: run.State{Tree: blob("tree")}}), name)
	}
}

// TestRevertAcrossProjects: the projects that ended since the checkpoint are read again.
func TestRevertAcrossProjects(t *testing.T) {
	e := engineOf(run.State{Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "api"}}}, Commit: "c1"})
	e.watched()["api"].changed = false
	commit, refused, err := e.restoreCheckout(nil, run.Checkpoint{})
	require.NoError(t, err)
	require.Equal(t, []string{"c1", ""}, []string{commit, refused})
	require.Nil(t, e.projects)
}

// TestEditsAreAdopted only in a run with an artifact, and not across projects.
func TestEditsAreAdopted(t *testing.T) {
	artifact := &run.ArtifactRef{File: "page.html"}
	for name, row := range map[string]struct {
		state run.State
		start *run.ArtifactRef
	}{
		"a project": {run.State{Artifact: &run.Blob{},
			Projects: []run.ProjectState{{ProjectRef: run.ProjectRef{Alias: "api"}}}}, artifact},
		"no artifact":    {run.State{}, artifact},
		"not of the run": {run.State{Artifact: &run.Blob{}}, nil},
	} {
		e := engineOf(row.state)
		e.in.Start.Artifact = row.start
		require.NotPanics(t, func() { require.NoError(t, e.adoptEdits(nil)) }, name)
		require.Empty(t, e.j.pending, name)
	}
}

// TestNewLocation: a message that names the current directory and queue moves nothing.
func TestNewLocation(t *testing.T) {
	for name, row := range map[string]struct {
		m     Message
		moves bool
	}{
		"neither": {Message{}, false}, "the same directory": {Message{Dir: "/runs/1/"}, false},
		"the same queue": {Message{Queue: "here"}, false}, "both the same": {Message{Dir: "/runs/1", Queue: "here"}, false},
		"another directory": {Message{Dir: "/new"}, true}, "another queue": {Message{Dir: "/runs/1", Queue: "there"}, true},
	} {
		e := engineOf(run.State{})
		e.in.Target.Dir, e.in.DirQueue = "/runs/1", "here"
		require.Equal(t, row.moves, e.control.changesLocation(row.m), name)
	}
}
