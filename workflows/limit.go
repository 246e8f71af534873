package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// A limit of a provider suspends the run. The step unwinds as for a pause: answered members of a group are settled, and
// run.limited contains the calls that wait. The main loop then waits in waitForLimit, and the step begins again. No
// step waits for a limit.

// agent returns the agent that is asked: that of the role, or the fallback after usage limits.
func (p *pass) agent() contract.FallbackAgent {
	if p.fallback == 0 {
		return contract.FallbackAgent{Agent: p.role.Agent, Program: p.role.Program}
	}
	return p.role.Fallback[p.fallback-1]
}

// waits reports whether the pass waits for a limit.
func (p *pass) waits() bool { return p.limited }

// blocked reports whether a pass failed because its provider does not answer: an operator has to act, whatever others
// answered.
func (p *pass) blocked() bool { return p.failure != nil && p.failure.Limit != nil }

// handleLimit journals a call that met a limit. It uses no attempt. At a usage limit the next agent is asked.
func (p *pass) handleLimit(ctx workflow.Context, res *contract.PassResult) (again bool, err error) {
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
	if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, ev); err != nil {
		return false, err
	}
	p.e.control.unflushed = true
	p.attempt--
	p.limits = append(p.limits, limit)
	switch {
	case next:
		p.fallback++
		return !p.e.control.Pause, nil
	case limit.Kind == run.LimitAtOnce: // also in a replay, of a call that is made
	case p.e.j.state.Status == run.Replaying, res.Source != "": // the record has the next answer
		p.fallback, p.limits = 0, nil
		return !p.e.control.Pause, nil
	}
	call := p.e.limitedCall(ctx, p)
	if most := p.role.Limits.Complete().MaxWait; limit.Kind.Temporary() &&
		call.WaitedMS > scaled(most, p.e.in.Options.TimeScale).Milliseconds() {
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
func (e *engine) limitedCall(ctx workflow.Context, p *pass) run.LimitedCall {
	now := workflow.Now(ctx)
	before := e.j.state.Limited.Call(p.member)
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
			wait = p.role.Limits.LimitWait(limit.Kind.Temporary(), call.N, reset, random(ctx), e.in.Options.TimeScale)
		}
		call.Until, call.WaitedMS = run.Time(now.Add(wait)), call.WaitedMS+wait.Milliseconds()
		call.AttemptsUsed = p.attempt
		if first.Until == "" || call.Until < first.Until {
			first = call
		}
	}
	return first
}

// unlimited returns the passes that wait for no limit. The others keep the attempts that they used.
func (e *engine) unlimited(ctx workflow.Context, all []*pass) []*pass {
	now := run.Time(workflow.Now(ctx))
	for _, p := range all {
		p.attempt = e.j.state.Limited.Call(p.member).AttemptsUsed
	}
	return slices.DeleteFunc(slices.Clone(all), func(p *pass) bool {
		return e.j.state.Limited.Call(p.member).Until > now
	})
}

// suspend journals that the run waits for a limit: of the passes of a step, and of those that waited already.
func (e *engine) suspend(ctx workflow.Context, all []*pass) error {
	if e.control.Pause || !e.active() {
		return nil // requested meanwhile; after a pause, calls are made at once
	}
	calls := e.j.state.Limited.Calls()
	for _, p := range all {
		calls = slices.DeleteFunc(calls, func(c run.LimitedCall) bool { return c.Member == p.member })
		if p.waits() {
			calls = append(calls, p.waiting)
		}
	}
	ev := run.RunLimited{Limited: *run.NewLimited(calls)}
	return e.j.emit(ctx, run.KindRunLimited, e.round.Stage, ev)
}

// waitForLimit waits until a limit resets, and its host lets the run make its call. A message ends the wait.
func (e *engine) waitForLimit(ctx workflow.Context) error {
	if e.j.state.Status != run.WaitingLimit {
		return nil
	}
	l := e.j.state.Limited
	for until := l.Until; ; {
		at, err := time.Parse(run.TimeFormat, until)
		if err != nil {
			at = workflow.Now(ctx)
		}
		if _, err := e.wait(ctx, wait{name: waitLimit, until: at, summary: limitSummary(l, until)}); err != nil {
			return err
		}
		if e.leavesLimit() {
			return e.endLimit(ctx, contract.AskResult{})
		}
		res, err := e.askHost(ctx)
		if err != nil {
			return err
		}
		if res.Again == "" || e.leavesLimit() {
			return e.endLimit(ctx, res)
		}
		until = res.Again
	}
}

// leavesLimit reports whether a message ends the wait for a limit.
func (e *engine) leavesLimit() bool {
	c := e.control
	return c.Pause || c.Resume || c.Revert != nil || c.err != nil
}

// askHost asks the host of the run whether a call that waits for a place, or for an account, may be made. Other calls
// find out when they are made. It returns at once if it is no longer of interest.
func (e *engine) askHost(ctx workflow.Context) (res contract.AskResult, err error) {
	in, now := contract.AskInput{RunID: e.in.Target.RunID}, run.Time(workflow.Now(ctx))
	for _, c := range e.j.state.Limited.Calls() {
		if c.Until > now {
			continue
		}
		if c.AccountID == "" {
			return contract.AskResult{}, nil
		}
		in.Limits = append(in.Limits, c.Limit)
	}
	if len(in.Limits) == 0 || !e.hostBound() {
		return contract.AskResult{}, nil
	}
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	f := workflow.ExecuteActivity(e.directoryOptions(ctx, "ask whether the call may be made"), contract.Ask, in)
	if err := workflow.Await(ctx, func() bool { return f.IsReady() || e.leavesLimit() }); err != nil || !f.IsReady() {
		return contract.AskResult{}, err
	}
	if f.Get(ctx, &res) != nil { // the call finds out
		return contract.AskResult{}, ctx.Err()
	}
	return res, nil
}

// limitSummary describes the timer of a wait.
func limitSummary(l *run.Limited, until string) string {
	if l.Kind == run.LimitAtOnce {
		return fmt.Sprintf("its turn; it asks again at %s: %s", until, l.AtOnce())
	}
	return fmt.Sprintf("until %s: %s of %s", until, l.Kind, l.Whose())
}

// endLimit ends the wait for a limit as requested, or because of what its host has answered.
func (e *engine) endLimit(ctx workflow.Context, answer contract.AskResult) error {
	c := e.control
	ev := run.RunUnlimited{Cause: cmp.Or(answer.Cause, run.LimitTimer)}
	switch {
	case c.err != nil:
		return c.err
	case c.Pause || e.j.state.Status != run.WaitingLimit:
		return nil // the main loop pauses, or a full disk did
	case c.Revert != nil:
		return e.revert(ctx)
	case c.Resume:
		e.tryNow = true
		ev = run.RunUnlimited{Cause: run.LimitOperator, By: c.By, Note: c.Note}
	case ev.Cause == run.LimitTurn:
		ev.Account = answer.Limit.AccountID
	case ev.Cause != run.LimitTimer:
		ev.Account = answer.Limit.Account
	}
	c.Control = contract.Control{}
	if err := e.j.emit(ctx, run.KindRunUnlimited, e.j.state.Phase, ev); err != nil {
		return err
	}
	if err := e.j.flush(ctx); err != nil { // the directory is current before an operator's edits are read
		return err
	}
	return e.adoptEdits(ctx)
}

// now reports, once, whether an operator asks for the next call.
func (e *engine) now() bool {
	now := e.tryNow
	e.tryNow = false
	return now
}
