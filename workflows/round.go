package workflows

import (
	"fmt"
	"slices"

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

// failedCommands describes the commands of this round that a condition needs and that failed, and returns their output.
func (rd *round) failedCommands(needs []string) (failed []string, outputs []run.Attached) {
	for _, s := range rd.Steps {
		if value, _ := rd.state().Value(s.ID); s.Kind != pipeline.KindRun || value != "failed" || !slices.Contains(needs, s.ID) {
			continue
		}
		text, output := oneLine(s.Run)+" failed", rd.state().ReplyOf(s.Key)
		if last, _ := rd.state().Command(s.Key); last.Output != nil {
			text, output = text+" in a fresh folder", last.Output
		}
		failed = append(failed, text)
		if output != nil {
			outputs = append(outputs, run.Attached{Name: "output of " + s.ID, Digest: output.Digest})
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
	if d == nil {
		return false
	}
	again := rd.loopRetried(run.Place{Stage: at.Stage, Round: at.Round - 1}) && at.Step == rd.workStep()
	return again || d.Back != nil && *d.Back == at
}

// workStep is the step at which a round begins that an operator requests.
func (rd *round) workStep() int { return max(0, lastStep(rd.Steps, changes, writes)) }

// onlyJudges reports whether a round after the last one of its loop leaves out a step, because the step changes the
// work. Only an operator requests another change.
func (rd *round) onlyJudges(at run.Place) bool {
	return rd.closing() && at.Round > rd.most() && changes(rd.Steps[at.Step]) && !rd.requested(at)
}

// most is the number of the last round of a loop: its maximum, or the round with which it ended for lack of progress.
func (rd *round) most() int {
	if p := rd.state().LoopProgress; p != nil && p.Ended > 0 {
		return min(p.Ended, rd.Repeat.Max)
	}
	return rd.Repeat.Max
}

// endRoundOfLoop returns what the loop has made so far, with this round; Ended: it ends here for lack of progress.
func (rd *round) endRoundOfLoop(at run.Place) *run.LoopProgress {
	if !rd.repeats() || lastStep(rd.Steps, changes) < 0 {
		return nil
	}
	if p := rd.state().LoopProgress; p != nil && p.Ended > 0 { // this round only judged
		return p
	}
	p := rd.state().EndRound(at.Round)
	if rd.Repeat.Stalled > 0 && p.Still >= rd.Repeat.Stalled && at.Round < rd.Repeat.Max && !rd.conditionMet() {
		p.Ended = at.Round
	}
	return &p
}

// nextRound returns where a loop continues that did not meet its condition; false: its rounds are used up, and its
// last change is judged.
func (rd *round) nextRound(at run.Place) (run.Place, bool) {
	next := run.Place{Stage: at.Stage, Round: at.Round + 1}
	if !rd.repeats() || rd.conditionMet() || rd.loopAccepted(at) {
		return next, false
	}
	if rd.loopRetried(at) {
		next.Step = rd.workStep()
		return next, true
	}
	changed := rd.state().Changed
	return next, at.Round < rd.most() ||
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

// conditionMet reports whether the condition of the loop was evaluated with the values of this round, and is met.
func (rd *round) conditionMet() bool {
	return rd.Repeat != nil && rd.holds(pipeline.ConditionUntil, "", rd.Repeat.Until)
}

// hasUntil reports whether the condition of the loop can be evaluated: this round has what it needs. At the end of the
// round a verdict may be missing, which approves nothing.
func (rd *round) hasUntil(at run.Place) bool {
	ended := at.Step >= len(rd.Steps)
	needs := slices.DeleteFunc(slices.Clone(rd.Needs), func(need string) bool { return ended && need == "verdict" })
	return rd.has(needs) && (ended || len(needs) > 0)
}

// has reports whether this round has all that a condition needs.
func (rd *round) has(needs []string) bool {
	return !slices.ContainsFunc(needs, func(need string) bool { return !rd.state().Has(need) })
}

// holds reports whether a condition was evaluated and is met.
func (rd *round) holds(of, step, text string) bool {
	c, ok := rd.evaluated(of, step, text)
	return ok && c.Holds
}

// notBegun is the stage of the round, if its phase is not open.
func (rd *round) notBegun() string {
	if s := rd.state(); s.PhaseOpen && s.Phase == rd.Stage {
		return ""
	}
	return rd.Stage
}

// evaluated returns a condition of the round as it was evaluated last.
func (rd *round) evaluated(of, step, text string) (run.Condition, bool) {
	return rd.state().Evaluated(of, rd.notBegun(), step, text)
}

// roundValues returns what a condition has read, or else the values of the round: score 2.5, verdict rejected.
func (rd *round) roundValues(of, text string) string {
	if c, ok := rd.evaluated(of, "", text); ok {
		return c.Values()
	}
	return run.Condition{Read: rd.state().Values}.Values()
}

// evaluate evaluates a condition and journals its value, unless that is known. false: it cannot be evaluated, and the run
// is paused.
func (rd *round) evaluate(ctx workflow.Context, at run.Place, of, step, text string) (ok bool, err error) {
	s := rd.state()
	if _, known := rd.evaluated(of, step, text); known {
		return true, nil
	}
	t := rd.in.Target
	judged := of == pipeline.ConditionWhen || s.Has("verdict") // a round has its own verdict
	in := contract.EvaluateInput{RunID: t.RunID, Store: t.Store, PlanUse: rd.planUse(), Text: text, Outputs: s.Outputs,
		Score: s.Score, Scores: s.LoopScores(), Round: at.Round, Task: s.Task}
	if judged {
		in.Approved, in.Verdict = s.Judgement().Approves(), s.Verdict
	}
	var res contract.EvaluateResult
	err = rd.host.readStore(ctx, contract.Evaluate, in, &res)
	if isType(err, contract.ErrBadInput) {
		rd.pause(ctx, run.PassFailed, fmt.Sprintf("%s of stage %s cannot be evaluated: %s: %s", of, rd.Stage, text,
			errorMessage(err)), "")
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("evaluate %s of stage %s: %w", of, rd.Stage, err)
	}
	rd.journal.emit(ctx, run.KindCondition, s.Phase, run.Condition{Of: of, Stage: rd.notBegun(), Step: step, Text: text,
		Holds: res.Holds, Read: res.Read})
	return true, nil
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
