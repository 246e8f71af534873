package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// loopIn is a run in a state that is not on disk yet: what decides about it must not read what is on disk.
func loopIn(s run.State) *loop {
	e := loopOf(newExecution(contract.Input{}, nil))
	e.journal.now = s
	return e
}

// stepOf is a step of a run at a place, with its calls.
func stepOf(e *loop, s contract.Step) *step {
	return &step{execution: e.execution, Step: s, at: run.Place{Stage: 1, Round: 2}}
}

func passOf(e *loop, s contract.Step, role contract.Role, member string) *call {
	return &call{step: stepOf(e, s), role: role, member: member}
}

// Steps of a round, by what they do.
var (
	buildStep  = contract.Step{Roles: []contract.Role{{Name: "builder", Gives: pipeline.GivesArtifact}}}
	changeStep = contract.Step{Roles: []contract.Role{{Name: "worker", Gives: pipeline.GivesChanges}}}
	reportStep = contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRole},
		Roles: []contract.Role{{Name: "reader", Gives: "report"}}}
	reviewStep = contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRole},
		Roles: []contract.Role{{Name: "reviewer", Gives: "report", HasVerdict: true}}}
	scoreStep = contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRole},
		Roles: []contract.Role{{Name: "judge", Gives: "report", Score: "score"}}}
	testStep = contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindRun, ID: "tests"},
		Roles: []contract.Role{{Name: "command", ID: "tests"}}}
	askStep = contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindAsk}}
)

// TestKindsOfSteps: which steps change the work, ask for work, or ask a role at all.
func TestKindsOfSteps(t *testing.T) {
	group := contract.Step{PlanStep: pipeline.PlanStep{Kind: pipeline.KindTogether}, Roles: reviewStep.Roles}
	for name, row := range map[string]struct {
		step                   contract.Step
		changes, writes, asked bool
	}{
		"artifact": {buildStep, true, true, false}, "changes": {changeStep, true, true, false},
		"report": {reportStep, false, true, true}, "verdict": {reviewStep, false, false, true},
		"score": {scoreStep, false, false, true}, "command": {testStep, false, false, false},
		"question": {askStep, false, false, false}, "group": {group, false, false, true},
	} {
		require.Equal(t, []bool{row.changes, row.writes, row.asked},
			[]bool{changes(row.step), writes(row.step), asksRole(row.step)}, name)
	}
}

// repeating is a round of a loop whose condition needs something.
func repeating(needs string, most int, steps ...contract.Step) contract.Round {
	return contract.Round{Stage: "work", Title: "Work", Repeat: &pipeline.Repeat{Max: most, Until: needs},
		Needs: strings.Fields(needs), Steps: steps}
}

// TestUnjudgedChange: a loop whose last step changes what an earlier one judged judges it once more.
func TestUnjudgedChange(t *testing.T) {
	for name, row := range map[string]struct {
		round contract.Round
		want  int
	}{
		"reviewed before the change": {repeating("verdict", 2, reviewStep, buildStep), 1},
		"reviewed after the change":  {repeating("verdict", 2, buildStep, reviewStep), -1},
		"the first step":             {repeating("verdict", 2, buildStep, askStep), -1},
		"scored before the change":   {repeating("score", 2, scoreStep, changeStep), 1},
		"by the gain of the score":   {repeating("score", 2, scoreStep, askStep, changeStep), 2},
		"a score that is not meant":  {repeating("verdict", 2, scoreStep, changeStep), -1},
		"tested before the change":   {repeating("tests", 2, testStep, changeStep), 1},
		"tested after the change":    {repeating("tests", 2, changeStep, testStep), -1},
		"one of two": {repeating("verdict tests", 2, reviewStep, changeStep,
			testStep), 1},
		"no change": {repeating("verdict", 2, reviewStep, reportStep), -1},
		"no loop":   {contract.Round{Steps: []contract.Step{reviewStep, buildStep}}, -1},
	} {
		require.Equal(t, row.want, unjudgedChange(row.round), name)
	}
}

