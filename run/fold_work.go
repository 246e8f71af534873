package run

import (
	"slices"
	"strconv"
	"strings"
)

func phaseName(e *Event) string {
	if e.Phase == nil {
		return ""
	}
	return *e.Phase
}

// list returns a slice that may be changed: s itself if it is not shared, else a copy.
func list[T any](f *folder, s []T) []T {
	if f.own {
		return s
	}
	return slices.Clone(s)
}

func (f *folder) startPhase(e *Event) {
	p := decoded[PhaseStart](e)
	f.Phase, f.Round, f.PhaseOpen = p.Key, p.Round, true
	f.recorder.begin(f.Phase, e.Seq)
	f.Values, f.Conditions, f.Pictures = nil, nil, nil
	f.beginOutputs(p.Key)
}

func (f *folder) endPhase(e *Event) {
	p := decoded[PhaseEnd](e)
	f.recorder.end(p.Key, p.Outcome, e.Seq)
	f.PhaseOpen, f.LoopProgress = false, p.Progress
	if p.Next != nil && p.Next.Stage != f.Next.Stage {
		f.LoopProgress = nil
		f.LaneTotals, f.Lanes = f.Lanes.leave(f.LaneTotals), nil
		f.Feedback, f.About = "", nil // it was for this phase
	}
	if p.Repeats {
		f.countRound(p.Round)
		if f.Wording == WordingStages {
			f.Unmet = p.Unmet
			if d := f.Decided; d != nil && d.Phase == f.Phase && d.Round == p.Round {
				f.Unmet = "" // an operator accepted the work
			}
		}
	}
	f.move(p.Next)
}

// countRound keeps the number of the round that is completed.
func (f *folder) countRound(round int) {
	f.Rounds, f.Loops = round, list(f, f.Loops)
	for i := range f.Loops {
		if f.Loops[i].Stage == f.Next.Stage {
			f.Loops[i].Rounds = round
			return
		}
	}
	if f.Next.Stage <= mostStages {
		f.Loops = append(f.Loops, Loop{Stage: f.Next.Stage, Rounds: round})
	}
}

// move goes to the place an event names. There is no other way to move.
func (f *folder) move(next *Place) {
	if next != nil {
		f.Next, f.Settled, f.Tries, f.Again, f.Limited, f.Started = *next, nil, nil, "", nil, nil
		f.Gate = nil
		f.beginPlan()
	}
}

func (f *folder) startPass(e *Event) {
	p := decoded[PassStart](e)
	f.Set = p.Set
	f.land(p.Step, p.Member)
	f.InFlight = append(f.InFlight, InFlightCall{Step: p.Step, Member: p.Member, Role: p.Role, Call: p.Call,
		Attempt: p.Attempt, StartedAt: e.TS})
	f.callStarted(p.Call)
}

// land removes one call from those in flight. The remaining slice may be appended to.
func (f *folder) land(step, member string) {
	f.InFlight = slices.DeleteFunc(list(f, f.InFlight),
		func(l InFlightCall) bool { return l.Step == step && l.Member == member })
}

func (f *folder) attemptPass(e *Event) {
	p := decoded[PassAttempt](e)
	if f.Late = max(f.Late, p.Late); p.Late == 0 {
		f.land(p.Step, p.Member)
	}
	if p.Spend != nil {
		f.spend(p.Pass, phaseName(e), *p.Spend)
	}
	if p.RetryInMS > 0 {
		f.Passes.Retries++
	}
	if p.Judged {
		f.countTry(p.Member)
		if p.Limit == nil && f.Limited != nil {
			f.answeredLimit(p.Member)
		}
	}
	if p.Judged || p.Category == CategoryCancelled || p.Limit != nil {
		f.callEnded(p.Call)
	}
	if p.Counts() {
		f.problem(e, p.Context(f.Wording), p.Category, p.Message, p.Attempt)
	}
}

func (f *folder) countTry(member string) {
	f.Tries = list(f, f.Tries)
	for i := range f.Tries {
		if f.Tries[i].Member == member {
			f.Tries[i].Judged++
			return
		}
	}
	f.Tries = append(f.Tries, Tries{Member: member, Judged: 1})
}

