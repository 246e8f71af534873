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
	all := []Operation{Fork, Replay, Decide, Pause, Resume, Cancel, Revert, SetBudget, Steer, Amend, Promote, Verify}
	return slices.DeleteFunc(all, func(op Operation) bool { return !t.available(s, op) })
}

func (t Terms) available(s Status, op Operation) bool {
	switch op {
	case SetBudget, Steer, Amend:
		return s.Known() && s != Unknown && s != Pending && !s.Closed()
	case Verify:
		return s.Settled()
	}
	return t.allow(s, op)
}

// Available lists the operations that the status of the run allows; see [Terms.Available].
func (s State) Available(effective Status) []Operation {
	_, open := s.Asks()
	return Terms{Undecided: open}.Available(effective)
}