// TestRoundsAfterTheLast: what follows the last round of a loop, which reviews its change and then asks.
func TestRoundsAfterTheLast(t *testing.T) {
	ask := repeating("verdict", 2, reviewStep, buildStep)
	ask.Repeat.Otherwise = "ask"
	silent := repeating("verdict", 2, reviewStep, buildStep)
	place := func(round, step int) run.Place { return run.Place{Stage: 1, Round: round, Step: step} }
	changed := place(2, 1)
	requested := &run.Decided{Kind: run.QuestionHandoff, Back: new(place(3, 1))}
	decision := func(action string, round int) *run.Decided {
		return &run.Decided{Type: run.HandoffFeedbackOnReject, Phase: "work", Round: round, Action: action}
	}
	approved := []run.Condition{{Of: pipeline.ConditionUntil, Text: "verdict", Holds: true}}
	rejected := []run.Condition{{Of: pipeline.ConditionUntil, Text: "verdict"}}
	for name, row := range map[string]struct {
		round    contract.Round
		delivers bool
		state    run.State
		at       run.Place
		judges   bool // the step is left out
		next     run.Place
		more     bool
	}{
		"within the rounds":                               {ask, false, run.State{}, place(1, 1), false, place(2, 0), true},
		"the last round, with a change":                   {ask, false, run.State{Changed: &changed}, place(2, 1), false, place(3, 0), true},
		"the last round, with a change of an earlier one": {ask, false, run.State{Changed: new(place(1, 1))}, place(2, 1), false, place(3, 0), false},
		"the last round, with a change of another stage":  {ask, false, run.State{Changed: &run.Place{Stage: 0, Round: 2, Step: 1}}, place(2, 1), false, place(3, 0), false},
		"the last round, without a question":              {silent, false, run.State{Changed: &changed}, place(2, 1), false, place(3, 0), false},
		"the last round, before a delivery":               {silent, true, run.State{Changed: &changed}, place(2, 1), false, place(3, 0), true},
		"a round that only judges":                        {ask, false, run.State{Conditions: rejected}, place(3, 1), true, place(4, 0), false},
		"a round that only judges, before the review":     {ask, false, run.State{}, place(3, 1), true, place(4, 0), false},
		"a round that only judges, at its review":         {ask, false, run.State{Conditions: rejected}, place(3, 0), false, place(4, 0), false},
		"a round that an operator requests":               {ask, false, run.State{Conditions: rejected, Decided: requested}, place(3, 1), false, place(4, 0), false},
		"approved":                                        {ask, false, run.State{Conditions: approved, Changed: &changed}, place(1, 1), false, place(2, 0), false},
		"accepted":                                        {ask, false, run.State{Decided: decision(run.ActionContinue, 1)}, place(1, 1), false, place(2, 0), false},
		"waived":                                          {ask, false, run.State{Decided: decision(run.ActionContinueWithWaiver, 1)}, place(1, 1), false, place(2, 0), false},
		"accepted in another round":                       {ask, false, run.State{Decided: decision(run.ActionContinue, 2)}, place(1, 1), false, place(2, 0), true},
		"one more":                                        {ask, false, run.State{Decided: decision(run.ActionRetryFeedback, 2)}, place(2, 1), false, place(3, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			row.state.PhaseOpen, row.state.Phase = true, "work"
			e := loopIn(row.state)
			e.round.Round, e.in.Start.Delivers = row.round, row.delivers
			require.Equal(t, row.judges, e.round.onlyJudges(row.at), "onlyJudges")
			next, more := e.round.nextRound(row.at)
			require.Equal(t, row.next, next, "nextRound")
			require.Equal(t, row.more, more, "nextRound")
		})
	}
}

