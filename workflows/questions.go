package workflows

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// needsDecision reports whether a step with a gate failed its command or a check of its reply, or returned no
// verdict. (A group without a verdict continues and does not approve the work.)
func (p *pass) needsDecision() bool {
	if p.member == "" && p.result != nil && p.result.Unjudged {
		return true
	}
	if p.step.IfFailing != "ask" || p.result == nil {
		return false
	}
	return p.result.Outcome != run.CategoryOK || p.result.Value == "failed" ||
		p.step.Kind == pipeline.KindRole && !p.result.Validation.Passed
}

// askGate pauses the run after a failed command or check until an operator decides. The run stays at the step:
// only a waiver leads past it.
func (e *engine) askGate(ctx workflow.Context, at run.Place, p *pass) error {
	ask := run.QuestionRequested{
		Kind: run.QuestionGate, Question: gateQuestion(p), Phase: e.round.Stage, Round: at.Round,
		Trigger: run.TriggerCheckFailed, Deadlines: e.deadlines(ctx, p.step.Questions),
	}
	if r := p.result.Reply; r != nil {
		ask.Digest = r.Digest
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: r.Digest})
	}
	if err := e.askQuestion(ctx, ask, routes{forward: e.nextPlace(at)}); err != nil {
		return err
	}
	if e.j.state.Status == run.Running && e.j.state.Next != at {
		return e.endRound(ctx, at)
	}
	return nil
}

func gateQuestion(p *pass) string {
	if p.result.Unjudged {
		return unjudgedQuestion(p)
	}
	if p.step.Fresh != "" {
		return fmt.Sprintf("%s passes only in the workspace; in a fresh folder it failed with exit code %d. Continue?",
			oneLine(p.step.Run), p.result.ExitCode)
	}
	if p.step.Kind == pipeline.KindRun {
		return fmt.Sprintf("%s failed with exit code %d. Continue?", oneLine(p.step.Run), p.result.ExitCode)
	}
	failed := ""
	for _, c := range p.result.Validation.Checks {
		if !c.Passed {
			failed += " " + c.Name
		}
	}
	return fmt.Sprintf("The reply of %s failed its checks:%s. Continue?", p.role.Name, failed)
}

func oneLine(s string) string {
	line := []rune(s)
	if i := slices.Index(line, '\n'); i >= 0 {
		line = append(line[:i:i], '…')
	}
	return string(line)
}

// askQuestion journals a question and waits for its answer. A question that is already open is not asked again;
// one that an earlier epoch left undecided is replaced.
func (e *engine) askQuestion(ctx workflow.Context, ask run.QuestionRequested, lead routes) error {
	e.routes = lead
	if err := e.awaitResumed(ctx); err != nil {
		return err
	}
	if err := e.leaveReplay(ctx); err != nil {
		return err
	}
	if err := e.openQuestion(ctx, ask); err != nil {
		return err
	}
	return e.awaitAnswer(ctx)
}

// openQuestion journals a question, unless it is open already.
func (e *engine) openQuestion(ctx workflow.Context, ask run.QuestionRequested) error {
	spec := ask.Kind.Spec()
	if _, open := e.j.state.Open(ask.Kind); !open || e.j.state.Status != spec.Status {
		if _, err := e.requestAnswer(ctx, ask); err != nil {
			return err
		}
	}
	return nil
}

// requestAnswer journals a question and returns its id.
func (e *engine) requestAnswer(ctx workflow.Context, ask run.QuestionRequested) (id string, err error) {
	about := string(ask.Kind)
	if ask.Kind == run.QuestionHandoff {
		about = ask.Phase
	}
	ask.ID = fmt.Sprintf("%s:%d:%d:%.8s", about, max(ask.Round, 1), e.j.state.Seq+1, ask.Digest)
	ask.Subject = e.j.state.Subject()
	if ask.Actions == nil {
		ask.Actions = run.Offered(ask.Kind, ask.Trigger)
	}
	if err := e.j.emit(ctx, ask.Kind.Spec().Requested, ask.Phase, ask); err != nil {
		return "", err
	}
	return ask.ID, nil
}

// askGateAgain asks the question of a gate again, at which the run was halted or cancelled before this epoch, or which
// is undecided. The answer that it is about is journaled already: without this, the step would be taken again with the
// same answer. A run that the decision of this epoch has halted asks nothing.
func (e *engine) askGateAgain(ctx workflow.Context) error {
	q, at := e.j.state.Gate, e.j.state.Next
	if open, undecided := e.j.state.Open(run.QuestionGate); undecided && open.Trigger == run.TriggerCheckFailed {
		q = &open
	}
	if q == nil || q.Of != "" || !e.active() || at.Stage >= len(e.in.Start.Stages) {
		return nil
	}
	if err := e.readRound(ctx, at); err != nil {
		return err
	}
	step, there := e.round.At(at.Step)
	if !there { // the definition was amended
		return nil
	}
	id, err := e.requestAnswer(ctx, run.QuestionRequested{
		Kind: q.Kind, Question: q.Text, Phase: q.Phase, Round: q.Round, Trigger: q.Trigger, Digest: q.Digest,
		Artifacts: q.Artifacts, Actions: q.Actions, Deadlines: e.deadlines(ctx, step.Questions),
	})
	e.pending = &contract.PendingWait{ID: id, At: at}
	e.routes = routes{forward: e.nextPlace(at)}
	return err
}

