package run

import (
	"cmp"
	"fmt"
	"slices"
)

// The owners of the transitions (requirement 000) are pure functions over the state, without side effects. The fold
// uses them, so each transition is in one place. They refuse with a *TransitionError, a *StaleError or an *ActionError,
// and then return the state unchanged.

// StaleError is an answer to a question that is not the open one: of another round or another artifact, or decided
// already.
type StaleError struct {
	What   QuestionKind
	ID     string // the question that was answered
	Active string // the open question; empty: none
}

func (e *StaleError) Error() string {
	if e.Active == "" {
		return fmt.Sprintf("no %s is open: the answer to %q is stale", e.What, e.ID)
	}
	return fmt.Sprintf("the answer to %s %q is stale: %q is open", e.What, e.ID, e.Active)
}

// AnswerQuestion is the state after an operator's answer. For a hand-off it implements continue_handoff,
// continue_with_waiver_handoff, retry_feedback_handoff and the halt of requirement 000. A run that waits for the answer
// continues or ends; a run that was resumed with an undecided question is running already. A waiver stays in the state
// until another waiver replaces it.
func AnswerQuestion(s State, d QuestionDecided, at string) (State, error) {
	if s.Status.Closed() {
		return s, s.refusal(Running) // an epoch must open first
	}
	if err := s.answers(d.Kind, d.ID); err != nil {
		return s, err
	}
	spec := d.Kind.Spec()
	answer, ok := spec.Answer(word(d.Action))
	switch {
	case !ok && !spec.AnyAction:
		return s, &ActionError{Kind: d.Kind, Action: d.Action}
	case answer.Effect.Has(EndsHalted) && s.endsAcross(d.Kind) != "":
		return s.endAcross(s.endsAcross(d.Kind), at)
	case answer.Effect.Has(EndsHalted):
		return MarkRunHalted(s, spec.Halted, at)
	case answer.Effect.Has(EndsDone):
		return MarkRunDone(s, ReasonReviewApproved, at)
	}
	return s.answered(d, spec, answer.Effect, at), nil
}

// ActionError is an action that is not defined for its kind of question.
type ActionError struct {
	Kind   QuestionKind
	Action string
}

func (e *ActionError) Error() string {
	return fmt.Sprintf("a %s cannot be decided with %q", e.Kind.Spec().Name, e.Action)
}

// answered is the state of a run that continues after an answer.
func (s State) answered(d QuestionDecided, spec QuestionSpec, effect Effects, at string) State {
	q, there := s.Open(d.Kind)
	if effect.Has(Waives) {
		s.Markers.Waiver = q.waived(d)
	}
	if effect.Has(Overrides) && (q.Trigger == TriggerRejected || q.Trigger == TriggerDefinition) {
		s.Markers.DeliveryOverride = &Override{Action: word(d.Action), By: d.DecidedBy, At: at}
	}
	if effect.Has(RepeatsSubject) {
		s.Feedback, s.About = d.Feedback, q.about()
	}
	if effect.Has(Repeats) && there && q.Trigger != TriggerBlocked {
		s.Again = d.ID
	}
	waits := s.Status == spec.Status || spec.AlsoEnds != "" && s.Status == spec.AlsoEnds
	if waits {
		s.Status, s.Reason = Running, ""
	}
	s.Questions = s.without(d.Kind, waits)
	return s
}

// without returns the questions except those of a kind, and except later ones if the run no longer waits for them.
func (s *State) without(kind QuestionKind, later bool) []Question {
	i := s.index(kind)
	switch {
	case i < 0:
		return s.Questions
	case later || len(s.Questions) == 1:
		return slices.Clip(s.Questions[:i:i])
	}
	return slices.Concat(s.Questions[:i], s.Questions[i+1:])
}

// waived is the waiver of a decision. The question may be unknown.
func (q Question) waived(d QuestionDecided) *Waiver {
	return &Waiver{
		HandoffID: cmp.Or(q.ID, d.ID), Phase: q.Phase, Feedback: d.Feedback, Note: d.Note,
		DecidedBy: d.DecidedBy, DecidedAt: d.DecidedAt,
	}
}

// answers returns an error unless an answer is for the open question of its kind. An answer without an ID is for the
// open one.
func (s *State) answers(kind QuestionKind, id string) error {
	q, there := s.Open(kind)
	switch {
	case there && (id == "" || id == q.ID):
		return nil
	case there:
		return &StaleError{What: kind, ID: id, Active: q.ID}
	case s.Status == kind.Spec().Status && !s.askedFor(s.Status):
		return nil // only the end of the stream is known
	}
	return &StaleError{What: kind, ID: id}
}

// askedFor reports whether a question is open for which a run of this status waits.
func (s *State) askedFor(status Status) bool {
	return slices.ContainsFunc(s.Questions, func(q Question) bool { return q.Kind.Spec().Status == status })
}

// MarkRunDone ends a successful run. The open questions are cleared.
func MarkRunDone(s State, reason, at string) (State, error) { return settle(s, Done, reason, at) }

// MarkRunHalted ends a run by an operator or a policy. The open questions are cleared.
func MarkRunHalted(s State, reason, at string) (State, error) { return settle(s, Halted, reason, at) }

// MarkRunFailed ends a run with an error of a kind; an empty kind is taken from the last failed pass. An undecided
// hand-off is kept, except by a run across projects.
func MarkRunFailed(s State, reason, kind, at string) (State, error) {
	next, err := settle(s, Failed, reason, at)
	if err == nil && kind != "" {
		next.Markers.Failure.Type = kind
	}
	return next, err
}

// MarkRunInterrupted records that a run's process ended without recording an end. An undecided hand-off is kept.
func MarkRunInterrupted(s State, reason, at string) (State, error) {
	return settle(s, Interrupted, reason, at)
}

// settle closes a run if the table allows it.
func settle(s State, to Status, reason, at string) (State, error) {
	if err := s.mayBecome(to); err != nil {
		return s, err
	}
	return s.closed(to, reason, at), nil
}

// closed is the state of a run that ended. It has no open question. That of a gate is kept: its answer is journaled, so
// the next epoch asks again instead of taking the step again.
func (s State) closed(to Status, reason, at string) State {
	phase := s.place()
	s.Status, s.Reason, s.FinishedAt, s.InFlight, s.Set = to, reason, at, nil, ""
	if q, open := s.Asks(); open && q.Kind == QuestionGate && q.Trigger == TriggerCheckFailed && to.Settled() {
		s.Gate = &q
	}
	if to.Settled() || s.acrossProjects() && to == Failed {
		s.Questions = nil
	}
	switch to {
	case Halted:
		s.Markers.HaltReason, s.Markers.HaltedAt, s.Markers.Halt = reason, at, &Halt{Reason: reason, Phase: phase}
	case Failed:
		s.Markers.Failure = &RunFailure{Phase: phase, Error: reason}
		if s.Failure != nil {
			s.Markers.Failure.Type = string(s.Failure.Category)
		}
	case Interrupted:
		s.Markers.InterruptedAt = at
	}
	return s
}

// place is the phase of a halt or a failure.
func (s *State) place() string {
	if h, open := s.Open(QuestionHandoff); open && h.Phase != "" {
		return h.Phase
	}
	return s.Phase
}
