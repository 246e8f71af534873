package run

// Reasons that the fold gives to an end.
const (
	ReasonHandoffHalt    = "phase_handoff_halt"
	ReasonReviewApproved = "review_approved"
)

// Outcome says what became of the work of a run, where its status does not.
type Outcome string

// Outcomes; each is also a key of the markers.
const (
	OutcomeRejected Outcome = "rejected_outcome"  // rejected and not delivered
	OutcomeNoOp     Outcome = "no_op_outcome"     // rejected, and there was nothing to deliver
	OutcomeNoChange Outcome = "no_change_outcome" // not rejected, and there was nothing to deliver
)

// Markers say how a run came to stand where it stands. An epoch that opens clears them, but for the waiver.
type Markers struct {
	HaltReason       string      `json:"halt_reason,omitempty"`
	HaltedAt         string      `json:"halted_at,omitempty"`
	InterruptedAt    string      `json:"interrupted_at,omitempty"`
	Halt             *Halt       `json:"halt,omitempty"`
	Failure          *RunFailure `json:"failure,omitempty"`
	Waiver           *Waiver     `json:"phase_handoff_waiver,omitempty"` // the last one; kept for good
	DeliveryOverride *Override   `json:"delivery_override,omitempty"`
	RejectedOutcome  bool        `json:"rejected_outcome,omitempty"`
	NoOpOutcome      bool        `json:"no_op_outcome,omitempty"`
	NoChangeOutcome  bool        `json:"no_change_outcome,omitempty"`
}

// Halt says why a run was halted, and in which phase.
type Halt struct {
	Reason string `json:"reason"`
	Phase  string `json:"phase"`
}

// RunFailure says what a run failed with.
type RunFailure struct {
	Phase string `json:"phase"`
	Error string `json:"error"`
	Type  string `json:"type"`
}

// Waiver is what an operator let pass.
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
