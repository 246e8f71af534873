package run

import "fmt"

// The owners of the transitions (requirement 000): pure functions over the state, which neither write nor tell anybody. The fold goes through
// them, so each transition is in one place. They refuse with a *TransitionError or a *StaleError, and then give the state back as it was.

// StaleError is an answer to a question that is not the open one: of another round, another artifact, or decided already.
type StaleError struct {
	What   QuestionKind
	ID     string // the question that was answered
	Active string // the one that is open; empty: none
}

func (e *StaleError) Error() string {
	if e.Active == "" {
		return fmt.Sprintf("no %s is open: the answer to %q is stale", e.What, e.ID)
	}
	return fmt.Sprintf("the answer to %s %q is stale: %q is open", e.What, e.ID, e.Active)
}

// ContinueHandoff goes on over the active hand-off.
func ContinueHandoff(s State, d HandoffDecided) (State, error) { return decided(s, d) }

// RetryFeedbackHandoff goes on with one more round. The operator's words are in the event; the state only goes on.
func RetryFeedbackHandoff(s State, d HandoffDecided) (State, error) { return decided(s, d) }

// ContinueWithWaiverHandoff goes on and records what was waived. Nothing but another waiver takes that out of the state again.
func ContinueWithWaiverHandoff(s State, d HandoffDecided) (State, error) {
	next, err := decided(s, d)
	if err != nil {
		return s, err
	}
	next.Markers.Waiver = s.Handoff.waived(d)
	return next, nil
}

// waived is the waiver that a decision gives. The hand-off may be unknown.
func (h *Handoff) waived(d HandoffDecided) *Waiver {
	w := Waiver{HandoffID: d.HandoffID, Feedback: d.Feedback, Note: d.Note, DecidedBy: d.DecidedBy, DecidedAt: d.DecidedAt}
	if h != nil {
		w.HandoffID, w.Phase = h.ID, h.Phase
	}
	return &w
}

// decided clears the hand-off. A run that waits for it goes on. A run that was opened again with the hand-off undecided is at work already.
func decided(s State, d HandoffDecided) (State, error) {
	if s.Status.Closed() {
		return s, s.refusal(Running) // first an epoch
	}
	if err := s.answers(d.HandoffID); err != nil {
		return s, err
	}
	if s.Status == AwaitingPhaseHandoff || s.Status == AwaitingHumanReview {
		s.Status, s.Reason, s.Question = Running, "", nil
	}
	s.Handoff = nil
	return s, nil
}

// answers says whether an answer is about the active hand-off. An answer without an id is about whichever is open.
func (s *State) answers(id string) error {
	switch {
	case s.Handoff == nil && s.Status == AwaitingPhaseHandoff:
		return nil // a stream of which only the end is known
	case s.Handoff == nil:
		return &StaleError{What: QuestionHandoff, ID: id}
	case id != "" && id != s.Handoff.ID:
		return &StaleError{What: QuestionHandoff, ID: id, Active: s.Handoff.ID}
	}
	return nil
}

func (s *State) answersQuestion(kind QuestionKind, id string) error {
	q := s.Question
	if q == nil || q.Kind == kind && (id == "" || id == q.ID) {
		return nil
	}
	return &StaleError{What: kind, ID: id, Active: q.ID}
}

// MarkRunDone ends a run well. The active hand-off is cleared.
func MarkRunDone(s State, reason, at string) (State, error) { return settle(s, Done, reason, at) }

// MarkRunHalted ends a run by an operator or a policy. The active hand-off is cleared.
func MarkRunHalted(s State, reason, at string) (State, error) { return settle(s, Halted, reason, at) }

// MarkRunFailed ends a run by an error of some type; without one, the last failed pass says it. An undecided hand-off is kept, but never by a
// run across projects.
func MarkRunFailed(s State, reason, kind, at string) (State, error) {
	next, err := settle(s, Failed, reason, at)
	if err == nil && kind != "" {
		next.Markers.Failure.Type = kind
	}
	return next, err
}

// MarkRunInterrupted says that a run's process ended without saying so. An undecided hand-off is kept.
func MarkRunInterrupted(s State, reason, at string) (State, error) {
	return settle(s, Interrupted, reason, at)
}

// settle closes a run, if the table allows it.
func settle(s State, to Status, reason, at string) (State, error) {
	if err := s.mayBecome(to); err != nil {
		return s, err
	}
	return s.closed(to, reason, at), nil
}

// closed is the state of a run that ended. It asks nothing.
func (s State) closed(to Status, reason, at string) State {
	phase := s.place()
	s.Status, s.Reason, s.FinishedAt, s.InFlight, s.Set = to, reason, at, nil, ""
	if to.Settled() || s.acrossProjects() && to == Failed {
		s.Handoff, s.Question = nil, nil
	}
	switch to {
	case Halted:
		s.Markers.HaltReason, s.Markers.HaltedAt, s.Markers.Halt = reason, at, &Halt{Reason: reason, Phase: phase}
	case Failed:
		s.Markers.Failure = &RunFailure{Phase: phase, Error: reason}
		if s.Failure != nil {
			s.Markers.Failure.Type = s.Failure.Category
		}
	case Interrupted:
		s.Markers.InterruptedAt = at
	}
	return s
}

// place is the phase that a halt or a failure is about.
func (s *State) place() string {
	if s.Handoff != nil && s.Handoff.Phase != "" {
		return s.Handoff.Phase
	}
	return s.Phase
}
