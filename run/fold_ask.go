package run

import (
	"fmt"
	"strings"
)

// requestHandoff opens a hand-off. One that an earlier epoch left undecided gives way to it.
func (f *folder) requestHandoff(e *Event) {
	p := readHandoffRequested(e)
	f.recorder.request(p.HandoffID)
	if !f.become(AwaitingPhaseHandoff, "") {
		return
	}
	f.await(e, p)
}

// await sets the active hand-off.
func (f *folder) await(e *Event, p HandoffRequested) {
	if p.Phase == "" {
		p.Phase = phaseName(e)
	}
	f.Feedback = ""
	f.Handoff = &Handoff{
		ID: p.HandoffID, Phase: p.Phase, Question: p.Question, Type: p.HandoffType, Trigger: p.Trigger, Verdict: p.Verdict, Approved: p.Approved, Round: p.Round,
		LoopMaxRounds: p.LoopMaxRounds, Actions: filledList(p.Actions), Artifacts: filledList(p.Artifacts), LastOutput: p.LastOutput, Digest: p.Digest,
		RequestedAt: e.TS, Patience: p.Patience,
	}
	f.head(e)
}

// remind counts a reminder of the open question.
func (f *folder) remind(e *Event) {
	var p QuestionReminded
	e.Decode(&p)
	if h := f.Handoff; h != nil && h.ID == p.ID {
		next := *h
		next.Reminded = p.Number
		f.Handoff = &next
	}
	if q := f.Question; q != nil && q.ID == p.ID {
		next := *q
		next.Reminded = p.Number
		f.Question = &next
	}
}

// decideHandoff folds an answer. One for another hand-off than the active one is stale, and an action without a meaning decides nothing.
func (f *folder) decideHandoff(e *Event) {
	d := readHandoffDecided(e)
	if d.DecidedAt == "" {
		d.DecidedAt = e.TS
	}
	asked := f.Handoff
	switch action := word(d.Action); action {
	case ActionContinue:
		f.went(d, asked, f.take(ContinueHandoff(f.State, d)))
	case ActionContinueWithWaiver:
		last := f.Markers.Waiver
		if f.went(d, asked, f.take(ContinueWithWaiverHandoff(f.State, d))) {
			f.waive(last)
		}
	case ActionRetryFeedback:
		if f.went(d, asked, f.take(RetryFeedbackHandoff(f.State, d))) {
			f.Feedback = d.Feedback
		}
	case ActionHalt:
		if err := f.answers(d.HandoffID); err != nil {
			f.Illegal = err.Error()
			return
		}
		f.went(d, asked, f.take(MarkRunHalted(f.State, ReasonHandoffHalt, e.TS)))
	default:
		f.Illegal = fmt.Sprintf("a hand-off cannot be decided with %q", d.Action)
	}
}

// went remembers a decision that counts, and moves to where the run goes on.
func (f *folder) went(d HandoffDecided, asked *Handoff, counts bool) bool {
	if !counts {
		return false
	}
	f.Decided = &Decided{ID: d.HandoffID, Action: word(d.Action), Feedback: d.Feedback, Note: d.Note}
	if asked != nil {
		f.Decided.ID, f.Decided.Type, f.Decided.Phase, f.Decided.Round, f.Decided.Digest = asked.ID, asked.Type, asked.Phase, asked.Round, asked.Digest
	}
	f.sendBack(d.Redo, d.Next)
	f.move(d.Next)
	return true
}

// ask opens a gate, a delivery or a review.
func (f *folder) ask(e *Event) {
	kind, status := questionOf(e.Kind)
	if f.become(status, "") {
		f.open(e, kind)
	}
}

// open sets the open question.
func (f *folder) open(e *Event, kind QuestionKind) {
	var p Asked
	e.Decode(&p)
	f.Question = &Question{
		Kind: kind, ID: p.ID, Text: p.Question, Digest: p.Digest, Phase: p.Phase, Round: p.Round, Trigger: p.Trigger, Actions: filledList(p.Actions),
		Artifacts: p.Artifacts, RequestedAt: e.TS, Patience: p.Patience,
	}
	f.Feedback = ""
	f.head(e)
}

func questionOf(k Kind) (QuestionKind, Status) {
	switch k {
	case KindReviewRequested, KindReviewDecided:
		return QuestionReview, AwaitingHumanReview
	case KindDeliveryRequested, KindDeliveryDecided:
		return QuestionDelivery, AwaitingGateDecision
	}
	return QuestionGate, AwaitingGateDecision
}

// answer folds the decision of a gate, a delivery or a review.
func (f *folder) answer(e *Event) {
	var p Answered
	e.Decode(&p)
	kind, status := questionOf(e.Kind)
	if err := f.answersQuestion(kind, p.ID); err != nil {
		f.Illegal = err.Error()
		return
	}
	waiting := f.Status == status
	if !waiting && (f.Question == nil || f.Status.Closed()) {
		f.Illegal = f.refusal(Running).Error()
		return
	}
	action := word(p.Action)
	if q := f.Question; q != nil {
		f.Decided = &Decided{ID: q.ID, Type: string(kind), Phase: q.Phase, Round: q.Round, Action: action, Feedback: p.Feedback, Note: p.Note}
	}
	switch {
	case action == ActionHalt:
		f.take(MarkRunHalted(f.State, string(e.Kind), e.TS))
	case action == ActionApprove && kind == QuestionReview:
		f.take(MarkRunDone(f.State, ReasonReviewApproved, e.TS))
	default:
		f.goOn(action, e.TS, p, waiting)
	}
}

// goOn clears the question. A run that waits for it goes on; one that was opened again with the question undecided is at work already.
func (f *folder) goOn(action, ts string, p Answered, waiting bool) {
	q := f.Question
	if q != nil && q.overridden(action) {
		f.Markers.DeliveryOverride = &Override{Action: action, By: p.DecidedBy, At: ts}
	}
	switch action {
	case ActionContinueWithWaiver:
		f.waive(f.Markers.Waiver)
		f.Markers.Waiver = &Waiver{HandoffID: p.ID, Feedback: p.Feedback, Note: p.Note, DecidedBy: p.DecidedBy, DecidedAt: p.DecidedAt}
		if q != nil {
			f.Markers.Waiver.Phase = q.Phase
		}
	case ActionRetryFeedback, ActionFix:
		f.Feedback = p.Feedback
	}
	f.sendBack(p.Redo, p.Next)
	f.move(p.Next)
	if action == ActionRetry && q != nil && q.Kind == QuestionGate {
		f.Again = p.ID
	}
	if waiting {
		f.Status, f.Reason = Running, ""
	}
	f.Question = nil
}

// waive keeps a waiver whose place another one has taken.
func (f *folder) waive(w *Waiver) {
	const most, words = 8, 1000
	if w == nil {
		return
	}
	older := *w
	if r := []rune(older.Feedback); len(r) > words {
		older.Feedback = string(r[:words]) + " …"
	}
	older.Note = ""
	f.Waivers = newest(append(list(f, f.Waivers), older), most)
}

// deliver folds what became of the delivery.
func (f *folder) deliver(e *Event) {
	var p DeliveryCompleted
	e.Decode(&p)
	f.Delivery = &Delivered{Delivered: p.Delivered, To: p.To, Target: p.Target, Commit: p.Commit, Message: p.Message}
}

// overridden says that an action delivers what the last review rejected.
func (q *Question) overridden(action string) bool {
	return q.Kind == QuestionDelivery && q.Trigger == TriggerRejected && (action == ActionApprove || action == ActionApply)
}

// filledList keeps null out of JSON lists.
func filledList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func word(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
