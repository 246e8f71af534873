package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Status is the status of a run. The words are those of requirement 001 and never change on disk.
type Status string

// Statuses, by class.
const (
	Unknown              Status = "unknown"
	Pending              Status = "pending"
	Running              Status = "running"
	Replaying            Status = "replaying"
	Paused               Status = "paused"
	WaitingLimit         Status = "waiting_limit"
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
	GateFailed          = "gate" // a command was not found or could not be executed
	ConsecutiveFailures = "consecutive-failures"
	DiskFull            = "disk-full"
	SetupFailed         = "setup"
	ForChecks           = "checks" // of the pull request
	ForReview           = "review" // of the pull request, until it is merged or closed
)

// Class is the meaning of a status for an operator.
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

// Statuses lists them all.
func Statuses() []Status {
	list := make([]Status, len(statuses))
	for i, r := range statuses {
		list[i] = r.status
	}
	return list
}

// Known reports whether s is a word of the table.
func (s Status) Known() bool { return s.row() != &noStatus }

// Class returns the meaning of the status for an operator.
func (s Status) Class() Class { return s.row().class }

// RFC returns the status in the words of RFC-0002 (requirement 003 §2).
func (s Status) RFC() string { return s.row().rfc }

// Words returns the status in plain words, as faces for people show it.
func (s Status) Words() string { return cmp.Or(s.row().words, string(s)) }

// Named returns the words, and the status as JSON and the disk have it unless it is the same.
func (s Status) Named() string {
	if words := s.Words(); words != string(s) {
		return words + " (" + string(s) + ")"
	}
	return string(s)
}

// ShownStatus is a status as every JSON of a run shows it: in both vocabularies.
type ShownStatus struct {
	Status    Status `json:"status" jsonschema:"pending: its directory has no event yet"`
	RFCStatus string `json:"rfc_status" jsonschema:"the status in the words of RFC-0002"`
}

// Shown returns the status in both vocabularies.
func (s Status) Shown() ShownStatus { return ShownStatus{s, s.RFC()} }

// Color is the color of the status where it is shown.
func (s Status) Color() Color { return s.row().color }

// Closed reports whether no execution works on a run of this status.
func (s Status) Closed() bool {
	c := s.Class()
	return c == SettledTerminal || c == Terminal || c == Torn
}

// NeedsOperator reports whether an open run waits for an operator.
func (s Status) NeedsOperator() bool { return s.Class() == OperatorPause && s != WaitingLimit }

// Settled reports whether only a forced resume reopens the run.
func (s Status) Settled() bool { return s.Class() == SettledTerminal }

// TransitionError is a change of status that the table does not contain.
type TransitionError struct {
	From, To Status
	Allowed  []Status
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("a run that is %s cannot become %s (allowed: %s)", e.From, e.To, statusList(e.Allowed))
}

func statusList(all []Status) string {
	if len(all) == 0 {
		return "none"
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// Transition returns an error unless a run may go from one status to another. It is the only table of transitions. X to
// X is refused unless it is listed.
func Transition(from, to Status) error {
	for _, s := range from.next() {
		if s == to {
			return nil
		}
	}
	return &TransitionError{From: from, To: to, Allowed: from.next()}
}

// statusOrUnknown is the status, or the word for a state without one.
func (s *State) statusOrUnknown() Status {
	if s.Status == "" {
		return Unknown
	}
	return s.Status
}

// mayBecome applies the table. A closed run changes only through events that open an epoch, whatever the table
// contains.
func (s *State) mayBecome(to Status) error {
	if s.statusOrUnknown().Closed() {
		return s.refusal(to)
	}
	return Transition(s.statusOrUnknown(), to)
}

func (s *State) refusal(to Status) *TransitionError {
	return &TransitionError{From: s.statusOrUnknown(), To: to, Allowed: s.statusOrUnknown().next()}
}

// next lists the possible next statuses of a run.
func (s Status) next() []Status { return slices.Clone(s.row().becomes) }
