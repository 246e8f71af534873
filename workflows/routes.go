package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// routes are where the run continues after a decision; nil: where it is. redo is what is redone on the way back.
type routes struct {
	forward, back *run.Place
	again         *run.Place // where it is done again; nil: where it is
	redo          string
}

// askRoutes returns where a decision at an ask step leads: to the next step, or back to the step in question.
func (rd *round) askRoutes(ctx workflow.Context, at run.Place) (routes, error) {
	forward, round := rd.nextPlace(at), rd.Round
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
	earlier, err := rd.workBefore(ctx, at.Stage)
	if err != nil {
		return lead, err
	}
	if err := rd.read(ctx, at); err != nil {
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
func (rd *round) redoRoutes(ctx workflow.Context) (routes, error) {
	return rd.workBefore(ctx, len(rd.in.Start.Stages))
}

// workBefore returns where the work of the stages before one is done again: at the last step that changes something,
// so that later steps judge it again; without one, or if nothing is delivered, at the last step that asks a role for
// something else than a judgement. A loop continues with its next round.
func (rd *round) workBefore(ctx workflow.Context, stage int) (routes, error) {
	tests := []func(contract.Step) bool{changes, writes, asksRole}
	if !rd.in.Start.Delivers {
		tests = tests[1:]
	}
	for _, test := range tests {
		for i := stage - 1; i >= 0; i-- {
			lead, err := rd.workIn(ctx, i, test)
			if err != nil || lead.back != nil {
				return lead, err
			}
		}
	}
	return routes{}, nil
}

// workIn returns the last step of a stage for which a test holds.
func (rd *round) workIn(ctx workflow.Context, stage int, test func(contract.Step) bool) (routes, error) {
	at := run.Place{Stage: stage, Round: 1}
	if err := rd.read(ctx, at); err != nil {
		return routes{}, err
	}
	if rd.Rounds > 1 {
		at.Round = rd.Rounds
		if err := rd.read(ctx, at); err != nil {
			return routes{}, err
		}
	}
	lead := routes{redo: run.RedoStep}
	if rd.repeats() {
		at.Round, lead.redo = rd.state().LoopRounds(stage)+1, run.RedoRound
	}
	if at.Step = lastStep(rd.Steps, test); at.Step >= 0 {
		lead.back = &at
	}
	return lead, nil
}
