package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// journalStart journals the start of an attempt.
func (p *pass) journalStart(ctx workflow.Context) error {
	p.attempt++
	p.callID = p.nextCallID()
	ev := run.PassStart{
		Pass: p.passRef(), Call: p.callID, Agent: p.agent().Agent, Attempt: p.attempt, Attempts: p.maxAttempts(),
		Prompt: p.composed.Prompt, Effect: p.step.Effect,
	}
	if p.context.Artifact != nil {
		ev.Before = p.context.Artifact.Digest
	}
	return p.e.j.emit(ctx, run.KindPassStart, p.e.round.Stage, ev)
}

// maxAttempts returns the number of attempts that the limits allow at this point.
func (p *pass) maxAttempts() int {
	if p.acts() {
		return p.attempt // a failed external action may have had its effect
	}
	return max(p.attempt, p.role.Limits.Attempts)
}

// run makes attempts until the pass has a result, fails for good, or is paused. The first start is already on
// disk. calls is a separate context, so that a forced pause cancels the calls and nothing else.
func (p *pass) run(calls, ctx workflow.Context) error {
	for {
		res, err := p.dispatch(calls, ctx)
		if err != nil || res == nil {
			return err
		}
		if p.startedAt == "" {
			p.startedAt = res.StartedAt
		}
		if err := p.journalSuperseded(ctx, res.Superseded); err != nil {
			return err
		}
		if res.Outcome == run.CategoryOK {
			p.result = res
			return nil
		}
		again, err := p.handleFailure(ctx, res)
		if err != nil || !again || !p.covered(ctx) {
			return err
		}
		if err := p.journalStart(ctx); err != nil {
			return err
		}
		if p.takesTurn() {
			p.unwritten = true
		} else if err := p.e.j.flush(ctx); err != nil || p.e.j.state.Status == run.Paused {
			return err
		}
	}
}

// handleFailure decides by category: another attempt, the next pass, or a pause.
func (p *pass) handleFailure(ctx workflow.Context, res *contract.PassResult) (again bool, err error) {
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
	lastStructural := p.attempt >= maxAttempts && res.Structural && p.role.Gives != pipeline.GivesList
	if counts(res.Spend) && !lastStructural {
		ev.Spend = &res.Spend
	}
	if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, ev); err != nil {
		return false, err
	}
	p.e.control.unflushed = true // the wait for the next attempt may be long
	p.e.showDetails(ctx)
	if lastStructural { // the pass settles with the artifact unchanged; the next pass still runs
		p.result = res
		return false, nil
	}
	if p.attempt >= maxAttempts {
		p.failure, p.detail = res, fmt.Sprintf("%s failed in %s: %s", p.title(), run.Plural(p.attempt, "attempt"),
			res.Message)
		return false, nil
	}
	return p.e.sleepUnlessPaused(ctx, time.Duration(float64(delay)*p.e.in.Options.TimeScale),
		fmt.Sprintf("before attempt %d of %s: %s", p.attempt+1, p.title(), res.Outcome.In(p.e.j.state.Wording)))
}

