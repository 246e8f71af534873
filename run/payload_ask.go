package run

import "time"

// HandoffRequested asks an operator what is to become of a phase. The ID contains the seq of this event and the digest that it judges.
type HandoffRequested struct {
	HandoffID     string     `json:"handoff_id"`
	Phase         string     `json:"phase"`
	Question      string     `json:"question,omitempty"` // in words, for people
	HandoffType   string     `json:"handoff_type"`       // one of the Handoff… types
	Trigger       string     `json:"trigger"`
	Round         int        `json:"round"`
	Actions       []string   `json:"available_actions"`
	Verdict       string     `json:"verdict,omitempty"`
	Approved      *bool      `json:"approved,omitempty"`
	LoopMaxRounds int        `json:"loop_max_rounds,omitempty"`
	Artifacts     []Attached `json:"artifacts,omitempty"`
	LastOutput    string     `json:"last_output,omitempty"` // digest: texts stay out of events and of meta.json
	Digest        string     `json:"digest,omitempty"`      // what is judged
	Patience
}

// Waits say how long the questions of a run wait. Zero: for ever, and silently.
type Waits struct {
	RemindMS  int64  `json:"remind_ms,omitempty"`
	ExpiresMS int64  `json:"expires_ms,omitempty"`
	OnExpiry  string `json:"on_expiry,omitempty"` // halt, continue or remind
}

// From gives the patience of a question that is asked at a moment.
func (w Waits) From(asked time.Time) Patience {
	p := Patience{RemindMS: w.RemindMS}
	if w.ExpiresMS > 0 {
		p.ExpiresAt, p.OnExpiry = Time(asked.Add(time.Duration(w.ExpiresMS)*time.Millisecond)), w.OnExpiry
	}
	return p
}

// Patience is how long a question waits. Times are absolute, in TimeFormat.
type Patience struct {
	RemindMS  int64  `json:"remind_ms,omitempty"`  // between reminders
	ExpiresAt string `json:"expires_at,omitempty"` // then nobody waits any longer
	OnExpiry  string `json:"on_expiry,omitempty"`  // halt, continue or remind
}

// QuestionReminded says that nobody has answered yet.
type QuestionReminded struct {
	ID      string `json:"id"`
	Number  int    `json:"number"`            // 1-based
	Expired bool   `json:"expired,omitempty"` // the time to answer is over
}

// HandoffDecided is the operator's answer.
type HandoffDecided struct {
	HandoffID  string `json:"handoff_id"`
	Action     string `json:"action"`
	Feedback   string `json:"feedback"`
	Note       string `json:"note"`
	DecidedBy  string `json:"decided_by"`
	DecisionID string `json:"decision_id"`
	DecidedAt  string `json:"decided_at"`
	Implicit   bool   `json:"implicit,omitempty"` // the operator named no hand-off: it was the only one open
	Next       *Place `json:"next,omitempty"`     // where the run goes on; nil: where it stands
	Redo       string `json:"redo,omitempty"`     // what is done again from there: step, or round for what follows a new round; empty: nothing
}

// Asked is payload of gate.requested, delivery.requested and review.requested. The ID contains the seq of the event and the digest.
type Asked struct {
	ID        string     `json:"id"`
	Question  string     `json:"question,omitempty"` // in words, for people
	Digest    string     `json:"digest"`             // what is judged
	Phase     string     `json:"phase,omitempty"`
	Round     int        `json:"round,omitempty"`
	Trigger   string     `json:"trigger"`
	Actions   []string   `json:"available_actions"`
	Artifacts []Attached `json:"artifacts,omitempty"`
	Patience
}

// Answered is payload of gate.decided, delivery.decided and review.decided.
type Answered struct {
	ID         string `json:"id"`
	Action     string `json:"action"`
	Feedback   string `json:"feedback"`
	Note       string `json:"note"`
	DecidedBy  string `json:"decided_by"`
	DecisionID string `json:"decision_id"`
	DecidedAt  string `json:"decided_at"`
	Implicit   bool   `json:"implicit,omitempty"`
	Next       *Place `json:"next,omitempty"` // where the run goes on; nil: where it stands
	Redo       string `json:"redo,omitempty"` // as of a hand-off
}

// DeliveryCompleted says what became of a delivery.
type DeliveryCompleted struct {
	ID        string `json:"id,omitempty"` // the question that was decided; empty: none was asked
	Action    string `json:"action"`
	Delivered bool   `json:"delivered"`
	Diff      string `json:"diff,omitempty"`   // digest of the diff; empty: there is none
	Commit    string `json:"commit,omitempty"` // what was made of it
	To        string `json:"to,omitempty"`     // branch or checkout
	Target    string `json:"target,omitempty"` // the branch, or the checkout's folder
	Files     int    `json:"files,omitempty"`
	Message   string `json:"message,omitempty"` // why nothing was delivered
	Result    string `json:"result,omitempty"`  // digest of what was promoted
}

// SnapshotCreated says that the state at a turn was written down for readers.
type SnapshotCreated struct {
	Turn   int    `json:"turn"`
	Digest string `json:"digest"`
}

// Effect is payload of effect.reused and effect.blocked: an outside call that a replay did not make again, or not without being asked.
type Effect struct {
	Step   string  `json:"step,omitempty"`
	Call   string  `json:"call"`
	Class  string  `json:"class"`            // none, read, write or external_action
	Policy string  `json:"policy"`           // use_recorded_result, reexecute or require_human
	Status string  `json:"status,omitempty"` // reused or blocked
	Result string  `json:"result,omitempty"` // id of the recorded call
	Source string  `json:"source_run_id,omitempty"`
	USD    float64 `json:"usd,omitempty"` // what the recorded call had cost; it is not paid again
}

// Classes of outside effects.
const (
	EffectNone     = "none"
	EffectRead     = "read"
	EffectWrite    = "write"
	EffectExternal = "external_action"
)

// What a decision makes a run do again.
const (
	RedoStep  = "step"  // the step that it goes on with, and all that follows
	RedoRound = "round" // it goes on with a new round of a loop; what follows the loop is done again
)
