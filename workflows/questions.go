package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// mustAsk says that a step is a gate, and its command or a check of its reply has failed, or that its verdict is missing. (A group that lacks one
// continues without it, and does not approve the work.)
func (p *pass) mustAsk() bool {
	if p.member == "" && p.result != nil && p.result.Unjudged {
		return true
	}
	if p.step.IfFailing != "ask" || p.result == nil {
		return false
	}
	return p.result.Outcome != "ok" || p.result.Value == "failed" || p.step.Kind == "role" && !p.result.Validation.Passed
}

// gate rests the run because a command or a check has failed, until somebody has decided. The run stays at the step: only a waiver leads past it.
func (e *engine) gate(ctx workflow.Context, at run.Place, p *pass) error {
	ask := run.Asked{
		Question: gateQuestion(p), Phase: e.round.Stage, Round: at.Round, Trigger: run.TriggerCheckFailed, Patience: e.patience(ctx, p.step.Questions),
	}
	if r := p.result.Reply; r != nil {
		ask.Digest = r.Digest
		ask.Artifacts = append(ask.Artifacts, run.Attached{Name: "output", Digest: r.Digest})
	}
	if err := e.askFor(ctx, run.QuestionGate, ask, places{onward: e.after(at)}); err != nil {
		return err
	}
	if e.j.state.Status == run.Running && e.j.state.Next != at {
		return e.endOfRound(ctx, at)
	}
	return nil
}

func gateQuestion(p *pass) string {
	if p.result.Unjudged {
		return unjudgedQuestion(p)
	}
	if p.step.Kind == "run" {
		return fmt.Sprintf("%s failed with exit code %d. Go on?", oneLine(p.step.Run), p.result.ExitCode)
	}
	failed := ""
	for _, c := range p.result.Validation.Checks {
		if !c.Passed {
			failed += " " + c.Name
		}
	}
	return fmt.Sprintf("The reply of %s failed its checks:%s. Go on?", p.role.Name, failed)
}

func oneLine(s string) string {
	line := []rune(s)
	if i := slices.Index(line, '\n'); i >= 0 {
		line = append(line[:i:i], '…')
	}
	return string(line)
}

// askFor writes a gate, a delivery or a review down and waits for its answer. One that an earlier epoch left undecided is not asked again.
func (e *engine) askFor(ctx workflow.Context, kind run.QuestionKind, ask run.Asked, lead places) error {
	e.asked = lead
	if err := e.rested(ctx); err != nil {
		return err
	}
	if err := e.leaveRecord(ctx); err != nil {
		return err
	}
	if q := e.j.state.Question; q == nil || q.Kind != kind {
		ask.ID = fmt.Sprintf("%s:%d:%d:%.8s", kind, max(ask.Round, 1), e.j.state.Seq+1, ask.Digest)
		ask.Actions = run.Offered(kind, ask.Trigger)
		if err := e.j.emit(ctx, requested(kind), ask.Phase, ask); err != nil {
			return err
		}
		e.asks(ctx, ask.ID)
	}
	return e.awaitAnswer(ctx)
}

// rested waits until a run that a full disk has paused goes on: nothing else may be asked of it before, and it may not end.
func (e *engine) rested(ctx workflow.Context) error {
	if e.j.state.Status != run.Paused {
		return nil
	}
	return e.rest(ctx, false)
}

func requested(kind run.QuestionKind) run.Kind {
	switch kind {
	case run.QuestionReview:
		return run.KindReviewRequested
	case run.QuestionDelivery:
		return run.KindDeliveryRequested
	}
	return run.KindGateRequested
}

func decidedKind(kind run.QuestionKind) run.Kind {
	switch kind {
	case run.QuestionReview:
		return run.KindReviewDecided
	case run.QuestionDelivery:
		return run.KindDeliveryDecided
	}
	return run.KindGateDecided
}

// patience turns the waits of a definition into moments.
func (e *engine) patience(ctx workflow.Context, q *pipeline.Questions) run.Patience {
	waits := e.in.Start.Waits
	if q != nil {
		waits = run.Waits{RemindMS: q.Remind.Milliseconds(), ExpiresMS: q.Expires.Milliseconds(), OnExpiry: q.OnExpiry}
	}
	return waits.From(workflow.Now(ctx))
}

// awaitAnswer waits until the open question is decided. It reminds, and lets the question expire, as the definition says: durable timers, so that
// days of waiting need nobody's process.
func (e *engine) awaitAnswer(ctx workflow.Context) error {
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	e.show(ctx)
	if err := e.awaitDecision(ctx); err != nil || e.tree() == nil || e.j.state.Status != run.Running {
		return err
	}
	return e.inspect(ctx) // a person may have mended things while the run waited
}