// TestConditionsOfTheRound: a condition waits for what it needs, and counts as it was evaluated.
func TestConditionsOfTheRound(t *testing.T) {
	until := run.Condition{Of: pipeline.ConditionUntil, Text: "score tests", Holds: true,
		Read: []run.Value{{Name: "tests.ok", Text: "true"}}}
	end, within := run.Place{Stage: 1, Round: 1, Step: 2}, run.Place{Stage: 1, Round: 1, Step: 1}
	scored := []run.Value{{Name: "score", Text: "2.5"}}
	tested := []run.StepOutput{{ID: "tests", Phase: "work", Now: true}}
	for name, row := range map[string]struct {
		needs         string
		state         run.State
		within, atEnd bool
	}{
		"nothing yet":             {"score tests", run.State{}, false, false},
		"one of both":             {"score tests", run.State{Values: scored}, false, false},
		"both":                    {"score tests", run.State{Values: scored, Outputs: tested}, true, true},
		"of an earlier round":     {"tests", run.State{Outputs: []run.StepOutput{{ID: "tests", Phase: "work"}}}, false, false},
		"a step that was skipped": {"tests", run.State{Outputs: []run.StepOutput{{ID: "tests", Now: true, Skipped: true}}}, true, true},
		"no verdict in the round": {"verdict", run.State{}, false, true},
		"nothing of the round":    {"", run.State{}, false, true},
	} {
		e := loopIn(row.state)
		e.round.Round = repeating(row.needs, 2, testStep, buildStep)
		require.Equal(t, []bool{row.within, row.atEnd}, []bool{e.round.hasUntil(within), e.round.hasUntil(end)}, name)
	}
	e := loopIn(run.State{Values: scored, PhaseOpen: true, Phase: "work"})
	e.round.Round = repeating("score tests", 2)
	require.False(t, e.round.conditionMet(), "it was not evaluated")
	require.Equal(t, "score 2.5", e.round.roundValues(pipeline.ConditionUntil, "score tests"))
	e = loopIn(run.State{Conditions: []run.Condition{until}, PhaseOpen: true, Phase: "work"})
	e.round.Round = repeating("score tests", 2)
	require.True(t, e.round.conditionMet())
	require.Equal(t, "tests.ok true", e.round.roundValues(pipeline.ConditionUntil, "score tests"))
	e.round.Round = repeating("score", 2)
	require.False(t, e.round.conditionMet(), "another condition, since the plan was amended")
	e.round.Round = contract.Round{}
	require.False(t, e.round.conditionMet())
	require.Equal(t, "nothing", loopIn(run.State{}).round.roundValues(pipeline.ConditionUntil, ""))
}

// TestPlaces: where a run continues after a step.
func TestPlaces(t *testing.T) {
	steps := []contract.Step{reviewStep, buildStep}
	for name, row := range map[string]struct {
		round contract.Round
		at    run.Place
		next  run.Place
		last  bool
		phase int
	}{
		"a step of a set": {contract.Round{Rounds: 2, Steps: steps}, run.Place{Round: 1}, run.Place{Round: 1,
			Step: 1}, false, 1},
		"the last of a set": {contract.Round{Rounds: 2, Steps: steps}, run.Place{Round: 1, Step: 1},
			run.Place{Round: 2}, true, 1},
		"the last of the last": {contract.Round{Rounds: 2, Steps: steps}, run.Place{Round: 2, Step: 1},
			run.Place{Round: 2, Step: 2}, true, 1},
		"the last of a loop": {repeating("", 9, steps...), run.Place{Round: 3, Step: 1}, run.Place{Round: 3, Step: 2},
			true, 3},
	} {
		e := loopIn(run.State{})
		e.round.Round = row.round
		row.at.Stage, row.next.Stage = 4, 4
		require.Equal(t, &row.next, e.round.nextPlace(row.at), name)
		require.Equal(t, row.last, e.round.lastInRound(row.at), name)
		require.Equal(t, row.phase, e.round.phaseRound(row.at), name)
	}
	for _, row := range []struct {
		a, b   run.Place
		before bool
	}{{run.Place{Stage: 1}, run.Place{Stage: 2}, true}, {run.Place{Round: 2}, run.Place{Round: 1, Step: 9}, false},
		{run.Place{Step: 1}, run.Place{Step: 2}, true}, {run.Place{Step: 1}, run.Place{Step: 1}, false}} {
		require.Equal(t, row.before, before(row.a, row.b))
	}
}

