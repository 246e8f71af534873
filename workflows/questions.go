package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// questions asks an operator, and waits for the answer.
type questions struct {
	*execution
	routes   routes                // of the open question
	pending  *contract.PendingWait // for an answer, that an earlier execution began
	reminded string                // time of the last reminder of a question beside which the run works
	applied  string                // id of the last decision about a lane that was acted on
}

func (qs *questions) load(s *contract.Snapshot) {
	qs.pending, qs.reminded, qs.applied = s.Pending, s.Reminded, s.Applied
}

func (qs *questions) save(s *contract.Snapshot) {
	s.Pending, s.Reminded, s.Applied = qs.pending, qs.reminded, qs.applied
}

// handOverWait leaves the wait for an answer to the next execution.
func (qs *questions) handOverWait(q run.Question, spoken time.Time) error {
	w := contract.PendingWait{ID: q.ID, At: qs.state().Next, Permit: qs.replay.asked()}
	if qs.pending != nil {
		w = *qs.pending
	}
	w.LastReminded = run.Time(spoken)
	qs.pending = &w
	return errContinueAsNew
}

// lastReminded returns when a question was asked or last reminded of by an earlier execution, or now.
func (qs *questions) lastReminded(ctx workflow.Context) time.Time {
	if w := qs.pending; w != nil {
		if t, err := time.Parse(run.TimeFormat, w.LastReminded); err == nil {
			return t
		}
	}
	return workflow.Now(ctx)
}

// restoreWait restores the routes of a question that an earlier execution asked.
func (qs *questions) restoreWait(ctx workflow.Context) error {
	if qs.pending == nil {
		return nil
	}
	return qs.restoreRoutes(ctx)
}

// resume continues the wait for a question that an earlier execution asked, and acts on the answer.
func (qs *questions) resume(ctx workflow.Context) error {
	if qs.pending == nil {
		return nil
	}
	if err := qs.awaitAnswer(ctx); err != nil {
		return err
	}
	w := *qs.pending
	qs.pending = nil
	d := qs.state().Decided
	if d == nil || d.ID != w.ID || !qs.active() {
		return nil
	}
	if w.Permit != "" {
		qs.replay.grant(w.Permit, d.Action)
		return nil
	}
	answer, _ := d.Kind.Spec().Answer(d.Action)
	if answer.Effect.Has(run.RepeatsSubject) || qs.state().Next == w.At || w.At.Stage >= len(qs.in.Start.Stages) {
		return nil
	}
	if err := qs.round.read(ctx, w.At); err != nil {
		return err
	}
	qs.round.endRound(ctx, w.At)
	return nil
}

// askHandoff asks about the current phase and waits for the decision.
func (qs *questions) askHandoff(ctx workflow.Context, question string, req run.QuestionRequested, lead routes) error {
	req.Kind, req.Phase, req.Question = run.QuestionHandoff, qs.round.Stage, question
	if req.LastOutput != "" {
		req.Artifacts = append(req.Artifacts, run.Attached{Name: "last output", Digest: req.LastOutput})
	}
	if a := qs.state().Artifact; a != nil {
		req.Artifacts = append(req.Artifacts, run.Attached{Name: "artifact", Digest: a.Digest})
	}
	return qs.ask(ctx, req, lead)
}

// decide journals a decision; the loop continues from there.
func (qs *questions) decide(ctx workflow.Context, m contract.Message) (contract.Ack, error) {
	same, err := validateDecision(qs.state(), m)
	if err != nil {
		return contract.Ack{}, err
	}
	if same {
		return qs.ack("already decided"), nil
	}
	q, _ := qs.state().Asks()
	if err := qs.record(ctx, q.Kind.Spec().Decided, qs.decisionEvent(ctx, q, m)); err != nil {
		return contract.Ack{}, err
	}
	return qs.ack("decided: " + m.Action), nil
}

// restoreRoutes determines where a decision leads for a question that an earlier epoch left undecided.
func (qs *questions) restoreRoutes(ctx workflow.Context) error {
	at := qs.state().Next
	if at.Stage >= len(qs.in.Start.Stages) {
		var err error
		qs.routes, err = qs.round.redoRoutes(ctx)
		return err
	}
	if err := qs.round.read(ctx, at); err != nil {
		return err
	}
	switch q, open := qs.state().Asks(); {
	case open && q.Kind == run.QuestionDelivery:
		var err error
		qs.routes, err = qs.round.redoRoutes(ctx)
		return err
	case open && q.Kind != run.QuestionHandoff:
		qs.routes = routes{forward: qs.round.nextPlace(at)}
	case at.Step < len(qs.round.Steps) && qs.round.Steps[at.Step].Kind == pipeline.KindAsk:
		var err error
		qs.routes, err = qs.round.askRoutes(ctx, at)
		return err
	case open:
		qs.routes = routes{}
	}
	return nil
}