func (e *engine) awaitDecision(ctx workflow.Context) error {
	spoken := e.lastSpoken(ctx)
	for e.j.state.Status.Class() == run.OperatorPause {
		q, open := e.j.state.Asks()
		if !open {
			return nil
		}
		enough := func() bool { return e.answered() || e.crowded(ctx) }
		due, expired := nextDue(q, spoken)
		if due.IsZero() {
			if err := workflow.Await(ctx, enough); err != nil || e.answered() {
				return err
			}
			return e.handOver(q, spoken)
		}
		opts := workflow.AwaitOptions{Timeout: due.Sub(workflow.Now(ctx)), TimerOptions: workflow.TimerOptions{Summary: "until somebody is reminded of " + q.ID}}
		ok, err := workflow.AwaitWithOptions(ctx, opts, enough)
		switch {
		case err != nil || e.answered():
			return err
		case ok:
			return e.handOver(q, spoken)
		}
		spoken = workflow.Now(ctx) // after a time without a worker, one reminder is enough
		if err := e.overdue(ctx, q, expired); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) answered() bool {
	return e.j.state.Status.Class() != run.OperatorPause || e.j.state.Status == run.Paused
}

// mostReminders bounds what a question adds to history, however long nobody answers.
const mostReminders = 100

// nextDue is when a question is to be spoken of again, after what was said last; zero: never.
func nextDue(q run.Question, last time.Time) (due time.Time, expired bool) {
	if at, err := time.Parse(run.TimeFormat, q.ExpiresAt); err == nil && at.After(last) {
		due, expired = at, true
	}
	asked, err := time.Parse(run.TimeFormat, q.RequestedAt)
	if err != nil || q.RemindMS <= 0 || q.Reminded >= mostReminders {
		return due, expired
	}
	every := time.Duration(q.RemindMS) * time.Millisecond
	next := asked.Add((last.Sub(asked)/every + 1) * every)
	if due.IsZero() || next.Before(due) {
		return next, false
	}
	return due, expired
}

// overdue reminds of a question, or settles it because nobody has answered in time.
func (e *engine) overdue(ctx workflow.Context, q run.Question, expired bool) error {
	ev := run.QuestionReminded{ID: q.ID, Number: q.Reminded + 1, Expired: expired}
	if err := e.j.emit(ctx, run.KindQuestionReminded, q.Phase, ev); err != nil {
		return err
	}
	if expired && q.OnExpiry != "remind" {
		m := Message{ID: q.ID, Action: onExpiry(q), By: "expiry", Feedback: "nobody answered until " + q.ExpiresAt}
		if _, err := e.control.decide(ctx, m); err != nil {
			return err
		}
	}
	return e.j.flush(ctx)
}

// onExpiry is the action that a question ends with when nobody answers.
func onExpiry(q run.Question) string {
	if q.OnExpiry != "continue" || q.Trigger == run.TriggerEffect { // silence is no permission for what a person is to permit
		return run.ActionHalt
	}
	for _, action := range []string{run.ActionContinue, run.ActionContinueWithWaiver, run.ActionApprove, run.ActionSkip} {
		if slices.Contains(q.Actions, action) && !(q.Kind == run.QuestionDelivery && action == run.ActionApprove) {
			return action
		}
	}
	return run.ActionHalt
}

// answerOf makes the event of a decision about a gate, a delivery or a review.
func (c *control) answerOf(ctx workflow.Context, q run.Question, m Message) run.Answered {
	a := run.Answered{
		ID: q.ID, Action: m.Action, Feedback: m.Feedback, Note: m.Note, DecidedBy: m.By, DecidedAt: c.e.j.now(ctx), Implicit: m.ID == "",
		DecisionID: fmt.Sprintf("%s#%d", q.ID, c.e.j.state.Seq+1),
	}
	switch m.Action {
	case run.ActionRetry:
		if q.Kind == run.QuestionGate {
			a.Redo = run.RedoStep
		}
	case run.ActionRetryFeedback, run.ActionFix:
		a.Next, a.Redo = c.e.asked.again, c.e.asked.redo
	case run.ActionContinueWithWaiver:
		a.Next = c.e.asked.onward
	}
	return a
}

// lastCall is the last of these steps that asks a role: what is done once more when somebody wants it. Where changes are delivered it is the last
// one that gives any, if there is one (works).
func (e *engine) lastCall(steps []work.Step) (step int, works, ok bool) {
	for i := len(steps) - 1; i >= 0; i-- {
		if k := steps[i].Kind; k != "role" && k != "together" {
			continue
		}
		if works = slices.ContainsFunc(steps[i].Roles, func(r work.Role) bool { return r.Gives == pipeline.GivesChanges }); works && e.in.Start.Delivers {
			return i, true, true
		}
		if !ok {
			step, ok = i, true
		}
	}
	return step, false, ok
}