// spend counts one call. The wording decides on its role in the breakdown (requirement 002 §1.6).
func (f *folder) spend(p Pass, phase string, c Spend) {
	role := f.Wording.CountedAs(p)
	f.Spent.Add(c)
	f.ListPrice = f.ListPrice || c.ListPrice
	f.Used.use(c)
	f.ByRole = add(list(f, f.ByRole), role, c)
	f.ByStage = add(list(f, f.ByStage), phase, c)
}

func (f *folder) endPass(e *Event) {
	p := decoded[PassEnd](e)
	f.land(p.Step, p.Member)
	f.Limited = f.Limited.without(p.Member)
	f.callEnded(p.Call)
	f.useInstructions(&p)
	f.spend(p.Pass, phaseName(e), p.Spend)
	f.learnCost(&p)
	f.countPass(&p)
	f.keepReply(&p, phaseName(e))
	f.check(&p)
	f.keepSession(&p, phaseName(e))
	if p.Outcome == CategoryOK {
		f.Failure = nil
	}
	f.judge(&p)
	f.guard(&p)
	f.keepVerdict(&p, phaseName(e))
	if p.ID != "" && p.Value != "" {
		f.setValue(p.ID, p.Value)
	}
	f.keepOutput(&p, phaseName(e))
	if p.LastInRound {
		f.Set = ""
	}
	if p.Review != "" {
		f.Review = p.Review
	}
	if p.Member != "" && !slices.Contains(f.Settled, p.Member) {
		f.Settled = append(list(f, f.Settled), p.Member)
	}
	f.move(p.Next)
	f.head(e)
}

// judge adopts the verdict of a pass.
func (f *folder) judge(p *PassEnd) {
	if p.Tree != nil || p.Artifact != nil && p.Modified {
		at := f.Next
		f.Changed = &at
		f.outdate()
	}
	if p.Verdict != "" {
		f.setValue("verdict", p.Verdict)
	}
	if p.Verdict != "" || p.Approved != nil {
		f.Verdict, f.Approved, f.Conditions = p.Verdict, p.Approved, nil
	}
}

func (f *folder) countPass(p *PassEnd) {
	f.DurationsMS = newest(append(list(f, f.DurationsMS), p.DurationMS), keptDurations)
	f.Passes.Warnings += len(p.Validation.Warnings)
	if p.Outcome == CategoryOK {
		f.Passes.InRow = 0
	} else {
		f.Passes.InRow++
	}
	if p.Artifact != nil && !p.Modified {
		f.Passes.Unmodified++
	}
	if p.Number == 0 {
		return
	}
	f.Passes.LastSettled = p.Number
	if !p.Validation.Passed {
		f.Passes.Invalid++
	}
}

// newest keeps the last n, in place.
func newest[T any](s []T, n int) []T {
	return slices.Delete(s, 0, max(0, len(s)-n))
}

// keepReply remembers the last reply of each step of this round and of each stage: what later steps may be given to
// see.
func (f *folder) keepReply(p *PassEnd, phase string) {
	if p.Reply == nil || p.Outcome != CategoryOK || p.Fresh != "" { // a reply that cannot be used answers nothing
		return
	}
	kept := slices.DeleteFunc(list(f, f.Replies), func(r Reply) bool {
		sameStep := r.Step == p.Step && r.Member == p.Member
		olderPass := p.Number > 0 && r.Phase == phase && p.InRound == 1
		return sameStep || olderPass
	})
	const most = 32
	kept = append(kept, Reply{Step: p.Step, Member: p.Member, Role: p.Role, Phase: phase, Reply: *p.Reply,
		Judges: p.Verdict != "" || p.Approved != nil || p.Score != nil})
	f.Replies = newest(kept, most)
}

func (f *folder) appendNote(e *Event) {
	p := decoded[NoteAppended](e)
	f.Notes = list(f, f.Notes)
	for i := range f.Notes {
		if f.Notes[i].Name == p.Note {
			f.Notes[i].Entries++
			f.Notes[i].Whole = p.Whole
		}
	}
}

func (f *folder) takePictures(e *Event) {
	var p Screenshots
	e.Decode(&p)
	f.Pictures = nil
	if p.Count > 0 {
		f.Pictures = &p.Manifest
	}
	f.move(p.Next)
	f.head(e)
}

func (f *folder) skipStep(e *Event) {
	var p StepSkipped
	e.Decode(&p)
	for _, id := range p.IDs {
		f.setOutput(StepOutput{ID: id, Phase: phaseName(e), Now: true, Skipped: true})
	}
	f.move(p.Next)
	f.head(e)
}

