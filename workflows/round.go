package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// round is the round of the plan that was read last.
type round struct {
	*execution
	contract.Round
	at   run.Place
	from string // the plan that it was read from
}

// forget lets the round be read again.
func (rd *round) forget() { rd.Round = contract.Round{} }

// checkDue returns the next place at which a command has to pass once more in a fresh folder: at the end of a loop whose
// condition is met, and before a delivery.
func (rd *round) checkDue(at run.Place) (run.Place, bool) {
	own := len(rd.Steps)
	if rd.in.Start.Lane != nil {
		return at, false
	}
	if own > 0 && !rd.conditionMet() {
		return at, false
	}
	for i, s := range rd.Fresh {
		if place := own + i; place >= at.Step && rd.unchecked(s, place == at.Step) {
			at.Step = place
			return at, true
		}
	}
	return at, false
}

// unchecked reports whether a command passes in the workspace, and the work as it is was not checked in a fresh folder.
// next: it is the step to do next, which an operator may repeat.
func (rd *round) unchecked(s contract.Step, next bool) bool {
	last, ran := rd.state().Command(s.Fresh)
	switch {
	case !ran:
		return false
	case !last.Passed:
		return next && rd.state().Again != ""
	}
	return !last.Fresh || last.Tree != run.DigestOf(rd.state().Tree)
}

// failedCommands describes the commands of this round that a condition names and that failed, and returns their output.
func (rd *round) failedCommands(condition string) (failed []string, outputs []run.Attached) {
	until, err := pipeline.ParseUntil(condition)
	if err != nil {
		return nil, nil // validated when the definition was read
	}
	names, values := until.Names(), rd.values()
	for _, s := range rd.Steps {
		if s.Kind != pipeline.KindRun || values[s.As] != "failed" || !slices.Contains(names, s.As) {
			continue
		}
		text, output := oneLine(s.Run)+" failed", rd.state().ReplyOf(s.Key)
		if last, _ := rd.state().Command(s.Key); last.Output != nil {
			text, output = text+" in a fresh folder", last.Output
		}
		failed = append(failed, text)
		if output != nil {
			outputs = append(outputs, run.Attached{Name: "output of " + s.As, Digest: output.Digest})
		}
	}
	return failed, outputs
}

// reviewSubject returns what a hand-off is about: the last reply of the phase, and the verdict on it, if there is
// one.
func (rd *round) reviewSubject() (digest, verdict string) {
	s := rd.state()
	for _, r := range s.Replies {
		if r.Phase == rd.Stage {
			digest = r.Reply.Digest
		}
	}
	if digest == "" && s.Artifact != nil {
		digest = s.Artifact.Digest
	}
	if j := s.CurrentVerdict(); j != nil {
		verdict = j.Word
	}
	return digest, verdict
}

// loopAccepted reports whether an operator accepted the loop as it is.
func (rd *round) loopAccepted(at run.Place) bool {
	d := rd.loopDecision(at)
	return d != nil && (d.Action == run.ActionContinue || d.Action == run.ActionContinueWithWaiver)
}

// lastAnswerAccepts reports whether an operator accepted the work of the last round at an ask step, so that the end of
// the loop would ask about the same thing again.
func (rd *round) lastAnswerAccepts(at run.Place) bool {
	d := rd.state().Decided
	if d == nil || d.Kind != run.QuestionHandoff || d.Phase != rd.Stage || d.Round != at.Round ||
		d.Action != run.ActionContinue && d.Action != run.ActionContinueWithWaiver {
		return false
	}
	judged, _ := rd.reviewSubject()
	return judged == d.Digest
}

// loopRetried reports whether an operator asked for one more round after this one.
func (rd *round) loopRetried(at run.Place) bool {
	d := rd.loopDecision(at)
	return d != nil && d.Action == run.ActionRetryFeedback && d.Back == nil
}

// loopDecision returns the last decision if it was about the end of the loop in this round and not about an ask
// step.
func (rd *round) loopDecision(at run.Place) *run.Decided {
	d := rd.state().Decided
	if d == nil || d.Type != run.HandoffFeedbackOnReject || d.Phase != rd.Stage || d.Round != at.Round {
		return nil
	}
	return d
}

// read reads the round at a place from the stored plan.
func (rd *round) read(ctx workflow.Context, at run.Place) error {
	place := run.Place{Stage: at.Stage, Round: at.Round}
	for rd.at != place || rd.Stage == "" || rd.from != rd.in.Start.Plan { // amended meanwhile
		plan := rd.in.Start.Plan
		t := rd.in.Target
		in := contract.RoundInput{RunID: t.RunID, Store: t.Store, PlanUse: rd.planUse(), Stage: at.Stage, Round: at.Round}
		var r contract.Round
		if err := rd.host.readStore(ctx, contract.ReadRound, in, &r); err != nil {
			return fmt.Errorf("read round %d of stage %d from the plan: %w", at.Round, at.Stage+1, err)
		}
		rd.Round, rd.at, rd.from = r, place, plan
	}
	return nil
}

