package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// changes reports whether a step changes the work: the workspace or the artifact.
func changes(s contract.Step) bool {
	return slices.ContainsFunc(s.Roles, func(r contract.Role) bool {
		return r.Gives == pipeline.GivesChanges || r.Gives == pipeline.GivesArtifact
	})
}

// writes reports whether a step asks a role for work and not for a judgement.
func writes(s contract.Step) bool {
	judges := func(r contract.Role) bool { return r.HasVerdict || r.Score != "" }
	return changes(s) || len(s.Roles) > 0 && s.Kind != pipeline.KindRun && !slices.ContainsFunc(s.Roles, judges)
}

// asksRole reports whether a step asks a role.
func asksRole(s contract.Step) bool {
	return s.Kind == pipeline.KindRole || s.Kind == pipeline.KindTogether
}

// lastStep returns the index of the last step for which one of the tests holds, in the order of the tests; -1: none.
func lastStep(steps []contract.Step, tests ...func(contract.Step) bool) int {
	for _, test := range tests {
		for i := len(steps) - 1; i >= 0; i-- {
			if test(steps[i]) {
				return i
			}
		}
	}
	return -1
}

// unjudgedChange returns the last step of a loop that changes the work if the condition of the loop is about values
// that earlier steps return; -1: the loop judges its last change within the round.
func unjudgedChange(r contract.Round) int {
	change := lastStep(r.Steps, changes)
	if r.Repeat == nil || change < 0 {
		return -1
	}
	until, err := pipeline.ParseUntil(r.Repeat.Until)
	if err != nil {
		return -1 // validated when the definition was read
	}
	for _, name := range until.Names() {
		if i := lastStep(r.Steps, func(s contract.Step) bool { return returns(s, name) }); i >= 0 && i < change {
			return change
		}
	}
	return -1
}

// scores reports whether a name of a condition is about scores.
func scores(name string) bool {
	_, gain := pipeline.ScoreGain(name)
	return gain || name == "score"
}

// returns reports whether a step returns the value that a condition names.
func returns(s contract.Step, name string) bool {
	return s.As == name || slices.ContainsFunc(s.Roles, func(r contract.Role) bool {
		return name == "verdict" && r.HasVerdict || r.Score != "" && scores(name)
	})
}

// closing reports whether a loop judges its last change once more before it ends without meeting its condition:
// an operator is asked about it then.
func (e *engine) closing() bool {
	return e.repeats() && (e.round.Repeat.Otherwise == "ask" || e.in.Start.Delivers) && unjudgedChange(e.round) >= 0
}

// requested reports whether the last decision requested another change by this step.
func (e *engine) requested(at run.Place) bool {
	d := e.j.state.Decided
	return d != nil && d.Back != nil && *d.Back == at
}

// onlyJudges reports whether a round after the last one of its loop leaves out a step, because the step changes the
// work. Only an operator requests another change.
func (e *engine) onlyJudges(at run.Place) bool {
	return e.closing() && at.Round > e.round.Repeat.Max && changes(e.round.Steps[at.Step]) && !e.requested(at)
}

// decided reports whether a round that only judges can no longer meet the condition. It has reached the last step
// that changes the work then, so that an operator can request another change from there.
func (e *engine) decided(at run.Place) bool {
	if at.Step >= len(e.round.Steps) || !e.onlyJudges(at) || at.Step != lastStep(e.round.Steps, changes) {
		return false
	}
	until, err := pipeline.ParseUntil(e.round.Repeat.Until)
	return err == nil && !until.Possible(e.values())
}

// skipChange skips and journals a step that changes the work.
func (e *engine) skipChange(ctx workflow.Context, at run.Place) error {
	ev := run.StepSkipped{
		Step: e.round.Steps[at.Step].Key, Why: "the rounds are used up: this one only judges the last change",
		Next: e.nextPlace(at),
	}
	return e.j.emit(ctx, run.KindStepSkipped, e.round.Stage, ev)
}

