package run

import "slices"

// QuestionKind is the kind of answer for which a run waits.
type QuestionKind string

// Kinds of questions.
const (
	QuestionHandoff  QuestionKind = "handoff"
	QuestionGate     QuestionKind = "gate"
	QuestionDelivery QuestionKind = "delivery"
	QuestionReview   QuestionKind = "review"
)

// Actions that a question may offer.
const (
	ActionContinue           = "continue"
	ActionRetryFeedback      = "retry_feedback"
	ActionContinueWithWaiver = "continue_with_waiver"
	ActionHalt               = "halt"
	ActionRetry              = "retry"
	ActionApprove            = "approve"
	ActionFix                = "fix"
	ActionApply              = "apply"
	ActionSkip               = "skip"
)

// Types of hand-offs.
const (
	HandoffBypass           = "human_bypass"
	HandoffFeedbackOnReject = "human_feedback_on_reject" // rejected, and out of rounds
	HandoffFeedbackAlways   = "human_feedback_always"
)

// Triggers of questions.
const (
	TriggerRejected       = "rejected"
	TriggerApproved       = "approved" // asked although approved
	TriggerAsked          = "asked"    // there is no verdict on the work as it is
	TriggerIncomplete     = "incomplete"
	TriggerScopeExpansion = "scope_expansion"
	TriggerBypass         = "bypass"       // rejected, without a repetition: an operator accepts or halts it
	TriggerCheckFailed    = "check_failed" // a gate's command or check
	TriggerPlanReady      = "plan_ready"   // the review of a plan-only run
	TriggerDirtyTarget    = "dirty_target"
	TriggerDefinition     = "definition_changed" // the changes include files that a start reads
	TriggerAcceptance     = "acceptance"         // of the work of all projects
	TriggerProject        = "project"            // forwards the question of a project
	TriggerBlocked        = "project_blocked"    // projects that are not done
	TriggerUnprepared     = "unprepared_target"  // a project's changes cannot be delivered
	TriggerEffect         = "effect"             // a replay that asks before an external call
	TriggerAction         = "external_action"    // likewise, before a step that declares an external action
	TriggerUnrecorded     = "unrecorded_action"  // likewise, and the replayed run has no result of it
	TriggerRedChecks      = "red_checks"         // checks of the pull request failed
	TriggerReviewed       = "reviewed"           // the pull request has comments
	TriggerConflict       = "base_conflict"      // the pull request conflicts with its base
)

// Kinds of events that ask and answer.
const (
	KindHandoffRequested  Kind = "phase.handoff_requested"
	KindHandoffDecided    Kind = "phase_handoff.decided"
	KindGateRequested     Kind = "gate.requested"
	KindGateDecided       Kind = "gate.decided"
	KindReviewRequested   Kind = "review.requested"
	KindReviewDecided     Kind = "review.decided"
	KindDeliveryRequested Kind = "delivery.requested"
	KindDeliveryDecided   Kind = "delivery.decided"
)

// QuestionSpec is a row of the table of question kinds: everything that the program has to know of a kind. A new kind
// needs its constants and a row here, and a place in the workflow that asks.
type QuestionSpec struct {
	Kind      QuestionKind
	Name      string // for display
	Text      string // text of a request without text
	Requested Kind   // event that asks
	Decided   Kind   // event that answers
	Status    Status // of a run that waits for the answer
	AlsoEnds  Status // another status that the answer ends
	Halted    string // reason of the end, if the answer ends the run as halted; empty: the kind of the event
	AnyAction bool   // an action that is not among the answers continues the run
	Unasked   bool   // an unattended run does not ask it, if its offer has an action for that
	effect    string // effect of the request on the status, for docs/run-state.md; empty: it becomes Status
	Offers    []Offer
	Answers   []Answer
}

// Offer lists who may answer a question of a trigger, and how.
type Offer struct {
	Trigger  string
	Operator []string // actions of an operator, in display order
	// action of an expired question whose definition continues then, and of one that an unattended run does not ask;
	// empty: the run is halted, and asks when it is unattended
	Expiry string
}

// Answer describes an action.
type Answer struct {
	Action  string
	Effect  Effects
	Meaning string // for display
}

// Effects are the consequences of an answer.
type Effects uint8