func (f *folder) updateArtifact(e *Event) {
	p := decoded[ArtifactUpdated](e)
	f.Artifact = &p.Artifact
	if p.Cause == CauseEdited {
		f.doubt()
	}
}

func (f *folder) updateWorkspace(e *Event) {
	var p WorkspaceUpdated
	e.Decode(&p)
	if DigestOf(f.Tree) != p.Tree.Digest { // the decision was about other changes
		f.Markers.DeliveryOverride = nil
	}
	f.Tree = &p.Tree
	f.touch(p.Files, p.Changed)
	if p.Commit != "" {
		f.Commit = p.Commit
	}
	if p.Cause == CauseEdited || p.Cause == CauseBase {
		f.doubt()
	}
	if p.Base != "" && f.Forge != nil && f.Forge.Pull != nil {
		f.forge().Pull.Tip = p.Base
	}
}

func (f *folder) recordScore(e *Event) {
	p := decoded[ScoreRecorded](e)
	f.Score = p.Score
	f.setValue("score", scoreText(p.Score))
	f.keepScore(p.Score)
}

func (f *folder) attemptPictures(e *Event) {
	var p ShotsAttempt
	e.Decode(&p)
	f.problem(e, f.Wording.ShotsContext(p.Dir, p.Round), CategoryScreenshotFailed, p.Message, p.Attempt)
}

func (f *folder) noteError(e *Event) {
	var p ErrorNoted
	e.Decode(&p)
	f.problem(e, p.Context, p.Category, p.Message, p.Attempt)
}

func (f *folder) countRefused(e *Event) {
	var p DecisionRefused
	e.Decode(&p)
	f.Refused += max(1, p.Count)
}

func (f *folder) exceedBudget(e *Event) {
	var p BudgetEvent
	e.Decode(&p)
	f.Raised, f.Need = false, p.Need
	f.problem(e, "", CategoryBudgetExceeded, p.Exceeded(), 0)
}

func (f *folder) raiseBudget(e *Event) {
	var p BudgetEvent
	e.Decode(&p)
	f.setBudget(p.Budget)
}

// setBudget changes the budget. Only one that covers the next call ends the cause of a pause.
func (f *folder) setBudget(b Budget) {
	raised := b != f.Budget
	f.Budget, f.Warned = b, b.WarnUSD > 0 && f.Total() >= b.WarnUSD
	f.Raised = f.Status == Paused && f.Reason == BudgetThreshold && raised && !f.BudgetShort()
}

func scoreText(score *float64) string {
	if score == nil {
		return "null"
	}
	return strconv.FormatFloat(*score, 'f', -1, 64)
}

func (f *folder) setValue(name, text string) {
	f.Conditions = nil
	f.Values = list(f, f.Values)
	for i := range f.Values {
		if f.Values[i].Name == name {
			f.Values[i].Text = text
			return
		}
	}
	f.Values = append(f.Values, Value{Name: name, Text: text})
}

func (f *folder) checkpoint(e *Event) {
	var p CheckpointCreated
	e.Decode(&p)
	ref := CheckpointRef{ID: p.ID, Seq: e.Seq, TS: e.TS, AtPass: p.AtPass, AtRound: p.AtRound, USD: p.USD,
		Score: p.Score}
	if f.Artifact != nil {
		ref.Artifact = f.Artifact.Digest
	}
	f.Checkpoint = &ref
	f.Checkpoints = newest(append(list(f, f.Checkpoints), ref), keptCheckpoints)
}

// head makes the state after this event the one that a resume starts from. Its name is its sequence
// number.
func (f *folder) head(e *Event) {
	ref := CheckpointRef{
		ID: UnnamedID(e.Seq), Seq: e.Seq, TS: e.TS, AtPass: f.Passes.LastSettled, AtRound: f.Rounds, USD: f.Total(),
		Score: f.Score,
	}
	if f.Artifact != nil {
		ref.Artifact = f.Artifact.Digest
	}
	f.Checkpoint = &ref
}

// succeeded reports whether a phase with this outcome is a completed checkpoint. Outcomes that are not listed are not.
func succeeded(outcome string) bool {
	outcome = word(outcome)
	return outcome == "ok" || strings.HasPrefix(outcome, "skipped")
}

func unsuccessful(outcome string) bool {
	switch word(outcome) {
	case "failed", "rejected", "error":
		return true
	}
	return false
}
