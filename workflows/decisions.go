package workflows

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// triggerOf returns why an operator is asked, from the last verdict.
func triggerOf(verdict string) string {
	switch word := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(verdict)), "-", "_"); word {
	case run.TriggerApproved, run.TriggerIncomplete, run.TriggerScopeExpansion:
		return word
	case "":
		return run.TriggerAsked
	}
	return run.TriggerRejected
}

// CheckDecision reports why a decision is not possible in a state.
func CheckDecision(s run.State, m contract.Message) error {
	_, err := validateDecision(s, m)
	return err
}

// validateDecision checks the preconditions of a decision in this order. same: it repeats the last decision and
// changes nothing.
func validateDecision(s run.State, m contract.Message) (same bool, err error) {
	switch {
	case !run.KnownAction(m.Action):
		return false, refuse("%q is not an action: use one of %s", m.Action, strings.Join(allowedActions(s), ", "))
	case run.NeedsFeedback(m.Action) && strings.TrimSpace(m.Feedback) == "":
		return false, refuse("%s needs feedback", m.Action)
	}
	q, open := s.Asks()
	if d := s.Decided; d != nil && (m.ID == d.ID || m.ID == "" && !open) {
		if d.Action == m.Action && d.Feedback == feedbackOf(m) && d.Note == m.Note {
			return true, nil
		}
		return false, unmet("%s was already decided with %s: the first decision wins", d.ID, d.Action)
	}
	switch {
	case !open:
		return false, conflict(s, run.Decide, "the run is %s: no question is open", s.Status)
	case m.ID != "" && m.ID != q.ID:
		return false, refuse("the open question is %[2]s, not %[1]s; the decision was meant for another round, lane or "+
			"artifact", m.ID, q.ID)
	case q.Project != nil:
		return false, refuse("the question is one of project %[1]s: decide it there, run \"starter decide %[2]s/%[1]s\"",
			q.Project.Alias, s.RunID)
	case !slices.Contains(q.Actions, m.Action):
		return false, refuse("%s is not offered here: use one of %s", m.Action, strings.Join(q.Actions, ", "))
	}
	return false, nil
}

// feedbackOf returns the feedback of a decision; that of a fix without one are the findings.
func feedbackOf(m contract.Message) string {
	if m.Action == run.ActionFix {
		return cmp.Or(m.Feedback, run.FixFindings)
	}
	return m.Feedback
}

// allowedActions returns the actions of the open question, or all hand-off actions.
func allowedActions(s run.State) []string {
	if q, open := s.Asks(); open && len(q.Actions) > 0 {
		return q.Actions
	}
	return []string{run.ActionContinue, run.ActionRetryFeedback, run.ActionContinueWithWaiver, run.ActionHalt}
}

// askedAgain reports whether the step that asks an open question finds it without its wait: what a project asks, and what
// a replay needs a permission for.
func askedAgain(q run.Question) bool {
	return q.Project != nil || slices.Contains([]string{run.TriggerBlocked, run.TriggerEffect, run.TriggerAction,
		run.TriggerUnrecorded}, q.Trigger)
}

// standsStill reports whether a run writes nothing until something comes from outside.
func standsStill(s run.State) bool {
	return s.Status.Class() == run.OperatorPause
}

// maxReminders limits what an unanswered question adds to history.
const maxReminders = 100

// nextDue returns when the next reminder or the expiry is due after last; zero: never.
func nextDue(q run.Question, last time.Time) (due time.Time, expired bool) {
	if at, err := time.Parse(run.TimeFormat, q.ExpiresAt); err == nil && at.After(last) {
		due, expired = at, true
	}
	asked, err := time.Parse(run.TimeFormat, q.RequestedAt)
	if err != nil || q.RemindMS <= 0 || q.Reminded >= maxReminders {
		return due, expired
	}
	every := time.Duration(q.RemindMS) * time.Millisecond
	next := asked.Add((last.Sub(asked)/every + 1) * every)
	if due.IsZero() || next.Before(due) {
		return next, false
	}
	return due, expired
}

// unattendedAction returns the action for a question that an unattended run does not ask.
func unattendedAction(q run.Question) string {
	offer, _ := q.Kind.Spec().Offer(q.Trigger)
	if q.OnExpiry == "halt" || !slices.Contains(q.Actions, offer.Expiry) {
		return q.Halts()
	}
	return offer.Expiry
}

// expiryAction returns the action for a question that expires.
func expiryAction(q run.Question) string {
	offer, _ := q.Kind.Spec().Offer(q.Trigger)
	if q.OnExpiry == "continue" && slices.Contains(q.Actions, offer.Expiry) {
		return offer.Expiry
	}
	return q.Halts()
}
