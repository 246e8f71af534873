package workflows

import (
	"errors"
	"fmt"
	"math/rand"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// start writes down that an attempt begins.
func (p *pass) start(ctx workflow.Context) error {
	p.tried++
	p.id = p.nextCall()
	ev := run.PassStart{Pass: p.about(), Call: p.id, Agent: p.role.Agent, Attempt: p.tried, Attempts: p.attempts(), Prompt: p.asked.Prompt}
	if p.given.Artifact != nil {
		ev.Before = p.given.Artifact.Digest
	}
	return p.e.j.emit(ctx, run.KindPassStart, p.e.round.Stage, ev)
}

// attempts is how many there are at most, as things stand.
func (p *pass) attempts() int { return max(p.tried, p.role.Limits.AttemptsFor(p.limited)) }

// run makes attempts until the pass has a result, or is given up, or a pause ends it. The first start is on disk already. Calls hang on a
// context of their own, so that a forced pause ends them and nothing else.
func (p *pass) run(calls, ctx workflow.Context) error {
	for {
		res, err := p.deliver(calls, ctx)
		if err != nil || res == nil {
			return err
		}
		if p.began == "" {
			p.began = res.StartedAt
		}
		if err := p.late(ctx, res); err != nil {
			return err
		}
		if res.Outcome == "ok" {
			p.result = res
			return nil
		}
		again, err := p.failed(ctx, res)
		if err != nil || !again {
			return err
		}
		if err := p.start(ctx); err != nil {
			return err
		}
		if err := p.e.j.flush(ctx); err != nil || p.e.j.state.Status == run.Paused {
			return err
		}
	}
}

// late journals what answers have cost that came after the ones that count: also of earlier calls, which were judged before. They are counted where they
// are met.
func (p *pass) late(ctx workflow.Context, res *work.PassResult) error {
	for _, l := range res.Late {
		if l.Number <= p.e.j.state.Late {
			continue // another member of the group has met it too
		}
		ev := p.attemptEvent("superseded", "another answer of call "+l.Call+" came later; it was paid for too")
		ev.Call, ev.Spend, ev.Late = l.Call, &l.Spend, l.Number
		ev.Prompt, ev.Output, ev.Envelope = l.Prompt, l.Output, l.Envelope
		if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, ev); err != nil {
			return err
		}
	}
	return nil
}

// failed decides on a failure by its category: another attempt, on with the next pass, or a pause.
func (p *pass) failed(ctx workflow.Context, res *work.PassResult) (again bool, err error) {
	l := p.role.Limits
	p.limited = res.RateLimited
	most := l.AttemptsFor(res.RateLimited)
	switch {
	case res.Permanent:
		most = p.tried
	case res.Structural && res.Outcome != "output-truncated":
		most = l.Structural
	}
	ev := p.attemptEvent(res.Outcome, res.Message)
	ev.ExitCode, ev.Diagnostics, ev.Output, ev.Envelope = res.ExitCode, res.Diagnostics, res.Output, res.Envelope
	if res.Output != nil {
		ev.Prompt = &p.asked.Prompt
	}
	ev.StartedAt, ev.DurationMS, ev.Judged = res.StartedAt, res.DurationMS, true
	var delay time.Duration
	if p.tried < most {
		delay = l.Delay(res.RateLimited, p.tried, random(ctx))
		ev.RetryInMS = delay.Milliseconds()
	}
	lastStructural := p.tried >= most && res.Structural
	if paid(res.Spend) && !lastStructural {
		ev.Spend = &res.Spend
	}
	if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, ev); err != nil {
		return false, err
	}
	p.e.control.dirty = true // the courier carries it: the wait for the next attempt may be long
	p.e.show(ctx)
	if lastStructural { // the pass is settled with the artifact as it was; the next one still runs
		p.result = res
		return false, nil
	}
	if p.tried >= most {
		p.failure, p.detail = res, fmt.Sprintf("%s failed %d times: %s", p.title(), p.tried, res.Message)
		return false, nil
	}
	return p.e.wait(ctx, time.Duration(float64(delay)*p.e.in.Options.TimeScale), fmt.Sprintf("before attempt %d of %s: %s", p.tried+1, p.title(), res.Outcome))
}