// Effects. Without one of the first five, the run continues where it is.
const (
	ContinuesAfter Effects = 1 << iota // the run continues after the step that asked
	RepeatsSubject                     // the run repeats the subject of the question, with the feedback
	Repeats                            // the run repeats the step that asked
	EndsDone                           // the run ends as done
	EndsHalted                         // the run ends as halted
	Waives                             // a waiver is recorded
	Overrides                          // a rejected delivery is made
	TakesFeedback                      // the answer needs feedback
)

// Has reports whether e has all of these effects.
func (e Effects) Has(these Effects) bool { return e&these == these }

var questionKinds = []QuestionSpec{
	{
		Kind: QuestionHandoff, Name: "hand-off", Text: "Is the phase finished?",
		Requested: KindHandoffRequested, Decided: KindHandoffDecided, Status: AwaitingPhaseHandoff,
		AlsoEnds: AwaitingHumanReview, Halted: ReasonHandoffHalt, Unasked: true,
		effect: "awaiting_phase_handoff; the hand-off is active and stays in the history",
		Offers: []Offer{
			{
				TriggerRejected, []string{ActionContinue, ActionRetryFeedback, ActionHalt, ActionContinueWithWaiver},
				ActionContinue,
			},
			{TriggerApproved, []string{ActionContinue, ActionRetryFeedback, ActionHalt}, ActionContinue},
			{TriggerAsked, []string{ActionContinue, ActionRetryFeedback, ActionHalt}, ActionContinue},
			{TriggerIncomplete, []string{ActionRetryFeedback, ActionContinueWithWaiver, ActionHalt},
				ActionContinueWithWaiver},
			{TriggerBypass, []string{ActionContinue, ActionContinueWithWaiver, ActionHalt}, ActionContinue},
			{TriggerScopeExpansion, []string{ActionContinue, ActionHalt, ActionContinueWithWaiver}, ActionContinue},
			{TriggerAcceptance, []string{ActionContinue, ActionHalt}, ""},
			{TriggerProject, []string{ActionContinue, ActionRetryFeedback, ActionContinueWithWaiver, ActionHalt}, ""},
		},
		Answers: []Answer{
			{ActionContinue, ContinuesAfter, "continue the run"},
			{ActionRetryFeedback, RepeatsSubject | TakesFeedback, "do it again with your feedback, then ask again"},
			waiver, halt,
		},
	},
	{
		Kind: QuestionGate, Name: "gate", Text: "A check failed. Continue?",
		Requested: KindGateRequested, Decided: KindGateDecided, Status: AwaitingGateDecision,
		Halted:    ReasonGateHalted,
		AnyAction: true,
		Offers: []Offer{
			{TriggerCheckFailed, []string{ActionRetry, ActionContinueWithWaiver, ActionHalt}, ActionContinueWithWaiver},
			{TriggerBlocked, []string{ActionRetry, ActionHalt}, ""},
			{TriggerEffect, []string{ActionApprove, ActionApply, ActionHalt}, ""},
			{TriggerAction, []string{ActionApprove, ActionApply, ActionHalt}, ""},
			{TriggerUnrecorded, []string{ActionApprove, ActionHalt}, ""},
		},
		Answers: []Answer{
			{ActionRetry, Repeats, "do the step again"},
			waiver,
			{ActionApprove, 0, "make the call"},
			{ActionApply, 0, "use the recorded answer instead of a call"},
			halt,
		},
	},
	{
		Kind: QuestionReview, Name: "review", Text: "Is the result good?",
		Requested: KindReviewRequested, Decided: KindReviewDecided, Status: AwaitingHumanReview,
		Halted:    ReasonReviewHalted,
		AnyAction: true, Unasked: true,
		Offers: []Offer{
			{TriggerPlanReady, []string{ActionApprove, ActionRetryFeedback, ActionHalt}, ActionApprove},
		},
		Answers: []Answer{
			{ActionApprove, EndsDone, "accept the result; the run is done"},
			{ActionRetryFeedback, RepeatsSubject | TakesFeedback, "do it again with your feedback, then ask again"},
			halt,
		},
	},
	{
		Kind: QuestionDelivery, Name: "delivery", Text: "Deliver the changes?",
		Requested: KindDeliveryRequested, Decided: KindDeliveryDecided, Status: AwaitingGateDecision,
		Halted:    ReasonDeliveryHalted,
		AnyAction: true,
		Offers: []Offer{
			{TriggerRejected, []string{ActionFix, ActionApprove, ActionApply, ActionSkip, ActionHalt}, ActionSkip},
			{TriggerDefinition, []string{ActionFix, ActionApprove, ActionApply, ActionSkip, ActionHalt}, ActionSkip},
			{TriggerEffect, []string{ActionApprove, ActionApply, ActionSkip, ActionHalt}, ""},
			{TriggerDirtyTarget, []string{ActionRetry, ActionSkip, ActionHalt}, ActionSkip},
			{TriggerUnprepared, []string{ActionRetry, ActionHalt}, ""},
			{TriggerRedChecks, []string{ActionFix, ActionSkip, ActionHalt}, ActionSkip},
			{TriggerReviewed, []string{ActionFix, ActionSkip, ActionHalt}, ActionSkip},
			{TriggerConflict, []string{ActionFix, ActionSkip, ActionHalt}, ActionSkip},
		},
		Answers: []Answer{
			{ActionFix, RepeatsSubject, "fix the findings of the review, or what your feedback names; then ask about the delivery again"},
			{ActionApprove, Overrides, "deliver with a commit, even if the changes were rejected"},
			{ActionApply, Overrides, "put the changes into the checkout without a commit, even if they were rejected"},
			{ActionSkip, 0, "do not deliver; the changes stay on the run's branch and in its directory"},
			{ActionRetry, 0, "check the target again, after you have cleaned it up"},
			halt,
		},
	},
}