// TestArchivedLines: a line that cannot be archived counts as archived, and no segment is empty.
func TestArchivedLines(t *testing.T) {
	for _, row := range []struct {
		archived, unarchivable int64
		want                   bool
	}{{5, 0, true}, {3, 5, true}, {4, 0, false}, {3, 4, false}, {0, 0, false}} {
		j := loopIn(run.State{}).journal
		j.written.tail.Seq, j.archived, j.unarchivable = 5, row.archived, row.unarchivable
		require.Equal(t, row.want, j.fullyArchived())
		if row.want {
			require.NotPanics(t, func() { require.NoError(t, j.archive(nil)) }, "it calls no activity")
		}
	}
}

// TestOptionsBelowTheDefaults: only options that are not set have defaults.
func TestOptionsBelowTheDefaults(t *testing.T) {
	o := contract.Options{HeartbeatMS: 1, TimeScale: 0.5}
	require.Equal(t, o, o.Complete())
}

// TestTimeUntilAClaimExpires has a margin; of an expired claim only the margin remains.
func TestTimeUntilAClaimExpires(t *testing.T) {
	for until, want := range map[string]time.Duration{"2026-01-02T02:00:00Z": 10 * time.Second,
		"2026-01-02T03:05:05Z": 70 * time.Second, "soon": nextWorkerWait} {
		var got time.Duration
		inside(t, func(ctx workflow.Context) error { got = untilExpiry(ctx, until); return nil })
		require.Equal(t, want, got, until)
	}
}

// atRound lets a loop be in a round whose steps are these.
func atRound(e *loop, at run.Place, steps ...contract.Step) {
	e.round.at = run.Place{Stage: at.Stage, Round: at.Round}
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
			e, at := loopIn(run.State{}), run.Place{Round: 5, Step: row.ask}
			atRound(e, at, row.steps...)
			e.round.Repeat = &pipeline.Repeat{Max: 9}
			inside(t, func(ctx workflow.Context) error {
				lead, err := e.round.askRoutes(ctx, at)
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
			e := loopIn(run.State{})
			e.in.Start.Delivers, e.in.Start.Judged = row.delivers, row.judged
			atRound(e, run.Place{Round: 1}, row.steps...)
			inside(t, func(ctx workflow.Context) error {
				lead, err := e.round.workBefore(ctx, 1)
				require.Equal(t, &run.Place{Round: 1, Step: row.want}, lead.back)
				return err
			})
		})
	}
}

// TestAlreadyAtCheckpoint: a revert to the checkpoint of the last revert does nothing, unless something has changed.
func TestAlreadyAtCheckpoint(t *testing.T) {
	blob := func(digest string) *run.Blob { return &run.Blob{Digest: digest} }
	for name, change := range map[string]func(e *loop){
		"":                   func(*loop) {},
		"another checkpoint": func(e *loop) { e.reverts.to = 8 },
		"another place":      func(e *loop) { e.journal.now.Next.Step = 1 },
		"another tree":       func(e *loop) { e.journal.now.Tree = blob("edited") },
		"no tree":            func(e *loop) { e.journal.now.Tree = nil },
		"another try":        func(e *loop) { e.journal.now.Tries = []run.Tries{{Judged: 2}} },
	} {
		e := loopIn(run.State{Tree: blob("tree")})
		e.reverts.to = 7
		change(e)
		require.Equal(t, name == "", e.reverts.alreadyAt(run.Checkpoint{Seq: 7, State: run.State{Tree: blob("tree")}}), name)
	}
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
		e := loopIn(row.state)
		e.in.Start.Artifact = row.start
		require.NotPanics(t, func() { require.NoError(t, e.checkout.adoptEdits(nil)) }, name)
		require.Empty(t, e.journal.pending, name)
	}
}

const now = "2026-01-02T03:04:05.000Z" // where inside executes

// last is the last event that is not on disk.
func last(t *testing.T, e *loop) run.Event {
	t.Helper()
	require.NotEmpty(t, e.journal.pending)
	return e.journal.pending[len(e.journal.pending)-1]
}