func paid(s run.Spend) bool { return s.USD > 0 || s.Tokens != (run.Tokens{}) }

// random is recorded in history, so that a replay waits as long.
func random(ctx workflow.Context) float64 {
	var x float64
	enc := workflow.SideEffect(ctx, func(workflow.Context) any { return rand.Float64() }) //workflowcheck:ignore inside a side effect
	if err := enc.Get(&x); err != nil {
		return 0
	}
	return x
}

func (p *pass) attemptEvent(category, message string) run.PassAttempt {
	return run.PassAttempt{Pass: p.about(), Call: p.id, Attempt: p.tried, Category: category, Message: message}
}

// mostLost is after how many lost deliveries of one call a person is asked to look.
const mostLost = 20

// deliver hands the call to a worker, and to the next one if a worker is lost: the id stays, so a call that still runs is joined and one that
// was answered is not paid for again. nil: a pause ended it.
func (p *pass) deliver(calls, ctx workflow.Context) (*work.PassResult, error) {
	queue, wait, claimed := p.e.queueOf(p.role.Program), time.Duration(0), (*work.Elsewhere)(nil)
	for lost, away := 0, 0; ; {
		if err := p.e.behindReset(ctx); err != nil {
			return nil, err
		}
		var res work.PassResult
		err := workflow.ExecuteActivity(p.options(calls, queue, wait, claimed), work.RunPass, p.input()).Get(calls, &res)
		claimed = nil
		if err == nil && res.HandedOver != "" { // the call continues: the next worker of its host joins it
			queue, wait = p.hostCalls(res.HandedOver), nextWorker
			continue
		}
		if err == nil && res.Elsewhere != nil {
			claimed = res.Elsewhere
			queue, wait = p.hostCalls(claimed.Host), until(ctx, claimed.Until)
			continue
		}
		if err == nil && res.Unrecorded {
			if err := p.e.leaveRecord(ctx); err != nil {
				return nil, err
			}
			if err := p.e.j.flush(ctx); err != nil { // that it works on its own is on disk before the call
				return nil, err
			}
			continue
		}
		if err == nil {
			return &res, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if calls.Err() != nil || isType(err, work.ErrForced) {
			return nil, p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent("cancelled", "the call was ended by a person"))
		}
		if isType(err, work.ErrPaused) { // whoever pauses the activity wants the run to rest
			if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent("cancelled", "its activity was paused")); err != nil {
				return nil, err
			}
			return nil, p.e.pause(ctx, run.UserRequested, "the activity of "+p.title()+" was paused", "")
		}
		if isType(err, work.ErrDiskFull) {
			if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent("file-io", message(err))); err != nil {
				return nil, err
			}
			return nil, p.e.pause(ctx, run.DiskFull, message(err), "")
		}
		if isType(err, work.ErrBadInput) || isType(err, tooLarge) {
			return nil, fmt.Errorf("%s: %w", p.title(), err) // no worker can do it
		}
		if next, most, ok := p.elsewhere(queue, err); ok {
			pausing := func() bool { return p.e.control.Pause }
			if err := p.e.await(calls, away, p.title()+": "+message(err), pausing); ctx.Err() != nil || pausing() && calls.Err() == nil {
				return nil, err // no call is out that a pause would wait for
			}
			queue, wait, away = next, most, away+1
			continue
		}
		queue, wait = p.e.queueOf(p.role.Program), 0
		if startedNowhere(err) {
			continue
		}
		lost++
		if err := p.lost(ctx, lost, err); err != nil || p.failure != nil {
			return nil, err
		}
		if lost > 1 { // a machine that loses one worker after another is given time: 1 s, 2 s, 4 s, up to half a minute
			if whole, err := p.e.wait(ctx, min(time.Second<<min(lost-2, 5), 30*time.Second), "before the next worker gets "+p.title()); err != nil || !whole {
				return nil, err
			}
		}
		if host := lastHost(err); host != "" {
			queue, wait = p.hostCalls(host), nextWorker
		}
	}
}

