package run

import (
	"fmt"
	"slices"
)

// Operation is what somebody may ask for with a run.
type Operation string

// Operations.
const (
	Observe  Operation = "observe"
	Diagnose Operation = "diagnose"
	Pause    Operation = "pause"
	Resume   Operation = "resume"
	Decide   Operation = "decide"
	Cancel   Operation = "cancel"
	Revert   Operation = "revert"
	Replay   Operation = "replay"
	Fork     Operation = "fork"
	FollowUp Operation = "follow_up"
	Promote  Operation = "promote"
	Repair   Operation = "repair"
	Remove   Operation = "remove"
)

// AllOperations lists every operation, in the order of the table.
func AllOperations() []Operation {
	return []Operation{Observe, Diagnose, Pause, Resume, Decide, Cancel, Revert, Replay, Fork, FollowUp, Promote, Repair, Remove}
}

// Terms are what else counts besides the status.
type Terms struct {
	Forced    bool // somebody insists and gives a reason, and the settings allow it
	Undecided bool // a hand-off or another question is open, or was left so
}

// ConflictError is an operation that a run of this status does not allow.
type ConflictError struct {
	Operation Operation   `json:"operation"`
	From      Status      `json:"from"`
	Allowed   []Operation `json:"allowed"`
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("cannot %s a run that is %s (allowed: %v)", e.Operation, e.From, e.Allowed)
}

// Conflict is the refusal of an operation on these terms.
func Conflict(s Status, op Operation, t Terms) *ConflictError {
	return &ConflictError{Operation: op, From: s, Allowed: t.Operations(s)}
}

// Operations gives what may be done with a run of this status without force, when nothing is undecided but what the status itself says.
func Operations(s Status) []Operation { return Terms{}.Operations(s) }

// May says whether an operation may be asked for now; if not, with a *ConflictError.
func May(s Status, op Operation, t Terms) error {
	if t.allow(s, op) {
		return nil
	}
	return Conflict(s, op, t)
}

// Operations gives what may be done with a run of this status on these terms.
func (t Terms) Operations(s Status) []Operation {
	return slices.DeleteFunc(AllOperations(), func(op Operation) bool { return !t.allow(s, op) })
}

// allow is the table of statuses and operations (requirements 001 and 003).
func (t Terms) allow(s Status, op Operation) bool {
	asking := s == AwaitingPhaseHandoff || s == AwaitingGateDecision || s == AwaitingHumanReview
	ended := s == Failed || s == Cancelled || s == Interrupted
	switch op {
	case Observe, Diagnose:
		return true
	case Pause:
		return s == Running || s == Replaying
	case Resume:
		open := t.Undecided && (s == Failed || s == Interrupted) // it is decided first, and that opens the epoch
		return s == Paused || ended && !open || s == Halted && t.Forced
	case Decide:
		return asking || t.Undecided && (s == Running || s == Replaying || s == Paused || s == Failed || s == Interrupted)
	case Cancel:
		return s.Class() == Live || s.Class() == OperatorPause || s == Interrupted
	case Revert:
		return s == Paused || ended || s == Halted && t.Forced
	case Replay, Fork:
		return s.Known() && s != Unknown && s != Pending // nothing has a checkpoint before its start
	case FollowUp:
		return s == Done || s == Halted || s == Failed || s == Cancelled
	case Promote:
		return s == Done
	case Repair:
		return s.Class() != Live // a live run keeps its own snapshot right
	case Remove:
		return s.Closed() || s == Unknown
	}
	return false
}
