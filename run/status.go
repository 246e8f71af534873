package run

import "fmt"

// Status is where a run stands. The words are requirement 001's and stay on disk for ever.
type Status string

// Statuses, by class.
const (
	Unknown              Status = "unknown"
	Pending              Status = "pending"
	Running              Status = "running"
	Replaying            Status = "replaying"
	Paused               Status = "paused"
	AwaitingPhaseHandoff Status = "awaiting_phase_handoff"
	AwaitingGateDecision Status = "awaiting_gate_decision"
	AwaitingHumanReview  Status = "awaiting_human_review"
	Done                 Status = "done"
	Halted               Status = "halted"
	Cancelled            Status = "cancelled"
	Failed               Status = "failed"
	Interrupted          Status = "interrupted"
)

// Reasons of a pause: a closed list.
const (
	UserRequested       = "user-requested"
	UserReview          = "user-review"
	BudgetThreshold     = "budget-threshold"
	QualityGate         = "quality-gate"
	PassFailed          = "pass-failed"
	ConsecutiveFailures = "consecutive-failures"
	DiskFull            = "disk-full"
)

// Class says what a status means for an operator.
type Class string

// Classes of statuses.
const (
	Live            Class = "live"
	OperatorPause   Class = "operator pause"
	SettledTerminal Class = "settled terminal"
	Terminal        Class = "terminal"
	Torn            Class = "torn"
	Diagnostic      Class = "diagnostic"
)

type statusInfo struct {
	class Class
	rfc   string
}

func info(s Status) (statusInfo, bool) {
	switch s {
	case Unknown:
		return statusInfo{Diagnostic, "pending"}, true
	case Pending:
		return statusInfo{Live, "pending"}, true
	case Running:
		return statusInfo{Live, "running"}, true
	case Replaying:
		return statusInfo{Live, "replaying"}, true
	case Paused:
		return statusInfo{OperatorPause, "waiting_for_signal"}, true
	case AwaitingPhaseHandoff, AwaitingGateDecision, AwaitingHumanReview:
		return statusInfo{OperatorPause, "waiting_for_human"}, true
	case Done:
		return statusInfo{SettledTerminal, "completed"}, true
	case Halted, Cancelled:
		return statusInfo{SettledTerminal, "canceled"}, true
	case Failed:
		return statusInfo{Terminal, "failed"}, true
	case Interrupted:
		return statusInfo{Torn, "failed"}, true
	}
	return statusInfo{Diagnostic, "pending"}, false
}

// Statuses lists them all.
func Statuses() []Status {
	return []Status{
		Unknown, Pending, Running, Replaying, Paused, AwaitingPhaseHandoff, AwaitingGateDecision, AwaitingHumanReview, Done, Halted, Cancelled, Failed, Interrupted,
	}
}

// Known says whether s is a word of the table.
func (s Status) Known() bool { _, ok := info(s); return ok }

// Class gives what the status means for an operator.
func (s Status) Class() Class { i, _ := info(s); return i.class }

// RFC gives the status in the words of RFC-0002 (requirement 003 §2).
func (s Status) RFC() string { i, _ := info(s); return i.rfc }

// Closed says that no execution works on a run of this status.
func (s Status) Closed() bool {
	c := s.Class()
	return c == SettledTerminal || c == Terminal || c == Torn
}

// Settled says that nothing but a forced resume brings the run back.
func (s Status) Settled() bool { return s.Class() == SettledTerminal }

// TransitionError is a change of status that the table does not hold.
type TransitionError struct {
	From, To Status
	Allowed  []Status
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("a run that is %s cannot become %s (allowed: %v)", e.From, e.To, e.Allowed)
}

// Transition says whether a run may go from one status to another. It is the only table: everything else asks it. X to X is refused unless
// it is listed.
func Transition(from, to Status) error {
	for _, s := range allowed(from) {
		if s == to {
			return nil
		}
	}
	return &TransitionError{From: from, To: to, Allowed: allowed(from)}
}

// standing is the status, with its word where a state has none yet.
func (s *State) standing() Status {
	if s.Status == "" {
		return Unknown
	}
	return s.Status
}

// mayBecome asks the table. A closed run changes only through the events that open an epoch, whatever the table holds.
func (s *State) mayBecome(to Status) error {
	if s.standing().Closed() {
		return s.refusal(to)
	}
	return Transition(s.standing(), to)
}

func (s *State) refusal(to Status) *TransitionError {
	return &TransitionError{From: s.standing(), To: to, Allowed: allowed(s.standing())}
}

func allowed(from Status) []Status {
	switch from {
	case Unknown:
		return []Status{Pending, Running}
	case Pending:
		return []Status{Running, Cancelled}
	case Running:
		return []Status{Paused, AwaitingPhaseHandoff, AwaitingGateDecision, AwaitingHumanReview, Replaying, Done, Halted, Cancelled, Failed, Interrupted}
	case Replaying:
		return []Status{Running, Paused, Failed, Cancelled, Interrupted}
	case Paused, AwaitingPhaseHandoff, AwaitingGateDecision:
		return []Status{Running, Halted, Cancelled, Failed, Interrupted}
	case AwaitingHumanReview:
		return []Status{Running, Done, Halted, Cancelled, Failed, Interrupted}
	case Failed, Cancelled, Interrupted:
		return []Status{Running} // only through run.resumed with a new epoch
	case Halted:
		return []Status{Running} // only forced, with a new epoch
	}
	return nil
}