// awaitResumed waits until a run that a full disk paused continues: until then it asks nothing and does not end.
func (e *engine) awaitResumed(ctx workflow.Context) error {
	if e.j.state.Status != run.Paused {
		return nil
	}
	return e.pauseIfRequested(ctx, false)
}

// deadlines converts the waits of a definition into points in time.
func (e *engine) deadlines(ctx workflow.Context, q *pipeline.Questions) run.Deadlines {
	waits := e.in.Start.Waits
	if q != nil {
		waits = run.Waits{RemindMS: q.Remind.Milliseconds(), ExpiresMS: q.Expires.Milliseconds(), OnExpiry: q.OnExpiry}
	}
	return waits.From(workflow.Now(ctx))
}

// awaitAnswer waits until the open question is decided. Reminders and expiry use durable timers, so days of
// waiting need no process.
func (e *engine) awaitAnswer(ctx workflow.Context) error {
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.showDetails(ctx)
	e.tellParent(ctx)
	err := e.awaitDecision(ctx)
	if err == nil && e.parent() != "" {
		if err = e.j.flush(ctx); err == nil {
			e.tellParent(ctx)
		}
	}
	if err != nil || e.workspace() == nil || e.j.state.Status != run.Running {
		return err
	}
	return e.adoptEdits(ctx) // an operator may have edited files meanwhile
}

func (e *engine) awaitDecision(ctx workflow.Context) error {
	spoken := e.lastReminded(ctx)
	for e.j.state.Status.Class() == run.OperatorPause {
		q, open := e.j.state.Asks()
		if !open {
			return nil
		}
		at, expired := nextDue(q, spoken)
		due, err := e.wait(ctx, wait{name: waitAnswer, until: at, summary: "until the reminder for " + q.ID})
		switch {
		case errors.Is(err, errContinueAsNew):
			return e.handOverWait(q, spoken)
		case err != nil || !due:
			return err
		}
		spoken = workflow.Now(ctx) // after an outage, one reminder is enough
		if err := e.remindOrExpire(ctx, q, expired); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) answered() bool {
	return e.j.state.Status.Class() != run.OperatorPause || e.j.state.Status == run.Paused
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

// remindOrExpire journals a reminder, or decides the expired question.
func (e *engine) remindOrExpire(ctx workflow.Context, q run.Question, expired bool) error {
	ev := run.QuestionReminded{ID: q.ID, Number: q.Reminded + 1, Expired: expired}
	if err := e.j.emit(ctx, run.KindQuestionReminded, q.Phase, ev); err != nil {
		return err
	}
	if expired && q.OnExpiry != "remind" {
		m := contract.Message{ID: q.ID, Action: expiryAction(q), By: "expiry", Feedback: "no answer before " + q.ExpiresAt}
		if _, err := e.control.decide(ctx, m); err != nil {
			return err
		}
	}
	return e.j.flush(ctx)
}

// expiryAction returns the action for a question that expires.
func expiryAction(q run.Question) string {
	offer, _ := q.Kind.Spec().Offer(q.Trigger)
	if q.OnExpiry == "continue" && slices.Contains(q.Actions, offer.Expiry) {
		return offer.Expiry
	}
	return q.Halts()
}

// decisionEvent returns the event of a decision.
func (c *control) decisionEvent(ctx workflow.Context, q run.Question, m contract.Message) run.QuestionDecided {
	d := run.QuestionDecided{
		Kind: q.Kind, ID: q.ID, Action: m.Action, Feedback: feedbackOf(m), Note: m.Note, DecidedBy: m.By,
		DecidedAt: c.e.j.now(ctx), Implicit: m.ID == "" || m.Implicit,
		DecisionID: fmt.Sprintf("%s#%d", q.ID, c.e.j.state.Seq+1),
	}
	d.Next, d.Redo = c.e.route(q, m.Action)
	return d
}

// route returns where the run continues after an answer, and what it redoes from there; nil: at its current place.
func (e *engine) route(q run.Question, action string) (next *run.Place, redo string) {
	answer, _ := q.Kind.Spec().Answer(action)
	switch {
	case q.Of != "" && e.in.Start.Lane == nil, q.Trigger == run.TriggerBlocked: // lane or project decides what is next
		return nil, ""
	case answer.Effect.Has(run.ContinuesAfter):
		return e.routes.forward, ""
	case answer.Effect.Has(run.RepeatsSubject):
		return e.routes.back, e.routes.redo
	case answer.Effect.Has(run.Repeats):
		return e.routes.again, run.RedoStep
	}
	return nil, ""
}