var (
	waiver = Answer{
		ActionContinueWithWaiver, ContinuesAfter | Waives | TakesFeedback,
		"continue; your feedback is recorded and shown to later reviews",
	}
	halt = Answer{ActionHalt, EndsHalted, "end the run as halted"}
)

// QuestionKinds is the table of question kinds.
func QuestionKinds() []QuestionSpec { return slices.Clone(questionKinds) }

// Spec is the row of a kind; zero for an unknown one.
func (k QuestionKind) Spec() QuestionSpec {
	for i := range questionKinds {
		if questionKinds[i].Kind == k {
			return questionKinds[i]
		}
	}
	return QuestionSpec{Kind: k}
}

// Asks returns the kind of question that an event asks.
func (k Kind) Asks() (QuestionSpec, bool) {
	for i := range questionKinds {
		if questionKinds[i].Requested == k {
			return questionKinds[i], true
		}
	}
	return QuestionSpec{}, false
}

// Answers returns the kind of question that an event answers.
func (k Kind) Answers() (QuestionSpec, bool) {
	for i := range questionKinds {
		if questionKinds[i].Decided == k {
			return questionKinds[i], true
		}
	}
	return QuestionSpec{}, false
}

// Offer returns the answers to a question of a trigger; false if it is never asked.
func (s QuestionSpec) Offer(trigger string) (Offer, bool) {
	i := slices.IndexFunc(s.Offers, func(o Offer) bool { return o.Trigger == trigger })
	if i < 0 {
		return Offer{Trigger: trigger}, false
	}
	return s.Offers[i], true
}

// Answer describes an action; false if it does not answer this kind of question.
func (s QuestionSpec) Answer(action string) (Answer, bool) {
	i := slices.IndexFunc(s.Answers, func(a Answer) bool { return a.Action == action })
	if i < 0 {
		return Answer{Action: action}, false
	}
	return s.Answers[i], true
}

// KnownAction reports whether an action answers some kind of question.
func KnownAction(action string) bool {
	return slices.ContainsFunc(questionKinds, func(s QuestionSpec) bool { _, ok := s.Answer(action); return ok })
}

// FixFindings is the feedback of a fix without one. The prompt has the rejected review beside it.
const FixFindings = "Fix the findings of the review."

// NeedsFeedback reports whether an action requires feedback.
func NeedsFeedback(action string) bool {
	return slices.ContainsFunc(questionKinds, func(s QuestionSpec) bool {
		a, _ := s.Answer(action)
		return a.Effect.Has(TakesFeedback)
	})
}

// Offered lists the actions of a question in display order, or nil if it is never asked.
func Offered(kind QuestionKind, trigger string) []string {
	o, _ := kind.Spec().Offer(trigger)
	return slices.Clone(o.Operator)
}