// openLaneQuestion returns the open question about a lane of the stage.
func (qs *questions) openLaneQuestion() (run.Question, bool) {
	q, open := qs.state().Open(run.QuestionGate)
	return q, open && qs.state().Lanes != nil && q.Of != ""
}

// laneDecision returns the decision about a lane that has not been acted on.
func (qs *questions) laneDecision() (*run.Decided, bool) {
	d := qs.state().Decided
	return d, d != nil && d.Kind == run.QuestionGate && d.ID != qs.applied && qs.state().Lanes != nil &&
		d.Phase == qs.children.laneStage() && qs.active()
}

// acted notes that a decision about a lane was acted on.
func (qs *questions) acted(id string) { qs.applied = id }

// forgetAnswered keeps a new epoch from acting again on the last decision about a lane. One that was not acted on is asked
// for again.
func (qs *questions) forgetAnswered() {
	if d := qs.state().Decided; d != nil {
		qs.applied = d.ID
	}
}

// besideSince is when a question was asked or last reminded of.
func (qs *questions) besideSince(q run.Question) time.Time {
	at, err := time.Parse(run.TimeFormat, max(q.RequestedAt, qs.reminded))
	if err != nil {
		return time.Time{}
	}
	return at
}

// ask journals a question and waits for its answer. A question that is already open is not asked again;
// one that an earlier epoch left undecided is replaced.
func (qs *questions) ask(ctx workflow.Context, ask run.QuestionRequested, lead routes) error {
	qs.routes = lead
	if err := qs.awaitResumed(ctx); err != nil {
		return err
	}
	qs.leaveReplay(ctx)
	ask.Unattended = qs.unasked(ask, lead.forward)
	qs.open(ctx, ask, lead)
	if q, open := qs.state().Asks(); open && q.Unattended { // in one write: no reader sees a run that waits
		if err := qs.decideUnattended(ctx, q); err != nil {
			return err
		}
	}
	return qs.awaitAnswer(ctx)
}

// unasked reports whether the run is unattended, and decides a question without an operator: one that does not stand
// before an external action.
func (qs *questions) unasked(ask run.QuestionRequested, next *run.Place) bool {
	spec := ask.Kind.Spec()
	offer, _ := spec.Offer(ask.Trigger)
	if !qs.in.Start.Waits.Unattended || !spec.Unasked || offer.Expiry == "" {
		return false
	}
	if next == nil || next.Stage >= len(qs.in.Start.Stages) {
		return true
	}
	if next.Stage != qs.state().Next.Stage {
		return !qs.in.Start.Stages[next.Stage].Acts
	}
	var left []pipeline.PlanStep
	for _, s := range qs.round.Steps[min(next.Step, len(qs.round.Steps)):] {
		left = append(left, s.PlanStep)
	}
	acts, decides := pipeline.Acts(left)
	if after := next.Stage + 1; !decides && after < len(qs.in.Start.Stages) {
		acts = qs.in.Start.Stages[after].Acts
	}
	return !acts
}

// again asks a question of the last epoch, at the place of its step.
func (qs *questions) again(ctx workflow.Context, at run.Place, ask run.QuestionRequested) {
	qs.pending, qs.routes = &contract.PendingWait{ID: qs.request(ctx, ask), At: at}, routes{forward: qs.round.nextPlace(at)}

}

// spoken notes that a question beside which the run works was asked or reminded of now.
func (qs *questions) spoken(ctx workflow.Context) { qs.reminded = run.Time(workflow.Now(ctx)) }

// open journals a question, unless it is open already.
func (qs *questions) open(ctx workflow.Context, ask run.QuestionRequested, lead routes) {
	qs.routes = lead
	spec := ask.Kind.Spec()
	if _, open := qs.state().Open(ask.Kind); !open || qs.state().Status != spec.Status {
		qs.request(ctx, ask)
	}

}

// request journals a question and returns its id.
func (qs *questions) request(ctx workflow.Context, ask run.QuestionRequested) string {
	about := string(ask.Kind)
	if ask.Kind == run.QuestionHandoff {
		about = ask.Phase
	}
	ask.ID = fmt.Sprintf("%s:%d:%d:%.8s", about, max(ask.Round, 1), qs.state().Seq+1, ask.Digest)
	ask.Subject, qs.reminded = qs.state().Subject(), ""
	if ask.Actions == nil {
		ask.Actions = run.Offered(ask.Kind, ask.Trigger)
	}
	qs.journal.emit(ctx, ask.Kind.Spec().Requested, ask.Phase, ask)
	return ask.ID
}

