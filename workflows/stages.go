package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// enterPhase opens a phase: a stage, or each round of a repeated one. If a decision led back to an earlier stage, the
// phase that is open ends first.
func (e *engine) enterPhase(ctx workflow.Context, at run.Place) error {
	s := e.j.state
	if s.PhaseOpen {
		if s.Phase == e.round.Stage {
			return nil
		}
		left := run.PhaseEnd{Key: s.Phase, Title: s.Phase, Outcome: "back to " + e.round.Stage, Round: s.Round}
		if err := e.j.emit(ctx, run.KindPhaseEnd, s.Phase, left); err != nil {
			return err
		}
	}
	p := run.PhaseStart{Key: e.round.Stage, Title: e.round.Title, Round: e.phaseRound(at)}
	if e.repeats() {
		p.Dir = e.round.Dir
	}
	return e.j.emit(ctx, run.KindPhaseStart, e.round.Stage, p)
}

func (e *engine) repeats() bool { return e.round.Repeat != nil }

// phaseRound returns the round number of a phase: a stage over sets is one phase.
func (e *engine) phaseRound(at run.Place) int {
	if e.repeats() {
		return at.Round
	}
	return 1
}

// nextPlace returns the place after a step. Sets follow each other within one phase.
func (e *engine) nextPlace(at run.Place) *run.Place {
	next := run.Place{Stage: at.Stage, Round: at.Round, Step: at.Step + 1}
	if next.Step >= len(e.round.Steps) && !e.repeats() && at.Round < e.round.Rounds {
		next = run.Place{Stage: at.Stage, Round: at.Round + 1}
	}
	return &next
}

func (e *engine) lastInRound(at run.Place) bool { return at.Step+1 >= len(e.round.Steps) }

// conditionMet evaluates `until` with the values of this round.
func (e *engine) conditionMet() bool {
	r := e.round.Repeat
	return r != nil && e.conditionHolds(r.Until)
}

// conditionHolds evaluates a condition with the values of this round. A condition on a missing value does not
// hold.
func (e *engine) conditionHolds(condition string) bool {
	if condition == "" {
		return false
	}
	until, err := pipeline.ParseUntil(condition)
	if err != nil {
		return false // validated when the definition was read
	}
	met, known := until.Eval(e.values())
	return known && met
}

// values returns the values of this round by name.
func (e *engine) values() map[string]string {
	values := map[string]string{}
	for _, v := range e.j.state.Values {
		values[v.Name] = v.Text
	}
	if _, scored := values["score"]; scored {
		for rounds := range pipeline.MaxGainRounds {
			values[fmt.Sprintf("score_gain(%d)", rounds+1)] = e.j.state.ScoreGain(rounds + 1)
		}
	}
	return values
}

// roundValues returns the values of the round as text: score 2.5, verdict rejected.
func (e *engine) roundValues() string {
	var all []string
	for _, v := range e.j.state.Values {
		all = append(all, v.Name+" "+v.Text)
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// leavePhase closes the phase and continues: with the next round while the condition is not met and rounds are
// left or a change is not judged, else with the next stage.
func (e *engine) leavePhase(ctx workflow.Context, at run.Place) error {
	next, more := e.nextRound(at)
	if !more {
		next = run.Place{Stage: at.Stage + 1, Round: 1}
		if e.round.Stage == pipeline.FreshStage { // an operator may edit files before the delivery: then again
			next.Stage = at.Stage
		}
		if e.repeats() && e.round.Repeat.Otherwise == "ask" && !e.conditionMet() && !e.loopAccepted(at) &&
			!e.lastAnswerAccepts(at) {
			return e.askAboutLoop(ctx, at) // and here again, with its decision
		}
	}
	end := run.PhaseEnd{
		Key: e.round.Stage, Title: e.round.Title, Outcome: "ok", Round: e.phaseRound(at), Repeats: e.repeats(),
		Next: &next,
	}
	if e.repeats() && next.Stage > at.Stage && !e.conditionMet() {
		end.Unmet = fmt.Sprintf("%s (values: %s)", e.round.Repeat.Until, e.roundValues())
	}
	gate := ""
	if e.round.Gate != "" && !e.conditionHolds(e.round.Gate) {
		gate = fmt.Sprintf("round %d returned %s, the gate requires %s", at.Round, e.roundValues(), e.round.Gate)
	}
	name, stage := e.round.Checkpoint, e.round.Kind
	if err := e.j.emit(ctx, run.KindPhaseEnd, e.round.Stage, end); err != nil {
		return err
	}
	if stage == pipeline.StageEach {
		return nil // sets create theirs at their end
	}
	if name != "" {
		if err := e.checkpoint(ctx, name); err != nil {
			return err
		}
	}
	if gate != "" {
		return e.pause(ctx, run.QualityGate, gate, "")
	}
	return e.review(ctx)
}

func (e *engine) runStep(ctx workflow.Context, at run.Place) error {
	e.showDetails(ctx)
	s, _ := e.round.At(at.Step)
	switch s.Kind {
	case pipeline.KindRole, pipeline.KindTogether, pipeline.KindRun:
		return e.runPasses(ctx, at, s)
	case pipeline.KindScreenshots:
		return e.screenshots(ctx, at, s)
	case pipeline.KindAsk:
		return e.ask(ctx, at, s)
	}
	return fmt.Errorf("step %s is of kind %q, which this release cannot run", s.Key, s.Kind)
}