// failedAttempt returns the event of an attempt with a result that settles nothing.
func (p *pass) failedAttempt(res *contract.PassResult) run.PassAttempt {
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
func (p *pass) attemptsIn(class run.RetryClass) int {
	l := p.role.Limits
	switch class {
	case run.RetryNever:
		return p.attempt
	case run.RetryStructural:
		return l.Structural
	}
	return l.Attempts
}

// counts reports whether an attempt has a cost, or an unknown one.
func counts(s run.Spend) bool {
	return s.USD > 0 || s.Tokens != (run.Tokens{}) || s.Known == run.CostUnknown
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

func (p *pass) attemptEvent(category run.Category, message string) run.PassAttempt {
	return run.PassAttempt{Pass: p.passRef(), Call: p.callID, Attempt: p.attempt, Category: category, Message: message}
}

// maxLostDeliveries is the number of lost deliveries of one call after which the run pauses for an operator.
const maxLostDeliveries = 20

// dispatch sends the call to a worker, and to another one if the worker is lost. The call id stays the same, so a
// running call is joined and a finished one is not paid for twice. A nil result means that a pause ended the call.
func (p *pass) dispatch(calls, ctx workflow.Context) (*contract.PassResult, error) {
	queue, wait, claimed := p.e.callQueue(p.agent().Program), time.Duration(0), (*contract.HostClaim)(nil)
	for n, lost, away := 0, 0, 0; ; n++ {
		turn := n == 0 && p.unwritten && p.takesTurn()
		if p.unwritten && !turn {
			if err := p.e.j.flush(ctx); err != nil || p.e.j.state.Status == run.Paused {
				return nil, err // the disk is full: make no call
			}
			p.unwritten = false
		}
		most := wait
		if turn {
			most = turnWait
		}
		res, err := p.deliver(calls, ctx, p.activityOptions(calls, queue, most, claimed), turn)
		if err == nil && p.unwritten {
			continue
		}
		claimed = nil
		if err == nil && res.HandedOver != "" { // the next worker of the host joins the running call
			queue, wait = p.hostCalls(res.HandedOver), nextWorkerWait
			continue
		}
		if err == nil && res.ClaimedBy != nil {
			claimed = res.ClaimedBy
			queue, wait = p.hostCalls(claimed.Host), untilExpiry(ctx, claimed.Until)
			continue
		}
		if err == nil && res.Unrecorded {
			if ask, err := p.withoutRecord(ctx); ask || err != nil {
				return nil, err
			}
			continue
		}
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if done, err := p.stopped(ctx, calls, err); done {
			return nil, err
		}
		if next, most, ok := p.reroute(queue, err); ok {
			pausing := func() bool { return p.e.control.Pause }
			if err := p.e.awaitRetry(calls, away, p.title()+": "+errorMessage(err), pausing); ctx.Err() != nil ||
				pausing() && calls.Err() == nil {
				return nil, err // no call is in progress that a pause would wait for
			}
			queue, wait, away = next, most, away+1
			continue
		}
		queue, wait = p.e.callQueue(p.agent().Program), 0
		if timedOutInQueue(err) {
			continue
		}
		lost++
		if _, notes := costOf(err); len(notes) > 0 {
			if err := p.journalSuperseded(ctx, notes); err != nil {
				return nil, err
			}
		}
		if err := p.journalLost(ctx, lost, err); err != nil || p.failure != nil {
			return nil, err
		}
		if lost > 1 { // backoff for a host that keeps losing workers
			if whole, err := p.e.sleepUnlessPaused(ctx, min(time.Second<<min(lost-2, 5), 30*time.Second),
				"before the next delivery of "+p.title()); err != nil || !whole {
				return nil, err
			}
		}
		if host := lastHost(err); host != "" {
			queue, wait = p.hostCalls(host), nextWorkerWait
		}
	}
}

// stopped handles the errors of a call that end its dispatch: it was cancelled, its activity was paused, a disk is
// full, or no worker can make it.
func (p *pass) stopped(ctx, calls workflow.Context, err error) (done bool, _ error) {
	attempt := func(category run.Category, message string) error {
		spend, notes := costOf(err)
		if err := p.journalSuperseded(ctx, notes); err != nil {
			return err
		}
		ev := p.attemptEvent(category, message)
		ev.Spend = spend
		return p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, ev)
	}
	switch {
	case calls.Err() != nil || isType(err, contract.ErrForced):
		return true, attempt(run.CategoryCancelled, "the call was cancelled by an operator")
	case isType(err, contract.ErrPaused): // an operator who pauses the activity wants the run to pause
		if err := attempt(run.CategoryCancelled, "its activity was paused"); err != nil {
			return true, err
		}
		return true, p.e.pause(ctx, run.UserRequested, "the activity of "+p.title()+" was paused", "")
	case isType(err, contract.ErrSetup):
		return true, p.e.pause(ctx, run.SetupFailed, errorMessage(err), "")
	case isType(err, contract.ErrDiskFull):
		if err := attempt(run.CategoryFileIO, errorMessage(err)); err != nil {
			return true, err
		}
		return true, p.e.pause(ctx, run.DiskFull, errorMessage(err), "")
	case isType(err, contract.ErrBadInput) || isType(err, tooLarge):
		return true, fmt.Errorf("%s: %w", p.title(), err)
	}
	return false, nil
}

// nextWorkerWait is the time a delivery waits for a worker of the host that knows the call.
const nextWorkerWait = 30 * time.Second

func (p *pass) hostCalls(host string) string {
	return contract.HostQueues(p.e.in.Claim.TaskQueue, host).HostCalls
}

// untilExpiry returns the time until a claim expires, plus a margin for clock skew.
func untilExpiry(ctx workflow.Context, deadline string) time.Duration {
	at, err := time.Parse(time.RFC3339, deadline)
	if err != nil {
		return nextWorkerWait
	}
	return max(at.Sub(workflow.Now(ctx)), 0) + 10*time.Second
}

// journalLost journals a lost delivery and fails the pass after too many. A result that waits for the store is
// retried without limit; only its first deliveries are journaled.
func (p *pass) journalLost(ctx workflow.Context, n int, cause error) error {
	why, answered := lostMessage(cause), isType(cause, contract.ErrUnstored)
	if answered && n > maxLostDeliveries {
		return nil
	}
	if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent(run.CategoryLost, why)); err != nil {
		return err
	}
	p.e.control.unflushed = true
	if n >= maxLostDeliveries && !answered {
		p.failure = &contract.PassResult{Outcome: run.CategoryUnknown, Message: why}
		p.detail = fmt.Sprintf("%s was lost %d times: %s", p.title(), n, why)
		return p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent(run.CategoryUnknown, p.detail))
	}
	return nil
}