// awaitResumed waits until a run that a full disk paused continues: until then it asks nothing and does not end.
func (qs *questions) awaitResumed(ctx workflow.Context) error {
	if qs.state().Status != run.Paused {
		return nil
	}
	return qs.resumed(ctx)
}

// deadlines converts the waits of a definition into points in time.
func (qs *questions) deadlines(ctx workflow.Context, q *pipeline.Questions) run.Deadlines {
	waits := qs.in.Start.Waits
	if q != nil {
		waits = run.Waits{RemindMS: q.Remind.Milliseconds(), ExpiresMS: q.Expires.Milliseconds(), OnExpiry: q.OnExpiry}
	}
	return waits.From(workflow.Now(ctx))
}

// awaitAnswer waits until the open question is decided. Reminders and expiry use durable timers, so days of
// waiting need no process.
func (qs *questions) awaitAnswer(ctx workflow.Context) error {
	if err := qs.journal.flush(ctx); err != nil {
		return err
	}
	qs.show(ctx)
	qs.children.tellParent(ctx)
	err := qs.awaitDecision(ctx)
	if err == nil && qs.parent() != "" {
		if err = qs.journal.flush(ctx); err == nil {
			qs.children.tellParent(ctx)
		}
	}
	if err != nil || qs.workspace() == nil || qs.state().Status != run.Running {
		return err
	}
	return qs.checkout.adoptEdits(ctx) // an operator may have edited files meanwhile
}

func (qs *questions) awaitDecision(ctx workflow.Context) error {
	spoken := qs.lastReminded(ctx)
	for qs.state().Status.Class() == run.OperatorPause {
		q, open := qs.state().Asks()
		if !open {
			return nil
		}
		at, expired := nextDue(q, spoken)
		due, err := qs.wait(ctx, wait{name: waitAnswer, until: at, summary: "until the reminder for " + q.ID})
		switch {
		case errors.Is(err, errContinueAsNew):
			return qs.handOverWait(q, spoken)
		case err != nil || !due:
			return err
		}
		spoken = workflow.Now(ctx) // after an outage, one reminder is enough
		if err := qs.remindOrExpire(ctx, q, expired); err != nil {
			return err
		}
	}
	return nil
}

func (qs *questions) answered() bool {
	return qs.state().Status.Class() != run.OperatorPause || qs.state().Status == run.Paused
}

// remindOrExpire journals a reminder, or decides the expired question.
func (qs *questions) remindOrExpire(ctx workflow.Context, q run.Question, expired bool) error {
	ev := run.QuestionReminded{ID: q.ID, Number: q.Reminded + 1, Expired: expired}
	qs.journal.emit(ctx, run.KindQuestionReminded, q.Phase, ev)
	if expired && q.OnExpiry != "remind" {
		m := contract.Message{ID: q.ID, Action: expiryAction(q), By: "expiry", Feedback: "no answer before " + q.ExpiresAt}
		if _, err := qs.decide(ctx, m); err != nil {
			return err
		}
	}
	return qs.journal.flush(ctx)
}

// decideUnattended decides a question that is not asked.
func (qs *questions) decideUnattended(ctx workflow.Context, q run.Question) error {
	m := contract.Message{ID: q.ID, Action: unattendedAction(q), By: run.Unattended}
	if run.NeedsFeedback(m.Action) {
		m.Feedback = "not asked: the run is unattended"
	}
	_, err := qs.decide(ctx, m)
	return err
}

// decisionEvent returns the event of a decision.
func (qs *questions) decisionEvent(ctx workflow.Context, q run.Question, m contract.Message) run.QuestionDecided {
	d := run.QuestionDecided{
		Kind: q.Kind, ID: q.ID, Action: m.Action, Feedback: qs.feedback(q, m), Note: m.Note, DecidedBy: m.By,
		DecidedAt: qs.journal.time(ctx), Implicit: m.ID == "" || m.Implicit,
		DecisionID: fmt.Sprintf("%s#%d", q.ID, qs.state().Seq+1),
	}
	d.Next, d.Redo = qs.route(q, m.Action)
	return d
}

// route returns where the run continues after an answer, and what it redoes from there; nil: at its current place.
func (qs *questions) route(q run.Question, action string) (next *run.Place, redo string) {
	answer, _ := q.Kind.Spec().Answer(action)
	switch {
	case q.Of != "" && qs.in.Start.Lane == nil, q.Trigger == run.TriggerBlocked: // lane or project decides what is next
		return nil, ""
	case answer.Effect.Has(run.ContinuesAfter):
		return qs.routes.forward, ""
	case answer.Effect.Has(run.RepeatsSubject):
		return qs.routes.back, qs.routes.redo
	case answer.Effect.Has(run.Repeats):
		return qs.routes.again, run.RedoStep
	}
	return nil, ""
}
