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

// places are where the run goes on after a decision; nil: where it stands.
type places struct{ onward, again *run.Place }

// ask does a step that asks: it rests the run until somebody has decided. The decision itself says where the run goes on.
func (e *engine) ask(ctx workflow.Context, at run.Place, s work.Step) error {
	judged, verdict := e.judged()
	req := run.HandoffRequested{
		HandoffType: run.HandoffFeedbackAlways, Trigger: run.TriggerRejected, Round: at.Round, Verdict: verdict, Digest: judged, LastOutput: judged,
	}
	if approves(verdict) {
		yes := true
		req.Trigger, req.Approved = run.TriggerApproved, &yes
	}
	if err := e.request(ctx, s.Ask, req, e.askedAt(at)); err != nil {
		return err
	}
	if d := e.j.state.Decided; e.j.state.Status != run.Running || d == nil || d.Action == run.ActionRetryFeedback {
		return nil
	}
	if e.lastInRound(at) && e.round.Kind == "each" {
		return e.endSet(ctx)
	}
	return nil
}

// askedAt says where a decision about the step at a place leads: on behind it, or back to the step that it asks about.
func (e *engine) askedAt(at run.Place) places {
	again := at
	again.Step = max(0, at.Step-1)
	return places{onward: e.after(at), again: &again}
}

// askAboutLoop rests the run because a loop has used up its rounds and its condition does not hold.
func (e *engine) askAboutLoop(ctx workflow.Context, at run.Place) error {
	judged, verdict := e.judged()
	no := false
	req := run.HandoffRequested{
		HandoffType: run.HandoffFeedbackOnReject, Trigger: run.TriggerRejected, Round: at.Round, Verdict: verdict, Approved: &no,
		LoopMaxRounds: e.round.Repeat.Max, Digest: judged, LastOutput: judged,
	}
	question := fmt.Sprintf("%s: %d rounds, and still not %s", e.round.Title, at.Round, e.round.Repeat.Until)
	return e.request(ctx, question, req, places{})
}

// request writes the hand-off down and waits for its decision. One that an earlier epoch left undecided gives way to it.
func (e *engine) request(ctx workflow.Context, question string, req run.HandoffRequested, lead places) error {
	e.asked = lead
	if e.j.state.Status != run.AwaitingPhaseHandoff {
		req.Phase = e.round.Stage
		req.HandoffID = fmt.Sprintf("%s:%d:%d:%.8s", req.Phase, req.Round, e.j.state.Seq+1, req.Digest)
		req.Question = question
		req.Actions = run.Offered(run.QuestionHandoff, req.Trigger)
		if req.LastOutput != "" {
			req.Artifacts = append(req.Artifacts, run.Attached{Name: "last output", Digest: req.LastOutput})
		}
		if a := e.j.state.Artifact; a != nil {
			req.Artifacts = append(req.Artifacts, run.Attached{Name: "artifact", Digest: a.Digest})
		}
		if err := e.j.emit(ctx, run.KindHandoffRequested, e.round.Stage, req); err != nil {
			return err
		}
	}
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.show(ctx)
	return workflow.Await(ctx, func() bool { return e.j.state.Status != run.AwaitingPhaseHandoff })
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
	verdict, _ = s.Value("verdict")
	return digest, verdict
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
		return false, refuse("%q is no action: say one of continue, retry_feedback, continue_with_waiver, halt", m.Action)
	case needsWords(m.Action) && strings.TrimSpace(m.Feedback) == "":
		return false, refuse("%s needs feedback: the words that it is done with", m.Action)
	}
	if d := s.Decided; d != nil && (m.ID == d.ID || m.ID == "" && s.Handoff == nil) {
		if d.Action == m.Action && d.Feedback == m.Feedback && d.Note == m.Note {
			return true, nil
		}
		return false, refuse("%s was decided already, with %s: the first decision stands", d.ID, d.Action)
	}
	switch h := s.Handoff; {
	case h == nil:
		return false, refuse("the run is %s: nothing waits for a decision", s.Status)
	case m.ID != "" && m.ID != h.ID:
		return false, refuse("%s is not what waits for a decision, that is %s: the answer was meant for another round or artifact", m.ID, h.ID)
	case !slices.Contains(h.Actions, m.Action):
		return false, refuse("%s is not offered here: say one of %s", m.Action, strings.Join(h.Actions, ", "))
	}
	return false, nil
}

func known(action string) bool {
	return slices.Contains([]string{run.ActionContinue, run.ActionRetryFeedback, run.ActionContinueWithWaiver, run.ActionHalt}, action)
}

func needsWords(action string) bool {
	return action == run.ActionRetryFeedback || action == run.ActionContinueWithWaiver
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
	h := c.e.j.state.Handoff
	d := run.HandoffDecided{
		HandoffID: h.ID, Action: m.Action, Feedback: m.Feedback, Note: m.Note, DecidedBy: m.By, DecidedAt: c.e.j.now(ctx), Implicit: m.ID == "",
		DecisionID: fmt.Sprintf("%s#%d", h.ID, c.e.j.state.Seq+1),
	}
	switch m.Action {
	case run.ActionRetryFeedback:
		d.Next = c.e.asked.again
	case run.ActionContinue, run.ActionContinueWithWaiver:
		d.Next = c.e.asked.onward
	}
	c.note(ctx, run.KindHandoffDecided, d)
	return c.ack(m.Action + " is decided"), nil
}

// decideAtOnce answers the hand-off that an earlier epoch left undecided: the answer is why this one was opened.
func (e *engine) decideAtOnce(ctx workflow.Context, m *Message) error {
	if m == nil {
		return nil
	}
	at := e.j.state.Next
	if at.Stage < len(e.in.Start.Stages) {
		if err := e.read(ctx, at); err != nil {
			return err
		}
		if at.Step < len(e.round.Steps) && e.round.Steps[at.Step].Kind == "ask" {
			e.asked = e.askedAt(at)
		}
	}
	_, err := e.control.decide(ctx, *m)
	return err
}