// closing reports whether a loop judges its last change once more before it ends without meeting its condition:
// an operator is asked about it then.
func (rd *round) closing() bool {
	return rd.repeats() && (rd.Repeat.Otherwise == "ask" || rd.in.Start.Delivers) && unjudgedChange(rd.Round) >= 0
}

// requested reports whether the last decision requested another change by this step.
func (rd *round) requested(at run.Place) bool {
	d := rd.state().Decided
	return d != nil && d.Back != nil && *d.Back == at
}

// onlyJudges reports whether a round after the last one of its loop leaves out a step, because the step changes the
// work. Only an operator requests another change.
func (rd *round) onlyJudges(at run.Place) bool {
	return rd.closing() && at.Round > rd.Repeat.Max && changes(rd.Steps[at.Step]) && !rd.requested(at)
}

// decided reports whether a round that only judges can no longer meet the condition. It has reached the last step
// that changes the work then, so that an operator can request another change from there.
func (rd *round) decided(at run.Place) bool {
	if at.Step >= len(rd.Steps) || !rd.onlyJudges(at) || at.Step != lastStep(rd.Steps, changes) {
		return false
	}
	until, err := pipeline.ParseUntil(rd.Repeat.Until)
	return err == nil && !until.Possible(rd.values())
}

// nextRound returns where a loop continues that did not meet its condition; false: its rounds are used up, and its
// last change is judged.
func (rd *round) nextRound(at run.Place) (run.Place, bool) {
	next := run.Place{Stage: at.Stage, Round: at.Round + 1}
	if !rd.repeats() || rd.conditionMet() || rd.loopAccepted(at) {
		return next, false
	}
	if rd.loopRetried(at) {
		next.Step = max(0, lastStep(rd.Steps, changes, writes))
		return next, true
	}
	changed := rd.state().Changed
	return next, at.Round < rd.Repeat.Max ||
		rd.closing() && changed != nil && changed.Stage == at.Stage && changed.Round == at.Round
}

func (rd *round) repeats() bool { return rd.Repeat != nil }

// phaseRound returns the round number of a phase: a stage over sets is one phase.
func (rd *round) phaseRound(at run.Place) int {
	if rd.repeats() {
		return at.Round
	}
	return 1
}

// nextPlace returns the place after a step. Sets follow each other within one phase.
func (rd *round) nextPlace(at run.Place) *run.Place {
	next := run.Place{Stage: at.Stage, Round: at.Round, Step: at.Step + 1}
	if next.Step >= len(rd.Steps) && !rd.repeats() && at.Round < rd.Rounds {
		next = run.Place{Stage: at.Stage, Round: at.Round + 1}
	}
	return &next
}

func (rd *round) lastInRound(at run.Place) bool { return at.Step+1 >= len(rd.Steps) }

// conditionMet evaluates `until` with the values of this round.
func (rd *round) conditionMet() bool {
	r := rd.Repeat
	return r != nil && rd.conditionHolds(r.Until)
}

// conditionHolds evaluates a condition with the values of this round. A condition on a missing value does not
// hold.
func (rd *round) conditionHolds(condition string) bool {
	if condition == "" {
		return false
	}
	until, err := pipeline.ParseUntil(condition)
	if err != nil {
		return false // validated when the definition was read
	}
	met, known := until.Eval(rd.values())
	return known && met
}

// values returns the values of this round by name.
func (rd *round) values() map[string]string {
	values := map[string]string{}
	for _, v := range rd.state().Values {
		values[v.Name] = v.Text
	}
	if _, scored := values["score"]; scored {
		for rounds := range pipeline.MaxGainRounds {
			values[fmt.Sprintf("score_gain(%d)", rounds+1)] = rd.state().ScoreGain(rounds + 1)
		}
	}
	return values
}

// roundValues returns the values of the round as text: score 2.5, verdict rejected.
func (rd *round) roundValues() string {
	var all []string
	for _, v := range rd.state().Values {
		all = append(all, v.Name+" "+v.Text)
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// endRound ends the set after its last step.
func (rd *round) endRound(ctx workflow.Context, at run.Place) {
	if rd.lastInRound(at) && rd.Kind == pipeline.StageEach {
		rd.endSet(ctx)
		return
	}
}

// endSet creates the checkpoint at the end of a set, and pauses if the definition wants a review.
func (rd *round) endSet(ctx workflow.Context) {
	if rd.Checkpoint != "" {
		rd.checkpoint(ctx, rd.Checkpoint)
	}
	rd.review(ctx)
}

// review pauses for a review if the definition wants one.
func (rd *round) review(ctx workflow.Context) {
	if !rd.PauseAfter {
		return
	}
	rd.pause(ctx, run.UserReview, rd.reviewReason(), "")
}

// reviewReason returns what to review.
func (rd *round) reviewReason() string {
	return "review requested after " + rd.Stage + " " + rd.Set
}
