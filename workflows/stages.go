package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// enter opens a phase: a stage, or each round of a repeated one.
func (e *engine) enter(ctx workflow.Context, at run.Place) error {
	s := e.j.state
	if s.PhaseOpen {
		return nil
	}
	p := run.PhaseStart{Key: e.round.Stage, Title: e.round.Title, Round: e.phaseRound(at)}
	if e.repeats() {
		p.Dir = e.round.Dir
	}
	return e.j.emit(ctx, run.KindPhaseStart, e.round.Stage, p)
}

func (e *engine) repeats() bool { return e.round.Repeat != nil }

// phaseRound is the round that a phase counts: a stage over sets is one phase.
func (e *engine) phaseRound(at run.Place) int {
	if e.repeats() {
		return at.Round
	}
	return 1
}

// after is the place behind a step. Sets follow one another without leaving the phase.
func (e *engine) after(at run.Place) *run.Place {
	next := run.Place{Stage: at.Stage, Round: at.Round, Step: at.Step + 1}
	if next.Step >= len(e.round.Steps) && !e.repeats() && at.Round < e.round.Rounds {
		next = run.Place{Stage: at.Stage, Round: at.Round + 1}
	}
	return &next
}

func (e *engine) lastInRound(at run.Place) bool { return at.Step+1 >= len(e.round.Steps) }

// met evaluates `until` on what this round has given so far.
func (e *engine) met() bool {
	r := e.round.Repeat
	return r != nil && e.holds(r.Until)
}

// holds evaluates a condition on what this round has given so far. One that asks for something that nothing gave does not hold.
func (e *engine) holds(condition string) bool {
	if condition == "" {
		return false
	}
	until, err := pipeline.ParseUntil(condition)
	if err != nil {
		return false // it was checked when the definition was read
	}
	values := map[string]string{}
	for _, v := range e.j.state.Values {
		values[v.Name] = v.Text
	}
	met, known := until.Eval(values)
	return known && met
}

// gave is what the round has given, for people: score 2.5, verdict rejected.
func (e *engine) gave() string {
	var all []string
	for _, v := range e.j.state.Values {
		all = append(all, v.Name+" "+v.Text)
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// leave closes the phase and goes on: to the next round while the condition does not hold and rounds are left, else to the next stage.
func (e *engine) leave(ctx workflow.Context, at run.Place) error {
	next := run.Place{Stage: at.Stage + 1, Round: 1}
	usedUp := e.repeats() && !e.met() && at.Round >= e.round.Repeat.Max
	if usedUp && e.round.Repeat.Otherwise == "ask" && !e.decided(at) && !e.retried(at) {
		return e.askAboutLoop(ctx, at) // and here again, with its decision
	}
	if e.repeats() && !e.met() && (!usedUp || e.retried(at)) {
		next = run.Place{Stage: at.Stage, Round: at.Round + 1}
	}
	end := run.PhaseEnd{
		Key: e.round.Stage, Title: e.round.Title, Outcome: "ok", Round: e.phaseRound(at), Repeats: e.repeats(), Next: &next,
	}
	if e.repeats() && next.Stage > at.Stage && !e.met() {
		end.Unmet = fmt.Sprintf("%s (it gave %s)", e.round.Repeat.Until, e.gave())
	}
	gate := ""
	if e.round.Gate != "" && !e.holds(e.round.Gate) {
		gate = fmt.Sprintf("round %d gave %s, the gate wants %s", at.Round, e.gave(), e.round.Gate)
	}
	name, stage := e.round.Checkpoint, e.round.Kind
	if err := e.j.emit(ctx, run.KindPhaseEnd, e.round.Stage, end); err != nil {
		return err
	}
	if stage == "each" {
		return nil // sets have theirs at their own end
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

// step does one step, whatever its kind.
func (e *engine) step(ctx workflow.Context, at run.Place) error {
	e.show(ctx)
	s := e.round.Steps[at.Step]
	switch s.Kind {
	case "role", "together", "run":
		return e.passes(ctx, at, s)
	case "screenshots":
		return e.pictures(ctx, at, s)
	case "ask":
		return e.ask(ctx, at, s)
	}
	return fmt.Errorf("step %s is of kind %q, which this release cannot run", s.Key, s.Kind)
}
