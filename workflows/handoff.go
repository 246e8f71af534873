package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// VerbDecide answers the open hand-off.
const VerbDecide = "decide"

// places are where the run goes on after a decision; nil: where it stands. redo is what is done again if it goes back.
type places struct {
	onward, again *run.Place
	redo          string
}

// ask does a step that asks: it rests the run until somebody has decided. The decision itself says where the run goes on.
func (e *engine) ask(ctx workflow.Context, at run.Place, s work.Step) error {
	judged, verdict := e.judged()
	if approves(verdict) && s.AskType != "" && s.AskType != run.HandoffFeedbackAlways {
		return e.skipAsk(ctx, at, s)
	}
	req := run.HandoffRequested{
		HandoffType: s.AskType, Trigger: triggerOf(verdict), Round: at.Round, Verdict: verdict, Digest: judged, LastOutput: judged,
		Patience: e.patience(ctx, s.Questions),
	}
	if s.AskType == "" {
		req.HandoffType = run.HandoffFeedbackAlways
	}
	if approves(verdict) {
		yes := true
		req.Approved = &yes
	}
	if s.AskType == run.HandoffBypass {
		req.Trigger = run.TriggerBypass
	}
	if at.Step == 0 { // there is nothing before it to be done again
		req.Actions = slices.DeleteFunc(run.Offered(run.QuestionHandoff, req.Trigger), func(a string) bool { return a == run.ActionRetryFeedback })
	}
	if err := e.request(ctx, s.Ask, req, e.askedAt(at)); err != nil {
		return err
	}
	if d := e.j.state.Decided; e.j.state.Status != run.Running || d == nil || d.Action == run.ActionRetryFeedback {
		return nil
	}
	return e.endOfRound(ctx, at)
}

// triggerOf says why somebody is asked, by the last verdict.
func triggerOf(verdict string) string {
	switch word := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(verdict)), "-", "_"); word {
	case run.TriggerApproved, run.TriggerIncomplete, run.TriggerScopeExpansion:
		return word
	}
	return run.TriggerRejected
}

// skipAsk goes on over a question that is only asked when the work was not approved. The journal says so.
func (e *engine) skipAsk(ctx workflow.Context, at run.Place, s work.Step) error {
	ev := run.StepSkipped{Step: s.Key, Why: "the last verdict is approved", Next: e.after(at)}
	if err := e.j.emit(ctx, run.KindStepSkipped, e.round.Stage, ev); err != nil {
		return err
	}
	return e.endOfRound(ctx, at)
}

// askedAt says where a decision about the step at a place leads: on behind it, or back to the step that it asks about.
func (e *engine) askedAt(at run.Place) places {
	again := at
	again.Step = max(0, at.Step-1)
	return places{onward: e.after(at), again: &again, redo: run.RedoStep}
}

// askAboutLoop rests the run because a loop has used up its rounds and its condition does not hold.
func (e *engine) askAboutLoop(ctx workflow.Context, at run.Place) error {
	judged, verdict := e.judged()
	no := false
	req := run.HandoffRequested{
		HandoffType: run.HandoffFeedbackOnReject, Trigger: run.TriggerRejected, Round: at.Round, Verdict: verdict, Approved: &no,
		LoopMaxRounds: e.round.Repeat.Max, Digest: judged, LastOutput: judged, Patience: e.patience(ctx, nil),
	}
	question := fmt.Sprintf("%s: %d rounds, and still not %s", e.round.Title, at.Round, e.round.Repeat.Until)
	return e.request(ctx, question, req, places{})
}

// request writes the hand-off down and waits for its decision. One that an earlier epoch left undecided gives way to it.
func (e *engine) request(ctx workflow.Context, question string, req run.HandoffRequested, lead places) error {
	e.asked = lead
	if err := e.rested(ctx); err != nil {
		return err
	}
	if err := e.leaveRecord(ctx); err != nil {
		return err
	}
	if e.j.state.Status != run.AwaitingPhaseHandoff {
		req.Phase = e.round.Stage
		req.HandoffID = fmt.Sprintf("%s:%d:%d:%.8s", req.Phase, req.Round, e.j.state.Seq+1, req.Digest)
		req.Question = question
		if req.Actions == nil {
			req.Actions = run.Offered(run.QuestionHandoff, req.Trigger)
		}
		if req.LastOutput != "" {
			req.Artifacts = append(req.Artifacts, run.Attached{Name: "last output", Digest: req.LastOutput})
		}
		if a := e.j.state.Artifact; a != nil {
			req.Artifacts = append(req.Artifacts, run.Attached{Name: "artifact", Digest: a.Digest})
		}
		if err := e.j.emit(ctx, run.KindHandoffRequested, e.round.Stage, req); err != nil {
			return err
		}
		e.asks(ctx, req.HandoffID)
	}
	return e.awaitAnswer(ctx)
}

// judged gives what a hand-off is about: the last reply of the phase, and the last verdict.
func (e *engine) judged() (digest, verdict string) {
	s := e.j.state
	for _, r := range s.Replies {
		if r.Phase == e.round.Stage {
			digest = r.Reply.Digest
		}
	}
	if digest == "" && s.Artifact != nil {
		digest = s.Artifact.Digest
	}
	return digest, s.Verdict
}

func approves(verdict string) bool { return strings.EqualFold(strings.TrimSpace(verdict), "approved") }

// decided says that somebody let the loop end as it is.
func (e *engine) decided(at run.Place) bool {
	d := e.aboutLoop(at)
	return d != nil && (d.Action == run.ActionContinue || d.Action == run.ActionContinueWithWaiver)
}