// nextWorker is how long a delivery waits for a worker of the host that knows the call.
const nextWorker = 30 * time.Second

func (p *pass) hostCalls(host string) string {
	return work.QueuesOf(p.e.in.Claim.TaskQueue, host).HostCalls
}

// until is the time from now to the end of a claim, and a little more for clocks that differ.
func until(ctx workflow.Context, deadline string) time.Duration {
	at, err := time.Parse(time.RFC3339, deadline)
	if err != nil {
		return nextWorker
	}
	return max(at.Sub(workflow.Now(ctx)), 0) + 10*time.Second
}

// lost journals a lost delivery, and gives the pass up after too many of them. The courier carries the line to the directory: the wait for the
// next worker may be long. An answer that is there waits for the store as long as it takes; the later tries have no lines.
func (p *pass) lost(ctx workflow.Context, n int, cause error) error {
	why, answered := lostMessage(cause), isType(cause, work.ErrUnstored)
	if answered && n > mostLost {
		return nil
	}
	if err := p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent("lost", why)); err != nil {
		return err
	}
	p.e.control.dirty = true
	if n >= mostLost && !answered {
		p.failure = &work.PassResult{Outcome: "unknown", Message: why}
		p.detail = fmt.Sprintf("%s was lost %d times: %s", p.title(), n, why)
		return p.e.j.emit(ctx, run.KindPassAttempt, p.e.round.Stage, p.attemptEvent("unknown", p.detail))
	}
	return nil
}

// options name the delivery for people: also the host that it waits for.
func (p *pass) options(ctx workflow.Context, queue string, wait time.Duration, claimed *work.Elsewhere) workflow.Context {
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
	return p.e.call(ctx, queue, id, p.step.DescriptionOf(p.member, p.at.Round), p.timeout(), wait)
}

func (p *pass) timeout() time.Duration { return p.role.Limits.TimeoutFor(p.tried) }

func (p *pass) input() work.PassInput {
	st := p.e.j.state
	again := st.Again
	if again == "" && st.Feedback != "" && st.Decided != nil {
		again = st.Decided.ID
	}
	at, given := p.ref(), &p.given
	if p.asked.Prompt.Raw == "" {
		at.Inputs, given = "", nil
	}
	from, generations := p.e.recorded()
	if p.e.policy() == run.RequireHuman && p.e.permits[p.permit()] != run.ActionApply {
		from = ""
	}
	return work.PassInput{
		Given: given, Late: st.Late,
		Recorded: from, Generations: generations, Only: p.e.j.state.Status == run.Replaying,
		Again: again, Tree: p.e.tree(), Store: p.e.in.Target.Store, Call: p.id, Attempt: p.tried, At: at, Heading: p.heading(), Prompt: p.asked.Prompt,
		Artifact: p.given.Artifact, Notes: p.given.Notes, Pictures: p.given.Pictures,
		TimeoutMS: p.timeout().Milliseconds(), HeartbeatMS: p.e.in.Options.HeartbeatMS,
	}
}

// heading is what an entry of a notes file begins with; it also makes the entry unique.
func (p *pass) heading() string {
	if p.step.Number == 0 {
		return fmt.Sprintf("## %s, round %d (%s)", p.e.round.Title, p.at.Round, p.role.Name)
	}
	return fmt.Sprintf("## Pass %d (%s, Rotation %s, %s)", p.step.Number, p.e.round.Set, p.step.Order, p.role.Name)
}

func isType(err error, name string) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == name
}

// startedNowhere says that no worker took the delivery from its queue.
func startedNowhere(err error) bool {
	var t *temporal.TimeoutError
	return errors.As(err, &t) && t.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
}

// lastHost is the host whose worker was heard of last, or that has the answer.
func lastHost(err error) string {
	var t *temporal.TimeoutError
	var beat work.Heartbeat
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) && app.Type() == work.ErrUnstored && app.Details(&beat) == nil {
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
		return "the worker was not heard of any more"
	}
	if isType(err, work.ErrWorkerStopping) {
		return "the worker stopped"
	}
	return message(err)
}
