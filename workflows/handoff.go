package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// routes are where the run continues after a decision; nil: where it is. redo is what is redone on the way back.
type routes struct {
	forward, back *run.Place
	again         *run.Place // where it is done again; nil: where it is
	redo          string
}

// ask runs a step that asks: it pauses the run until an operator decides. The decision determines where the run
// continues.
func (e *engine) ask(ctx workflow.Context, at run.Place, s contract.Step) error {
	judged, verdict := e.reviewSubject()
	if approves(e.j.state.Verdict) && s.AskType != "" && s.AskType != run.HandoffFeedbackAlways {
		return e.skipAsk(ctx, at, s)
	}
	req := run.QuestionRequested{
		Type: s.AskType, Trigger: triggerOf(verdict), Round: at.Round, Verdict: verdict, Digest: judged,
		LastOutput: judged,
		Deadlines:  e.deadlines(ctx, s.Questions),
	}
	if s.AskType == "" {
		req.Type = run.HandoffFeedbackAlways
	}
	if approves(verdict) {
		yes := true
		req.Approved = &yes
	}
	if s.AskType == run.HandoffBypass && verdict != "" {
		req.Trigger = run.TriggerBypass
	}
	lead, err := e.askRoutes(ctx, at)
	if err != nil {
		return err
	}
	if lead.back == nil || s.AskType == run.HandoffBypass { // there is no step to redo, or none is to be
		req.Actions = slices.DeleteFunc(run.Offered(run.QuestionHandoff, req.Trigger),
			func(a string) bool { return a == run.ActionRetryFeedback })
	}
	if err := e.askHandoff(ctx, s.Ask, req, lead); err != nil {
		return err
	}
	if d := e.j.state.Decided; e.j.state.Status != run.Running || d == nil || d.Action == run.ActionRetryFeedback {
		return nil
	}
	return e.endRound(ctx, at)
}

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

// skipAsk skips and journals a question that is only asked when the work was not approved.
func (e *engine) skipAsk(ctx workflow.Context, at run.Place, s contract.Step) error {
	ev := run.StepSkipped{Step: s.Key, Why: "the last verdict approves the work", Next: e.nextPlace(at)}
	if err := e.j.emit(ctx, run.KindStepSkipped, e.round.Stage, ev); err != nil {
		return err
	}
	return e.endRound(ctx, at)
}

// askAboutLoop pauses the run because a loop used up its rounds and its condition is not met.
func (e *engine) askAboutLoop(ctx workflow.Context, at run.Place) error {
	judged, verdict := e.reviewSubject()
	no := false
	req := run.QuestionRequested{
		Type: run.HandoffFeedbackOnReject, Trigger: run.TriggerRejected, Round: at.Round, Verdict: verdict,
		Approved:      &no,
		LoopMaxRounds: e.round.Repeat.Max, Digest: judged, LastOutput: judged, Deadlines: e.deadlines(ctx, nil),
	}
	rounds := at.Round
	if c := e.j.state.Changed; rounds > e.round.Repeat.Max && c != nil && c.Round < rounds {
		rounds-- // this one only judged
	}
	question := fmt.Sprintf("%s: %s is not met after %s", e.round.Title, e.round.Repeat.Until,
		run.Plural(rounds, "round"))
	var failed []string
	failed, req.Artifacts = e.failedCommands(e.round.Repeat.Until)
	if len(failed) > 0 {
		question += ": " + strings.Join(failed, ", ")
	}
	return e.askHandoff(ctx, question, req, e.loopRoutes(at))
}

// failedCommands describes the commands of this round that a condition names and that failed, and returns their output.
func (e *engine) failedCommands(condition string) (failed []string, outputs []run.Attached) {
	until, err := pipeline.ParseUntil(condition)
	if err != nil {
		return nil, nil // validated when the definition was read
	}
	names, values := until.Names(), e.values()
	for _, s := range e.round.Steps {
		if s.Kind != pipeline.KindRun || values[s.As] != "failed" || !slices.Contains(names, s.As) {
			continue
		}
		text, output := oneLine(s.Run)+" failed", e.j.state.ReplyOf(s.Key)
		if last, _ := e.j.state.Command(s.Key); last.Output != nil {
			text, output = text+" in a fresh folder", last.Output
		}
		failed = append(failed, text)
		if output != nil {
			outputs = append(outputs, run.Attached{Name: "output of " + s.As, Digest: output.Digest})
		}
	}
	return failed, outputs
}

