package run

// Reasons of an end that the fold sets.
const (
	ReasonHandoffHalt    = "phase_handoff_halt"
	ReasonGateHalted     = "gate_halt"
	ReasonReviewHalted   = "review_halt"
	ReasonReviewApproved = "review_approved"
)

// Outcome is the result of a run's work, if its status does not determine it.
type Outcome string

// Outcomes; each is also a key of the markers.
const (
	OutcomeRejected Outcome = "rejected_outcome"  // rejected and not delivered
	OutcomeNoOp     Outcome = "no_op_outcome"     // rejected, and nothing to deliver
	OutcomeNoChange Outcome = "no_change_outcome" // not rejected, and nothing to deliver
)

// Markers explain the status of a run. A new epoch clears them, except for the waiver and, if the run failed, for a
// delivery that was decided.
type Markers struct {
	HaltReason       string      `json:"halt_reason,omitempty"`
	HaltedAt         string      `json:"halted_at,omitempty"`
	InterruptedAt    string      `json:"interrupted_at,omitempty"`
	Halt             *Halt       `json:"halt,omitempty"`
	Failure          *RunFailure `json:"failure,omitempty"`
	Waiver           *Waiver     `json:"phase_handoff_waiver,omitempty"` // the last one; never cleared
	DeliveryOverride *Override   `json:"delivery_override,omitempty"`
	RejectedOutcome  bool        `json:"rejected_outcome,omitempty"`
	NoOpOutcome      bool        `json:"no_op_outcome,omitempty"`
	NoChangeOutcome  bool        `json:"no_change_outcome,omitempty"`
}

// Halt is the reason of a halt, and its phase.
type Halt struct {
	Reason string `json:"reason"`
	Phase  string `json:"phase"`
}

// RunFailure is the error of a failed run.
type RunFailure struct {
	Phase string `json:"phase"`
	Error string `json:"error"`
	Type  string `json:"type"`
}

// Waiver is what an operator accepted despite a rejection.
type Waiver struct {
	HandoffID string `json:"handoff_id"`
	Phase     string `json:"phase"`
	Feedback  string `json:"feedback"`
	Note      string `json:"note"`
	DecidedBy string `json:"decided_by"`
	DecidedAt string `json:"decided_at"`
}

// Override is an operator's delivery of work that the last review rejected.
type Override struct {
	Action string `json:"action"` // approve or apply
	By     string `json:"by"`
	At     string `json:"at"`
}

func (m Markers) reopened() Markers { return Markers{Waiver: m.Waiver} }

func (m Markers) outcome(o Outcome) Markers {
	switch o {
	case OutcomeRejected:
		m.RejectedOutcome = true
	case OutcomeNoOp:
		m.NoOpOutcome = true
	case OutcomeNoChange:
		m.NoChangeOutcome = true
	}
	return m
}
