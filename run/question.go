package run

// QuestionKind says what kind of answer a run waits for.
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
	TriggerIncomplete     = "incomplete"
	TriggerScopeExpansion = "scope_expansion"
	TriggerBypass         = "bypass"       // rejected, and nothing is done again: an operator lets it pass or halts it
	TriggerCheckFailed    = "check_failed" // a gate's command or check
	TriggerPlanReady      = "plan_ready"   // the review of a plan-only run
	TriggerDirtyTarget    = "dirty_target"
	TriggerEffect         = "effect" // a replay that is to ask before an outside call
)

// Offered gives the actions of a question, in the order in which they are shown; nil for a question that is never asked.
func Offered(kind QuestionKind, trigger string) []string {
	switch {
	case kind == QuestionHandoff && trigger == TriggerRejected:
		return []string{ActionContinue, ActionRetryFeedback, ActionHalt, ActionContinueWithWaiver}
	case kind == QuestionHandoff && trigger == TriggerApproved:
		return []string{ActionContinue, ActionRetryFeedback, ActionHalt}
	case kind == QuestionHandoff && trigger == TriggerIncomplete:
		return []string{ActionRetryFeedback, ActionContinueWithWaiver, ActionHalt}
	case kind == QuestionHandoff && trigger == TriggerBypass:
		return []string{ActionContinue, ActionContinueWithWaiver, ActionHalt}
	case kind == QuestionHandoff && trigger == TriggerScopeExpansion:
		return []string{ActionContinue, ActionHalt, ActionContinueWithWaiver}
	case kind == QuestionGate && trigger == TriggerCheckFailed:
		return []string{ActionRetry, ActionContinueWithWaiver, ActionHalt}
	case kind == QuestionGate && trigger == TriggerEffect:
		return []string{ActionApprove, ActionApply, ActionHalt}
	case kind == QuestionReview && trigger == TriggerPlanReady:
		return []string{ActionApprove, ActionRetryFeedback, ActionHalt}
	case kind == QuestionDelivery && trigger == TriggerRejected:
		return []string{ActionFix, ActionApprove, ActionApply, ActionSkip, ActionHalt}
	case kind == QuestionDelivery && trigger == TriggerEffect:
		return []string{ActionApprove, ActionApply, ActionSkip, ActionHalt}
	case kind == QuestionDelivery && trigger == TriggerDirtyTarget:
		return []string{ActionRetry, ActionSkip, ActionHalt}
	}
	return nil
}

// Attached is something that a question is shown with.
type Attached struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Handoff is the active hand-off: open, or undecided when the run failed. Times are in TimeFormat.
type Handoff struct {
	ID            string     `json:"id"`
	Phase         string     `json:"phase"`
	Question      string     `json:"question,omitempty"` // in words
	Type          string     `json:"type"`
	Trigger       string     `json:"trigger"`
	Verdict       string     `json:"verdict"`
	Approved      *bool      `json:"approved"` // nil: nobody judged
	Round         int        `json:"round"`
	LoopMaxRounds int        `json:"loop_max_rounds"`
	Actions       []string   `json:"available_actions"`
	Artifacts     []Attached `json:"artifacts"`
	LastOutput    string     `json:"last_output"` // digest
	Digest        string     `json:"digest,omitempty"`
	RequestedAt   string     `json:"requested_at"`
	Patience
	Reminded int `json:"reminded,omitempty"` // how often
}

// Decided is the hand-off that was decided last. The same answer again is no new one, and another is a conflict.
type Decided struct {
	ID       string `json:"id"`
	Type     string `json:"type,omitempty"`
	Phase    string `json:"phase"`
	Round    int    `json:"round"`
	Action   string `json:"action"`
	Feedback string `json:"feedback,omitempty"`
	Note     string `json:"note,omitempty"`
	Digest   string `json:"digest,omitempty"` // of what was judged
}

// Question is an open gate, delivery or review. An answer counts only with its ID, which contains the seq of the request and the digest.
type Question struct {
	Kind        QuestionKind `json:"kind"`
	ID          string       `json:"id"`
	Text        string       `json:"question,omitempty"` // in words
	Digest      string       `json:"digest"`             // what is judged
	Phase       string       `json:"phase,omitempty"`
	Round       int          `json:"round,omitempty"`
	Trigger     string       `json:"trigger"`
	Actions     []string     `json:"available_actions"`
	Artifacts   []Attached   `json:"artifacts,omitempty"`
	RequestedAt string       `json:"requested_at"`
	Patience
	Reminded int `json:"reminded,omitempty"`

	Verdict string `json:"-"` // of a hand-off: what the last review said
	Type    string `json:"-"` // of a hand-off
}

// Words is the question in words for people.
func (q Question) Words() string {
	if q.Text != "" {
		return q.Text
	}
	return q.Phase
}

// Asks gives what the run waits for, hand-offs in the same form as the rest; false if nothing is open or undecided.
func (s State) Asks() (Question, bool) {
	if s.Question != nil {
		return *s.Question, true
	}
	h := s.Handoff
	if h == nil {
		return Question{}, false
	}
	return Question{
		Kind: QuestionHandoff, ID: h.ID, Text: h.Question, Digest: h.Digest, Phase: h.Phase, Round: h.Round, Trigger: h.Trigger, Actions: h.Actions,
		Artifacts: h.Artifacts, RequestedAt: h.RequestedAt, Patience: h.Patience, Reminded: h.Reminded,
		Verdict: h.Verdict, Type: h.Type,
	}, true
}

// acrossProjects says that a run coordinates runs of several projects.
func (s *State) acrossProjects() bool { return len(s.RunKind) >= 5 && s.RunKind[:5] == "cross" }
