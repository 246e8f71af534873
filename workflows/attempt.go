package workflows

import (
	"cmp"
	"fmt"
	"math/rand"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// attempts makes a call until it has a result, fails for good, or is paused.
type attempts struct{ *call }

// journalStart journals the start of an attempt.
func (p attempts) journalStart(ctx workflow.Context) {
	p.attempt++
	p.callID = p.nextCallID()
	ev := run.PassStart{
		Pass: p.passRef(), Call: p.callID, Agent: p.agent().Agent, Attempt: p.attempt, Attempts: p.maxAttempts(),
		Prompt: p.composed.Prompt, Effect: p.step.Effect,
	}
	if p.context.Artifact != nil {
		ev.Before = p.context.Artifact.Digest
	}
	p.journal.emit(ctx, run.KindPassStart, p.round.Stage, ev)
}

// takesTurn reports whether the activity of the call can write the pending events first: it executes on the host of
// the directory, and no notice is about them. Members of a group begin together, after one projection.
func (p *call) takesTurn() bool {
	return p.in.Options.Turns && p.member == "" && p.hostBound() && p.journal.fitTurn()
}

// writeStart writes the start of an attempt to disk, or leaves that to the activity of the call.
func (p *call) writeStart(ctx workflow.Context) error {
	if p.unwritten = p.takesTurn(); p.unwritten {
		return nil
	}
	return p.journal.flush(ctx)
}

// maxAttempts returns the number of attempts that the limits allow at this point.
func (p attempts) maxAttempts() int {
	if p.acts() {
		return p.attempt // a failed external action may have had its effect
	}
	return max(p.attempt, p.role.Limits.Attempts)
}

// run makes attempts until the pass has a result, fails for good, or is paused. The first start is already on
// disk. calls is a separate context, so that a forced pause cancels the calls and nothing else.
func (p attempts) run(calls, ctx workflow.Context) error {
	for {
		res, err := (&dispatch{call: p.call}).run(calls, ctx)
		if err != nil || res == nil {
			return err
		}
		if p.startedAt == "" {
			p.startedAt = res.StartedAt
		}
		p.journalSuperseded(ctx, res.Superseded)
		if res.Outcome == run.CategoryOK {
			p.result = res
			return nil
		}
		again, err := p.handleFailure(ctx, res)
		if err != nil || !again || !p.covered(ctx) {
			return err
		}
		if err := p.composeAgain(ctx, res); err != nil {
			return err
		}
		p.journalStart(ctx)
		if err := p.writeStart(ctx); err != nil || !p.unwritten && p.state().Status == run.Paused {
			return err
		}
	}
}

// composeAgain adds to the prompt of the next attempt why the reply before did not fit the schema of the role.
func (p attempts) composeAgain(ctx workflow.Context, res *contract.PassResult) error {
	if p.role.Schema == "" || !res.Structural {
		return nil
	}
	p.context.Misfit = res.Message
	return p.compose(ctx)
}

// handleFailure decides by category: another attempt, the next pass, or a pause.
func (p attempts) handleFailure(ctx workflow.Context, res *contract.PassResult) (again bool, err error) {
	if res.Limit != nil && res.Limit.Kind.Passes() {
		return p.handleLimit(ctx, res)
	}
	l := p.role.Limits
	maxAttempts := p.attemptsIn(retryClass(res))
	if p.acts() {
		maxAttempts = p.attempt
	}
	ev := p.failedAttempt(res)
	var delay time.Duration
	if p.attempt < maxAttempts {
		delay = l.Delay(p.attempt, random(ctx))
		ev.RetryInMS = delay.Milliseconds()
	}
	// a later stage has no lanes without the list
	lastStructural := p.attempt >= maxAttempts && res.Structural && !p.role.Lists
	if counts(res.Spend) && !lastStructural {
		ev.Spend = &res.Spend
	}
	p.journal.emit(ctx, run.KindPassAttempt, p.round.Stage, ev)
	p.journal.soon() // the wait for the next attempt may be long
	p.show(ctx)
	if lastStructural { // the pass settles with the artifact unchanged; the next pass still runs
		p.result = res
		return false, nil
	}
	if p.attempt >= maxAttempts {
		p.failure, p.detail = res, fmt.Sprintf("%s failed in %s: %s", p.title(), run.Plural(p.attempt, "attempt"),
			res.Message)
		return false, nil
	}
	return p.sleepUnlessPaused(ctx, time.Duration(float64(delay)*p.in.Options.TimeScale),
		fmt.Sprintf("before attempt %d of %s: %s", p.attempt+1, p.title(), res.Outcome.In(p.state().Wording)))
}

// failedAttempt returns the event of an attempt with a result that settles nothing.
func (p attempts) failedAttempt(res *contract.PassResult) run.PassAttempt {
	ev := p.attemptEvent(res.Outcome, res.Message)
	ev.ExitCode, ev.Diagnostics, ev.Output, ev.Envelope = res.ExitCode, res.Diagnostics, res.Output, res.Envelope
	if res.Output != nil {
		ev.Prompt = &p.composed.Prompt
	}
	ev.StartedAt, ev.DurationMS, ev.Judged = res.StartedAt, res.DurationMS, true
	ev.Attempts, ev.ResumedFrom, ev.Tools = p.role.Limits.Attempts, res.ResumedFrom, res.Tools
	return ev
}

// retryClass returns how a failure is retried. It reads the recorded result and not the table of categories, so
// that a row may change while a run is open.
func retryClass(res *contract.PassResult) run.RetryClass {
	switch {
	case res.Permanent:
		return run.RetryNever
	case res.Structural:
		return cmp.Or(res.Outcome.Info().Unusable, run.RetryStructural)
	}
	return run.RetryAttempts
}

// attemptsIn returns the maximum number of attempts in a retry class.
func (p attempts) attemptsIn(class run.RetryClass) int {
	l := p.role.Limits
	switch class {
	case run.RetryNever:
		return p.attempt
	case run.RetryStructural:
		return l.Structural
	}
	return l.Attempts
}

// random returns a number that is recorded in history, so that a replay waits the same time.
func random(ctx workflow.Context) float64 {
	var x float64
	// workflowcheck:ignore inside a side effect
	enc := workflow.SideEffect(ctx, func(workflow.Context) any { return rand.Float64() })
	if err := enc.Get(&x); err != nil {
		return 0
	}
	return x
}

func (p *call) attemptEvent(category run.Category, message string) run.PassAttempt {
	return run.PassAttempt{Pass: p.passRef(), Call: p.callID, Attempt: p.attempt, Category: category, Message: message}
}

// waits reports whether the pass waits for a limit.
func (p *call) waits() bool { return p.limited }

// blocked reports whether a pass failed because its provider does not answer: an operator has to act, whatever others
// answered.
func (p *call) blocked() bool { return p.failure != nil && p.failure.Limit != nil }

// handleLimit journals a call that met a limit. It uses no attempt. At a usage limit the next agent is asked.
func (p attempts) handleLimit(ctx workflow.Context, res *contract.PassResult) (again bool, err error) {
	limit := *res.Limit
	limit.Agent = p.agent().Agent
	next := limit.Kind == run.LimitPlan && p.fallback < len(p.role.Fallback)
	ev := p.failedAttempt(res)
	ev.Judged, ev.Limit = !res.Uncalled, &limit
	if next {
		ev.Fallback = p.role.Fallback[p.fallback].Agent
	}
	if counts(res.Spend) {
		ev.Spend = &res.Spend
	}
	p.journal.emit(ctx, run.KindPassAttempt, p.round.Stage, ev)
	p.journal.soon()
	p.attempt--
	p.limits = append(p.limits, limit)
	switch {
	case next:
		p.fallback++
		return !p.inbox.pauses(), nil
	case limit.Kind == run.LimitAtOnce: // also in a replay, of a call that is made
	case p.state().Status == run.Replaying, res.Source != "": // the record has the next answer
		p.fallback, p.limits = 0, nil
		return !p.inbox.pauses(), nil
	}
	call := p.limitedCall(ctx)
	if most := p.role.Limits.Complete().MaxWait; limit.Kind.Temporary() &&
		call.WaitedMS > scaled(most, p.in.Options.TimeScale).Milliseconds() {
		p.failure = res
		p.detail = fmt.Sprintf("%s waited for %s, and its provider still does not answer (limits.max_wait): %s", p.title(),
			most, res.Message)
		return false, nil
	}
	p.waiting, p.limited = call, true
	return false, nil
}

func scaled(d time.Duration, scale float64) time.Duration { return time.Duration(float64(d) * scale) }

// limitedCall returns the wait of a pass whose agents all met a limit: until the first of them answers again.
func (p attempts) limitedCall(ctx workflow.Context) run.LimitedCall {
	now := workflow.Now(ctx)
	before := p.state().Limited.Call(p.member)
	var first run.LimitedCall
	for _, limit := range p.limits {
		call := before.Next(limit, run.Time(now))
		reset := time.Duration(0)
		if at, err := time.Parse(run.TimeFormat, limit.Reset); err == nil {
			reset = max(at.Sub(now), time.Millisecond)
		}
		var wait time.Duration
		if again, err := time.Parse(run.TimeFormat, limit.Again); err == nil {
			wait = max(again.Sub(now), time.Millisecond) // of real calls, whatever the scale
		} else {
			wait = p.role.Limits.LimitWait(limit.Kind.Temporary(), call.N, reset, random(ctx), p.in.Options.TimeScale)
		}
		call.Until, call.WaitedMS = run.Time(now.Add(wait)), call.WaitedMS+wait.Milliseconds()
		call.AttemptsUsed = p.attempt
		if first.Until == "" || call.Until < first.Until {
			first = call
		}
	}
	return first
}

// journalSuperseded journals the cost of superseded results and of deliveries that ended without a result, including
// those of earlier calls.
func (p *call) journalSuperseded(ctx workflow.Context, notes []contract.SupersededResult) {
	for _, l := range notes {
		if l.Number <= p.state().Late {
			continue // another member of the group has journaled it
		}
		text := "call " + l.Call + " returned another result later; its cost is counted"
		if l.Ended > 0 {
			text = fmt.Sprintf("delivery %d of call %s ended without an answer; its cost is %s", l.Ended, l.Call,
				run.ShortCost(l.Spend.USD, l.Spend.UnknownCalls()))
		}
		ev := p.attemptEvent(run.CategorySuperseded, text)
		ev.Call, ev.Spend, ev.Late = l.Call, &l.Spend, l.Number
		ev.Prompt, ev.Output, ev.Envelope = l.Prompt, l.Output, l.Envelope
		p.journal.emit(ctx, run.KindPassAttempt, p.round.Stage, ev)
	}
}