// askHandoff asks about the current phase and waits for the decision.
func (e *engine) askHandoff(ctx workflow.Context, question string, req run.QuestionRequested, lead routes) error {
	req.Kind, req.Phase, req.Question = run.QuestionHandoff, e.round.Stage, question
	if req.LastOutput != "" {
		req.Artifacts = append(req.Artifacts, run.Attached{Name: "last output", Digest: req.LastOutput})
	}
	if a := e.j.state.Artifact; a != nil {
		req.Artifacts = append(req.Artifacts, run.Attached{Name: "artifact", Digest: a.Digest})
	}
	return e.askQuestion(ctx, req, lead)
}

// reviewSubject returns what a hand-off is about: the last reply of the phase, and the verdict on it, if there is
// one.
func (e *engine) reviewSubject() (digest, verdict string) {
	s := e.j.state
	for _, r := range s.Replies {
		if r.Phase == e.round.Stage {
			digest = r.Reply.Digest
		}
	}
	if digest == "" && s.Artifact != nil {
		digest = s.Artifact.Digest
	}
	if j := s.CurrentVerdict(); j != nil {
		verdict = j.Word
	}
	return digest, verdict
}

func approves(verdict string) bool { return strings.EqualFold(strings.TrimSpace(verdict), "approved") }

// loopAccepted reports whether an operator accepted the loop as it is.
func (e *engine) loopAccepted(at run.Place) bool {
	d := e.loopDecision(at)
	return d != nil && (d.Action == run.ActionContinue || d.Action == run.ActionContinueWithWaiver)
}

// lastAnswerAccepts reports whether an operator accepted the work of the last round at an ask step, so that the end of
// the loop would ask about the same thing again.
func (e *engine) lastAnswerAccepts(at run.Place) bool {
	d := e.j.state.Decided
	if d == nil || d.Kind != run.QuestionHandoff || d.Phase != e.round.Stage || d.Round != at.Round ||
		d.Action != run.ActionContinue && d.Action != run.ActionContinueWithWaiver {
		return false
	}
	judged, _ := e.reviewSubject()
	return judged == d.Digest
}

// loopRetried reports whether an operator asked for one more round after this one.
func (e *engine) loopRetried(at run.Place) bool {
	d := e.loopDecision(at)
	return d != nil && d.Action == run.ActionRetryFeedback && d.Back == nil
}

// loopDecision returns the last decision if it was about the end of the loop in this round and not about an ask
// step.
func (e *engine) loopDecision(at run.Place) *run.Decided {
	d := e.j.state.Decided
	if d == nil || d.Type != run.HandoffFeedbackOnReject || d.Phase != e.round.Stage || d.Round != at.Round {
		return nil
	}
	return d
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

// decide journals a decision; the main loop continues from there.
func (c *control) decide(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	same, err := validateDecision(c.e.j.state, m)
	if err != nil {
		return contract.Ack{}, err
	}
	if same {
		return c.ack("already decided"), nil
	}
	q, _ := c.e.j.state.Asks()
	if err := c.record(ctx, q.Kind.Spec().Decided, c.decisionEvent(ctx, q, m)); err != nil {
		return contract.Ack{}, err
	}
	return c.ack("decided: " + m.Action), nil
}

// applyReopenDecision journals the decision that this epoch was opened with.
func (e *engine) applyReopenDecision(ctx workflow.Context, m *contract.Message) error {
	if m == nil {
		return nil
	}
	if err := e.restoreRoutes(ctx); err != nil {
		return err
	}
	_, err := e.control.decide(ctx, *m)
	return err
}

// restoreRoutes determines where a decision leads for a question that an earlier epoch left undecided.
func (e *engine) restoreRoutes(ctx workflow.Context) error {
	at := e.j.state.Next
	if at.Stage >= len(e.in.Start.Stages) {
		var err error
		e.routes, err = e.redoRoutes(ctx)
		return err
	}
	if err := e.readRound(ctx, at); err != nil {
		return err
	}
	switch q, open := e.j.state.Asks(); {
	case open && q.Kind == run.QuestionDelivery:
		var err error
		e.routes, err = e.redoRoutes(ctx)
		return err
	case open && q.Kind != run.QuestionHandoff:
		e.routes = routes{forward: e.nextPlace(at)}
	case at.Step < len(e.round.Steps) && e.round.Steps[at.Step].Kind == pipeline.KindAsk:
		var err error
		e.routes, err = e.askRoutes(ctx, at)
		return err
	case open:
		e.routes = e.loopRoutes(at)
	}
	return nil
}
