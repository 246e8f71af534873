package run

import "slices"

// Operations of clients that are in no row of the table of statuses: messages that a run accepts from its first event
// to its end, and a test of what it left.
const (
	SetBudget Operation = "budget"
	Steer     Operation = "steer"
	Amend     Operation = "amend"
	Verify    Operation = "verify"
)

// Available lists the operations that change a run, or start another one from it, and that its status allows now, by
// the names that every client uses. The command line, the HTTP API, MCP and the workflow show this list.
func (t Terms) Available(s Status) []Operation {
	return available(s, func(op Operation) bool { return t.allow(s, op) })
}

// Available lists what the status allows instead, as [Terms.Available] does.
func (e *ConflictError) Available() []Operation {
	return available(e.From, func(op Operation) bool { return slices.Contains(e.Allowed, op) })
}

// available lists the operations of clients: of those in the table of statuses, the allowed ones.
func available(s Status, allowed func(Operation) bool) []Operation {
	all := []Operation{Fork, Replay, Decide, Pause, Resume, Cancel, Revert, SetBudget, Steer, Amend, Promote, Verify}
	return slices.DeleteFunc(all, func(op Operation) bool {
		switch op {
		case SetBudget, Steer, Amend:
			return !s.Known() || s == Unknown || s == Pending || s.Closed()
		case Verify:
			return !s.Settled()
		}
		return !allowed(op)
	})
}

// Available lists the operations that the status of the run allows; see [Terms.Available].
func (s State) Available(effective Status) []Operation {
	all := s.Terms().Available(effective)
	if len(s.Projects) > 0 { // its record does not have the deliveries of its projects
		all = slices.DeleteFunc(all, func(op Operation) bool { return op == Replay })
	}
	return all
}