// retried says that somebody wants one round more.
func (e *engine) retried(at run.Place) bool {
	d := e.aboutLoop(at)
	return d != nil && d.Action == run.ActionRetryFeedback
}

// aboutLoop gives the last decision if it was about the end of the loop in this round; an ask step of the same round asks for something else.
func (e *engine) aboutLoop(at run.Place) *run.Decided {
	d := e.j.state.Decided
	if d == nil || d.Type != run.HandoffFeedbackOnReject || d.Phase != e.round.Stage || d.Round != at.Round {
		return nil
	}
	return d
}

// MayDecide says whether a decision can be taken in a state, in words for people.
func MayDecide(s run.State, m Message) error {
	_, err := mayDecide(s, m)
	return err
}

// mayDecide holds the preconditions of a decision, in this order; each has its own words. same: it is the last decision once more, which changes nothing.
func mayDecide(s run.State, m Message) (same bool, err error) {
	switch {
	case !known(m.Action):
		return false, refuse("%q is no action: say one of %s", m.Action, strings.Join(actionsOf(s), ", "))
	case NeedsWords(m.Action) && strings.TrimSpace(m.Feedback) == "":
		return false, refuse("%s needs feedback: the words that it is done with", m.Action)
	}
	q, open := s.Asks()
	if d := s.Decided; d != nil && (m.ID == d.ID || m.ID == "" && !open) {
		if d.Action == m.Action && d.Feedback == m.Feedback && d.Note == m.Note {
			return true, nil
		}
		return false, refuse("%s was decided already, with %s: the first decision stands", d.ID, d.Action)
	}
	switch {
	case !open:
		return false, conflict(s, run.Decide, "the run is %s: nothing waits for a decision", s.Status)
	case m.ID != "" && m.ID != q.ID:
		return false, refuse("%s is not what waits for a decision, that is %s: the answer was meant for another round or artifact", m.ID, q.ID)
	case !slices.Contains(q.Actions, m.Action):
		return false, refuse("%s is not offered here: say one of %s", m.Action, strings.Join(q.Actions, ", "))
	}
	return false, nil
}

// actionsOf are the actions that can be meant: those of the open question, or all of hand-offs.
func actionsOf(s run.State) []string {
	if q, open := s.Asks(); open && len(q.Actions) > 0 {
		return q.Actions
	}
	return []string{run.ActionContinue, run.ActionRetryFeedback, run.ActionContinueWithWaiver, run.ActionHalt}
}

func known(action string) bool {
	return slices.Contains([]string{
		run.ActionContinue, run.ActionRetryFeedback, run.ActionContinueWithWaiver, run.ActionHalt, run.ActionRetry, run.ActionApprove, run.ActionFix,
		run.ActionApply, run.ActionSkip,
	}, action)
}

// NeedsWords says that an action means nothing without feedback.
func NeedsWords(action string) bool {
	return slices.Contains([]string{run.ActionRetryFeedback, run.ActionContinueWithWaiver, run.ActionFix}, action)
}

// decide writes a decision down; the main loop goes on from there.
func (c *control) decide(ctx workflow.Context, m Message) (Ack, error) {
	same, err := mayDecide(c.e.j.state, m)
	if err != nil {
		return Ack{}, err
	}
	if same {
		return c.ack("that was decided already"), nil
	}
	if err := c.e.notReapplied(ctx); err != nil {
		return Ack{}, err
	}
	if q, open := c.e.j.state.Asks(); open && q.Kind != run.QuestionHandoff {
		if err := c.note(ctx, decidedKind(q.Kind), c.answerOf(ctx, q, m)); err != nil {
			return Ack{}, err
		}
		return c.ack(m.Action + " is decided"), nil
	}
	h := c.e.j.state.Handoff
	d := run.HandoffDecided{
		HandoffID: h.ID, Action: m.Action, Feedback: m.Feedback, Note: m.Note, DecidedBy: m.By, DecidedAt: c.e.j.now(ctx), Implicit: m.ID == "",
		DecisionID: fmt.Sprintf("%s#%d", h.ID, c.e.j.state.Seq+1),
	}
	switch m.Action {
	case run.ActionRetryFeedback:
		d.Next, d.Redo = c.e.asked.again, c.e.asked.redo
	case run.ActionContinue, run.ActionContinueWithWaiver:
		d.Next = c.e.asked.onward
	}
	if err := c.note(ctx, run.KindHandoffDecided, d); err != nil {
		return Ack{}, err
	}
	return c.ack(m.Action + " is decided"), nil
}

// decideAtOnce answers the hand-off that an earlier epoch left undecided: the answer is why this one was opened.
func (e *engine) decideAtOnce(ctx workflow.Context, m *Message) error {
	if m == nil {
		return nil
	}
	if err := e.findLead(ctx); err != nil {
		return err
	}
	if q, open := e.j.state.Asks(); open {
		e.heard = q.ID // it came with the epoch, so no reset has brought it back
	}
	_, err := e.control.decide(ctx, *m)
	return err
}

// findLead says where a decision of the question that an earlier epoch left undecided leads.
func (e *engine) findLead(ctx workflow.Context) error {
	at := e.j.state.Next
	if at.Stage >= len(e.in.Start.Stages) {
		var err error
		e.asked, err = e.lastPlace(ctx)
		return err
	}
	if err := e.read(ctx, at); err != nil {
		return err
	}
	switch q := e.j.state.Question; {
	case q != nil && q.Kind == run.QuestionGate:
		e.asked = places{onward: e.after(at)}
	case at.Step < len(e.round.Steps) && e.round.Steps[at.Step].Kind == "ask":
		e.asked = e.askedAt(at)
	}
	return nil
}
