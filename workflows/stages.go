package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// skipTo skips and journals the steps before a check in a fresh folder.
func (lp *loop) skipTo(ctx workflow.Context, at, check run.Place) {
	skipped, _ := lp.round.At(at.Step)
	ev := run.StepSkipped{Step: skipped.Key, Why: "the work is complete and checked in a fresh folder next", Next: &check}
	if skipped.Fresh != "" {
		ev.Why = "the work was checked in a fresh folder already"
	}
	lp.journal.emit(ctx, run.KindStepSkipped, lp.round.Stage, ev)
}

// askAboutLoop pauses the run because a loop used up its rounds and its condition is not met.
func (lp *loop) askAboutLoop(ctx workflow.Context, at run.Place) error {
	judged, verdict := lp.round.reviewSubject()
	no := false
	req := run.QuestionRequested{
		Type: run.HandoffFeedbackOnReject, Trigger: run.TriggerRejected, Round: at.Round, Verdict: verdict,
		Approved:      &no,
		LoopMaxRounds: lp.round.Repeat.Max, Digest: judged, LastOutput: judged, Deadlines: lp.questions.deadlines(ctx, nil),
	}
	rounds := at.Round
	if c := lp.state().Changed; rounds > lp.round.most() && c != nil && c.Round < rounds {
		rounds-- // this one only judged
	}
	question := fmt.Sprintf("%s: %s is not met after %s", lp.round.Title, lp.round.Repeat.Until,
		run.Plural(rounds, "round"))
	var failed []string
	failed, req.Artifacts = lp.round.failedCommands(lp.round.Needs)
	if len(failed) > 0 {
		question += ": " + strings.Join(failed, ", ")
	}
	if why := lp.state().Stalled(); why != "" {
		question += " (" + why + ")"
	}
	return lp.questions.askHandoff(ctx, question, req, routes{})
}

// skipStage ends a stage whose condition is not met before its first step.
func (lp *loop) skipStage(ctx workflow.Context, at run.Place) {
	c, _ := lp.round.evaluated(pipeline.ConditionWhen, "", lp.round.When)
	lp.enterPhase(ctx, at)
	lp.journal.emit(ctx, run.KindPhaseEnd, lp.round.Stage, run.PhaseEnd{
		Key: lp.round.Stage, Title: lp.round.Title, Round: lp.round.phaseRound(at),
		Outcome: fmt.Sprintf("skipped: %s is not met (%s)", oneLine(lp.round.When), c.Values()),
		Next:    &run.Place{Stage: at.Stage + 1, Round: 1},
	})
}

// skipUnmet skips and journals a step whose condition is not met.
func (lp *loop) skipUnmet(ctx workflow.Context, at run.Place, s contract.Step) {
	c, _ := lp.round.evaluated(pipeline.ConditionWhen, s.Key, s.When)
	ev := run.StepSkipped{Step: s.Key, Why: fmt.Sprintf("%s is not met (%s)", oneLine(s.When), c.Values()),
		Next: lp.round.nextPlace(at)}
	for _, r := range s.Roles {
		if r.Keep {
			ev.IDs = append(ev.IDs, r.ID)
		}
	}
	lp.journal.emit(ctx, run.KindStepSkipped, lp.round.Stage, ev)
	lp.round.endRound(ctx, at)
}

// skipChange skips and journals a step that changes the work.
func (lp *loop) skipChange(ctx workflow.Context, at run.Place) {
	ev := run.StepSkipped{
		Step: lp.round.Steps[at.Step].Key, Why: "the rounds are used up: this one only judges the last change",
		Next: lp.round.nextPlace(at),
	}
	lp.journal.emit(ctx, run.KindStepSkipped, lp.round.Stage, ev)
}

// enterPhase opens a phase: a stage, or each round of a repeated one. If a decision led back to an earlier stage, the
// phase that is open ends first.
func (lp *loop) enterPhase(ctx workflow.Context, at run.Place) {
	s := lp.state()
	if s.PhaseOpen {
		if s.Phase == lp.round.Stage {
			return
		}
		left := run.PhaseEnd{Key: s.Phase, Title: s.Phase, Outcome: "back to " + lp.round.Stage, Round: s.Round}
		lp.journal.emit(ctx, run.KindPhaseEnd, s.Phase, left)
	}
	p := run.PhaseStart{Key: lp.round.Stage, Title: lp.round.Title, Round: lp.round.phaseRound(at)}
	if lp.round.repeats() {
		p.Dir = lp.round.Dir
	}
	lp.journal.emit(ctx, run.KindPhaseStart, lp.round.Stage, p)
}

// leavePhase closes the phase and continues: with the next round while the condition is not met and rounds are
// left or a change is not judged, else with the next stage.
func (lp *loop) leavePhase(ctx workflow.Context, at run.Place) error {
	if gate := lp.round.Gate; gate != "" && lp.round.has(lp.round.GateNeeds) {
		if ok, err := lp.round.evaluate(ctx, at, pipeline.ConditionGate, "", gate); !ok || err != nil {
			return err
		}
	}
	made := lp.round.endRoundOfLoop(at)
	if made != nil && made.Ended == at.Round && lp.state().Stalled() == "" {
		lp.journal.emit(ctx, run.KindLoopStalled, lp.round.Stage, *made)
	}
	next, more := lp.round.nextRound(at)
	if !more {
		next = run.Place{Stage: at.Stage + 1, Round: 1}
		if lp.round.Stage == pipeline.FreshStage { // an operator may edit files before the delivery: then again
			next.Stage = at.Stage
		}
		if lp.round.repeats() && lp.round.Repeat.Otherwise == "ask" && !lp.round.conditionMet() && !lp.round.loopAccepted(at) &&
			!lp.round.lastAnswerAccepts(at) {
			return lp.askAboutLoop(ctx, at) // and here again, with its decision
		}
	}
	end := run.PhaseEnd{
		Key: lp.round.Stage, Title: lp.round.Title, Outcome: "ok", Round: lp.round.phaseRound(at), Repeats: lp.round.repeats(),
		Next: &next, Progress: made,
	}
	if lp.round.repeats() && next.Stage > at.Stage && !lp.round.conditionMet() {
		values := lp.round.roundValues(pipeline.ConditionUntil, lp.round.Repeat.Until)
		if why := lp.state().Stalled(); why != "" {
			values += "; " + why
		}
		end.Unmet = fmt.Sprintf("%s (values: %s)", lp.round.Repeat.Until, values)
	}
	gate := ""
	if lp.round.Gate != "" && !lp.round.holds(pipeline.ConditionGate, "", lp.round.Gate) {
		gate = fmt.Sprintf("round %d returned %s, the gate requires %s", at.Round,
			lp.round.roundValues(pipeline.ConditionGate, lp.round.Gate), lp.round.Gate)
	}
	name, stage := lp.round.Checkpoint, lp.round.Kind
	lp.journal.emit(ctx, run.KindPhaseEnd, lp.round.Stage, end)
	if stage == pipeline.StageEach {
		return nil // sets create theirs at their end
	}
	if name != "" {
		lp.checkpoint(ctx, name)
	}
	if gate != "" {
		lp.pause(ctx, run.QualityGate, gate, "")
		return nil
	}
	lp.round.review(ctx)
	return nil
}
