package contract

import (
	"github.com/passbook-run/passbook/run"
)

// Names of the messages.
const (
	VerbPause  = "pause"
	VerbResume = "resume"
	VerbDecide = "decide"
	VerbRevert = "revert"
	VerbAmend  = "amend"
	VerbSteer  = "steer"
	VerbBudget = "budget"
	VerbLook   = "look" // only compares the directory with the execution
)

// Message is the payload of signals and Updates. Its keys are lower case because operators type them.
type Message struct {
	By   string  `json:"by,omitempty"`
	Note string  `json:"note,omitempty"`
	Now  bool    `json:"now,omitempty"` // pause, steer: cancel the running call instead of waiting for it
	USD  float64 `json:"usd,omitempty"` // budget: the new cap
	BudgetLimits
	Force bool `json:"force,omitempty"` // resume: even after repeated failures of the same pass; needs a reason

	To         string `json:"to,omitempty"`   // revert: the checkpoint, or a boundary such as pass-35
	StayPaused bool   `json:"rest,omitempty"` // revert: stay paused there

	Action   string `json:"action,omitempty"`   // decide: continue, retry_feedback, continue_with_waiver or halt
	Feedback string `json:"feedback,omitempty"` // decide: the text that retry_feedback and continue_with_waiver need
	ID       string `json:"id,omitempty"`       // decide: id of the hand-off; optional while only one is open
	Implicit bool   `json:"implicit,omitempty"` // decide: the program filled in the id of the only open one

	Reason string `json:"reason,omitempty"` // resume: why it is forced; journaled

	Text string `json:"text,omitempty"` // steer: the instruction
	Role string `json:"role,omitempty"` // steer: whose next prompt contains it; empty: that of every role

	Plan *run.PlanRef `json:"plan,omitempty"` // amend: the new plan, in the store
}

// Ack is the result of an Update.
type Ack struct {
	RunID   string     `json:"run_id"`
	Status  run.Status `json:"status"`
	Message string     `json:"said"`
}

// Control is what messages requested and the main loop has not done yet.
type Control struct {
	Pause   bool   `json:"pause,omitempty"`
	PauseBy string `json:"pause_by,omitempty"`
	Now     bool   `json:"now,omitempty"`
	Resume  bool   `json:"resume,omitempty"`
	By      string `json:"by,omitempty"`
	Note    string `json:"note,omitempty"`
	Force   bool   `json:"force,omitempty"`
	Reason  string `json:"reason,omitempty"` // for force

	Revert *PendingRevert `json:"revert,omitempty"`
}

// BudgetLimits are the budgets of a message besides that in USD. Zero: unchanged.
type BudgetLimits struct {
	Tokens   int64   `json:"tokens,omitempty"`
	Calls    int     `json:"calls,omitempty"`
	Hours    float64 `json:"hours,omitempty"`
	Deadline string  `json:"deadline,omitempty"` // RFC 3339
}

// Redacted returns the message without secrets.
func (m Message) Redacted(hide func(string) string) Message {
	for _, text := range []*string{&m.By, &m.Note, &m.Feedback, &m.Reason, &m.Text} {
		*text = hide(*text)
	}
	if !run.KnownAction(m.Action) {
		m.Action = hide(m.Action)
	}
	return m
}

// PendingRevert is a requested revert that the main loop has not made yet.
type PendingRevert struct {
	To         string `json:"to"` // checkpoint, or a boundary such as pass-35
	By         string `json:"by,omitempty"`
	Note       string `json:"note,omitempty"`
	StayPaused bool   `json:"rest,omitempty"` // stay paused there
}

// Superseded is the error type of a message that came to an execution whose directory is newer. Nothing was changed; sent
// once more, the next execution answers it.
const Superseded = "Superseded"

// FailedPrecondition is the error type of a valid message whose precondition does not hold.
const FailedPrecondition = "FailedPrecondition"

// DoneIsFinal is why a run that is done accepts no message and cannot be resumed.
const DoneIsFinal = "the run is done, and done is final: start another run, or fork this one"
