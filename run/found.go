package run

// What a start finds in a directory, as the decision log calls it (requirement 002 §3.1). The first two are decisions
// of events; the others start nothing, so the start itself records them.
const (
	FreshStart          = "fresh-start"
	ResumeRun           = "resume"
	FoundPaused         = "paused"
	FoundComplete       = "already-complete"
	FailedNeedsDecision = "failed-needs-decision"
)

// ArchivedState ends the warning of a start that archived the run of its directory: the reason of its fresh start.
const ArchivedState = "Archived old state. Starting fresh."

// FoundBy returns the decision, and its reason, of a start that finds a run in this state and leaves it there. It is ""
// for a run at work.
func FoundBy(s State) (decision, reason string) {
	switch {
	case s.Status == Done:
		decision = FoundComplete
	case s.Status.Closed():
		decision = FailedNeedsDecision
	case s.Status.Class() == OperatorPause:
		decision = FoundPaused
	default:
		return "", ""
	}
	reason = "the run is " + string(s.Status)
	if s.Reason != "" {
		reason += ": " + s.Reason
	}
	return decision, reason
}

// OfStart reports whether a decision is one that a start records without an event.
func OfStart(decision string) bool {
	switch decision {
	case FoundPaused, FoundComplete, FailedNeedsDecision:
		return true
	}
	return false
}