// nextRound returns where a loop continues that did not meet its condition; false: its rounds are used up, and its
// last change is judged.
func (e *engine) nextRound(at run.Place) (run.Place, bool) {
	next := run.Place{Stage: at.Stage, Round: at.Round + 1}
	if !e.repeats() || e.conditionMet() || e.loopAccepted(at) {
		return next, false
	}
	if e.loopRetried(at) {
		next.Step = max(0, lastStep(e.round.Steps, changes, writes))
		return next, true
	}
	changed := e.j.state.Changed
	return next, at.Round < e.round.Repeat.Max ||
		e.closing() && changed != nil && changed.Stage == at.Stage && changed.Round == at.Round
}

// loopRoutes returns where a decision about the end of a loop leads: to its last change, if the round only judged it.
// Otherwise the phase ends first.
func (e *engine) loopRoutes(at run.Place) routes {
	if !e.decided(at) {
		return routes{}
	}
	return routes{back: &at}
}

// askRoutes returns where a decision at an ask step leads: to the next step, or back to the step in question.
func (e *engine) askRoutes(ctx workflow.Context, at run.Place) (routes, error) {
	forward, round := e.nextPlace(at), e.round
	lead := routes{forward: forward}
	before := round.Steps[:at.Step]
	if i := lastStep(before, changes, writes); i >= 0 {
		lead.back, lead.redo = &run.Place{Stage: at.Stage, Round: at.Round, Step: i}, run.RedoStep
		return lead, nil
	}
	if i := lastStep(round.Steps, changes); round.Repeat != nil && i > at.Step {
		lead.back = &run.Place{Stage: at.Stage, Round: at.Round, Step: i}
		return lead, nil
	}
	earlier, err := e.workBefore(ctx, at.Stage)
	if err != nil {
		return lead, err
	}
	if err := e.readRound(ctx, at); err != nil {
		return lead, err
	}
	if lead.back, lead.redo = earlier.back, earlier.redo; lead.back != nil {
		return lead, nil
	}
	if i := lastStep(before, asksRole); i >= 0 {
		lead.back, lead.redo = &run.Place{Stage: at.Stage, Round: at.Round, Step: i}, run.RedoStep
	}
	return lead, nil
}

// redoRoutes returns where another round begins after the last stage.
func (e *engine) redoRoutes(ctx workflow.Context) (routes, error) {
	return e.workBefore(ctx, len(e.in.Start.Stages))
}

// workBefore returns where the work of the stages before one is done again: at the last step that changes something,
// so that later steps judge it again; without one, or if nothing is delivered, at the last step that asks a role for
// something else than a judgement. A loop continues with its next round.
func (e *engine) workBefore(ctx workflow.Context, stage int) (routes, error) {
	tests := []func(contract.Step) bool{changes, writes, asksRole}
	if !e.in.Start.Delivers {
		tests = tests[1:]
	}
	for _, test := range tests {
		for i := stage - 1; i >= 0; i-- {
			lead, err := e.workIn(ctx, i, test)
			if err != nil || lead.back != nil {
				return lead, err
			}
		}
	}
	return routes{}, nil
}

// workIn returns the last step of a stage for which a test holds.
func (e *engine) workIn(ctx workflow.Context, stage int, test func(contract.Step) bool) (routes, error) {
	at := run.Place{Stage: stage, Round: 1}
	if err := e.readRound(ctx, at); err != nil {
		return routes{}, err
	}
	if e.round.Rounds > 1 {
		at.Round = e.round.Rounds
		if err := e.readRound(ctx, at); err != nil {
			return routes{}, err
		}
	}
	lead := routes{redo: run.RedoStep}
	if e.repeats() {
		at.Round, lead.redo = e.j.state.LoopRounds(stage)+1, run.RedoRound
	}
	if at.Step = lastStep(e.round.Steps, test); at.Step >= 0 {
		lead.back = &at
	}
	return lead, nil
}
