package run

import (
	"fmt"
	"slices"
	"strings"
)

// Operation is a request for a run.
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
	return []Operation{Observe, Diagnose, Pause, Resume, Decide, Cancel, Revert, Replay, Fork, FollowUp, Promote,
		Repair, Remove}
}

// Terms are conditions besides the status.
type Terms struct {
	Forced    bool // an operator forces it with a reason, and the settings allow that
	Undecided bool // a hand-off or another question is undecided
	Projects  bool // the run is across projects
}

// Terms are the conditions of a run without force.
func (s State) Terms() Terms {
	_, open := s.Asks()
	return Terms{Undecided: open, Projects: len(s.Projects) > 0}
}

// Force returns the terms with force or without it.
func (t Terms) Force(forced bool) Terms {
	t.Forced = forced
	return t
}

// ConflictError is an operation that is not allowed for a run of this status.
type ConflictError struct {
	Operation Operation   `json:"operation"`
	From      Status      `json:"from"`
	Allowed   []Operation `json:"allowed"`
}

func (e *ConflictError) Error() string {
	return e.Text(func(args []string) string { return "starter " + strings.Join(args, " ") })
}

// Text is the message with the allowed operations in the form of a client. name gets the arguments of starter.
func (e *ConflictError) Text(name func(args []string) string) string {
	what := string(e.Operation) + " a run"
	if e.Operation == SetBudget {
		what = "raise the budget of a run"
	}
	return fmt.Sprintf("cannot %s that is %s (allowed: %s)", what, e.From, namesOf(e.Allowed, name))
}

// namesOf lists the names of operations: "starter status, starter pause".
func namesOf(all []Operation, name func(args []string) string) string {
	if len(all) == 0 {
		return "nothing"
	}
	names := make([]string, len(all))
	for i, op := range all {
		names[i] = name(strings.Fields(op.verb()))
	}
	return strings.Join(names, ", ")
}

// verb returns the command for an operation.
func (o Operation) verb() string {
	switch o {
	case Observe:
		return "status"
	case FollowUp:
		return "run --follow-up"
	case Repair:
		return "repair-state"
	}
	return strings.ReplaceAll(string(o), "_", "-")
}

// Conflict returns the refusal of an operation on these terms.
func Conflict(s Status, op Operation, t Terms) *ConflictError {
	return &ConflictError{Operation: op, From: s, Allowed: t.Operations(s)}
}

// Operations lists the operations for a run of this status without force, if nothing is undecided except what the
// status implies.
func Operations(s Status) []Operation { return Terms{}.Operations(s) }

// May returns a *ConflictError if an operation is not allowed now.
func May(s Status, op Operation, t Terms) error {
	if t.allow(s, op) {
		return nil
	}
	return Conflict(s, op, t)
}

// Operations lists the operations for a run of this status on these terms.
func (t Terms) Operations(s Status) []Operation {
	return slices.DeleteFunc(AllOperations(), func(op Operation) bool { return !t.allow(s, op) })
}

// allow looks up the table of statuses.
func (t Terms) allow(s Status, op Operation) bool {
	a := &s.row().allows
	switch {
	case t.Projects && s == Cancelled && (op == Resume || op == Revert): // requirement 001: follow-up only
		return false
	case slices.Contains(anyStatus(), op), slices.Contains(a.always, op):
		return true
	case slices.Contains(a.forced, op):
		return t.Forced
	case slices.Contains(a.undecided, op):
		return t.Undecided
	case slices.Contains(a.decided, op):
		return !t.Undecided
	}
	return false
}