// activityOptions returns the options of one delivery. The activity id names the host that the delivery waits for.
func (p *pass) activityOptions(ctx workflow.Context, queue string, wait time.Duration,
	claimed *contract.HostClaim) workflow.Context {
	id := "pass-" + p.step.Key
	if p.step.Number == 0 {
		id = fmt.Sprintf("%s-%d", p.step.Key, p.at.Round)
	}
	if p.member != "" {
		id += "-" + p.member
	}
	if claimed != nil {
		id += claimed.Suffix()
	}
	return p.e.callOptions(ctx, queue, id, p.e.inLane(p.step.DescriptionOf(p.member, p.at.Round)),
		p.timeout(), wait)
}

func (p *pass) timeout() time.Duration { return p.role.Limits.TimeoutFor(p.attempt) }

func (p *pass) input() contract.PassInput {
	st := p.e.j.state
	again := st.Again
	if again == "" && st.Feedback != "" && st.Decided != nil {
		again = st.Decided.ID
	}
	at, given := p.stepRef(), &p.context
	if p.composed.Prompt.Raw == "" {
		given = nil
	}
	from, generations := p.e.recordedRun()
	if p.e.replayPolicy() == run.RequireHuman && p.e.permits[p.permitKey()] != run.ActionApply {
		from = ""
	}
	return contract.PassInput{
		Steering: p.interrupting(), Context: given, SupersededSeen: st.Late, Scope: p.scope(),
		RecordedRun: from, Generations: generations, RecordedOnly: p.recordedOnly(),
		DecisionID: again, Tree: p.e.workspace(), Slot: p.slot(), Before: p.before(), RunID: p.e.in.Target.RunID, Store: p.e.in.Target.Store,
		Call: p.callID, Attempt: p.attempt,
		At:      at,
		Heading: p.heading(), Prompt: p.composed.Prompt,
		Artifact: p.context.Artifact, Notes: p.context.Notes, Pictures: p.context.Pictures,
		Item:    p.context.Item,
		Session: p.session(), BudgetUSD: p.share, Now: p.e.now(),
		TimeoutMS: p.timeout().Milliseconds(), HeartbeatMS: p.e.in.Options.HeartbeatMS,
	}
}

// session returns the session that the call continues, if its role continues its own.
func (p *pass) session() *run.KeptSession {
	if p.member != "" {
		return nil
	}
	return p.e.j.state.SessionOf(p.e.round.Stage, p.role.Name)
}

// heading returns the heading of an entry in a notes file. It also makes the entry unique.
func (p *pass) heading() string {
	if p.step.Number == 0 {
		return fmt.Sprintf("## %s, round %d (%s)", p.e.round.Title, p.at.Round, p.role.Name)
	}
	return p.passRef().NoteHeading()
}

func isType(err error, name string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == name
}

// timedOutInQueue reports whether no worker took the delivery from its queue.
func timedOutInQueue(err error) bool {
	var t *temporal.TimeoutError
	return errors.As(err, &t) && t.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// lastHost returns the host of the last heartbeat, or the host that holds the result.
func lastHost(err error) string {
	var t *temporal.TimeoutError
	var beat contract.Heartbeat
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) && app.Type() == contract.ErrUnstored &&
		app.Details(&beat) == nil {
		return beat.Host
	}
	if errors.As(err, &t) && t.HasLastHeartbeatDetails() && t.LastHeartbeatDetails(&beat) == nil {
		return beat.Host
	}
	return ""
}

func lostMessage(err error) string {
	var t *temporal.TimeoutError
	if errors.As(err, &t) {
		return "the worker sent no more heartbeats"
	}
	if isType(err, contract.ErrWorkerStopping) {
		return "the worker stopped"
	}
	return errorMessage(err)
}
