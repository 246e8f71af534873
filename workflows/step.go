package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// step is a step of the plan at a place of the run.
type step struct {
	*execution
	contract.Step
	at    run.Place
	plan  run.PlanRef // that its prompts are composed with, whatever is in force later
	group []*call     // that are not settled
}

// run runs the step.
func (st *step) run(ctx workflow.Context) error {
	switch st.Kind {
	case pipeline.KindRole, pipeline.KindTogether, pipeline.KindRun:
		return st.runCalls(ctx)
	case pipeline.KindScreenshots:
		return st.screenshots(ctx)
	case pipeline.KindAsk:
		return st.askOperator(ctx)
	}
	return fmt.Errorf("step %s is of kind %q, which this release cannot run", st.Key, st.Kind)
}

// withinBudget returns the first passes of a step whose calls the rest of the budget covers, each with its share. The
// others begin when these have settled. If the rest covers no call, it pauses the run.
func (st *step) withinBudget(ctx workflow.Context, all []*call) ([]*call, error) {
	s := st.state()
	if len(all) == 0 || !st.gated(s, st.PlanStep) {
		return all, nil
	}
	left, n := restOf(s), 0
	for ; n < len(all); n++ {
		need := s.Needs(all[n].role.Name)
		if !left.covers(&need) {
			if n == 0 {
				st.pauseOverBudget(ctx, &need)
				return nil, nil
			}
			break
		}
		all[n].reserve(need)
		left.take(need.USD, need.Tokens)
	}
	for _, p := range all[:n] {
		p.enlarge(left.usd / float64(n))
	}
	return all[:n], nil
}

// completes reports whether calls are all that a step has left.
func (st *step) completes(all []*call) bool { return len(all) == len(st.group) }

// unlimited returns the calls that wait for no limit.
func (st *step) unlimited(ctx workflow.Context) []*call {
	now := run.Time(workflow.Now(ctx))
	return slices.DeleteFunc(slices.Clone(st.group), func(p *call) bool { return p.suspended().Until > now })
}

// suspend journals that the run waits for a limit: of the passes of a step, and of those that waited already.
func (st *step) suspend(ctx workflow.Context, all []*call) {
	if st.inbox.pauses() || !st.active() {
		return // requested meanwhile; after a pause, calls are made at once
	}
	calls := st.state().Limited.Calls()
	for _, p := range all {
		calls = slices.DeleteFunc(calls, func(c run.LimitedCall) bool { return c.Member == p.member })
		if p.waits() {
			calls = append(calls, p.waiting)
		}
	}
	ev := run.RunLimited{Limited: *run.NewLimited(calls)}
	st.journal.emit(ctx, run.KindRunLimited, st.round.Stage, ev)
}

// runCalls runs a step of kind role, together or run: compose, journal the starts, wait until they are on disk, call,
// settle. Members run concurrently and settle in the order of the definition.
func (st *step) runCalls(ctx workflow.Context) error {
	st.running.enter()
	defer st.running.leave()
	if st.newCalls(); len(st.group) == 0 {
		return nil
	}
	all := st.unlimited(ctx)
	if len(all) == 0 {
		st.suspend(ctx, nil)
		return nil
	}
	all, err := st.withinBudget(ctx, all)
	if err != nil || len(all) == 0 {
		return err
	}
	st.running.will(all)
	for _, p := range all {
		err := p.compose(ctx)
		if isType(err, contract.ErrDiskFull) {
			st.pause(ctx, run.DiskFull, errorMessage(err), "")
			return nil
		}
		if err != nil {
			return err
		}
		if may, err := (permission{p}).ask(ctx); err != nil || !may {
			return err
		}
	}
	if st.inbox.pauses() {
		return nil // requested while the prompts were composed: make no call
	}
	if err := st.runAttempts(ctx, all); err != nil {
		if kept := st.keepResults(ctx, all); kept != nil {
			return errors.Join(err, kept)
		}
		return err
	}
	return st.settle(ctx, all)
}

// keepResults settles results that were paid for before the step was cancelled. A complete step is not repeated; a
// review after its set waits for the next epoch.
func (st *step) keepResults(ctx workflow.Context, all []*call) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	unanswered := func(p *call) bool { return !p.answered() }
	through := st.completes(all) && !slices.ContainsFunc(all, unanswered) && !all[0].needsDecision()
	endsSet := through && st.round.lastInRound(st.at) && st.round.Kind == pipeline.StageEach
	for i, p := range all {
		s := settlement{call: p, last: through && i == len(all)-1}
		if endsSet && st.round.PauseAfter && i == len(all)-1 {
			s.review = st.round.reviewReason()
		}
		if !p.answered() {
			continue
		}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	if endsSet && st.round.Checkpoint != "" {
		st.checkpoint(ctx, st.round.Checkpoint)
		return nil
	}
	return nil
}

// newCalls makes the calls of the step that are not settled.
func (st *step) newCalls() {
	st.plan = st.in.Start.PlanRef()
	given, settled := st.state().Judgement(), st.state().Settled
	for _, r := range st.Roles {
		c := &call{step: st, role: r, context: st.context()}
		if st.Kind == pipeline.KindTogether {
			c.member, c.denied = r.Name, len(settled) > 0 && given.Approved != nil && !*given.Approved
		}
		c.attempt = c.suspended().AttemptsUsed
		if c.member == "" || !slices.Contains(settled, r.Name) {
			st.group = append(st.group, c)
		}
	}
}

// context returns the state a step gets: artifact, notes, pictures, and the replies of the steps it sees.
func (st *step) context() contract.StepContext {
	now := st.state()
	g := contract.StepContext{
		Artifact: now.Artifact, Notes: now.Notes, Pictures: now.Pictures, Feedback: now.Feedback, About: now.About,
		Waiver: now.Markers.Waiver, Waivers: now.Waivers,
	}
	if l := st.in.Start.Lane; l != nil {
		g.Item = &contract.ItemUse{List: l.List, Index: l.Index}
	}
	if now.Task != now.Pipeline {
		g.Task = now.Task
	}
	g.Parent, g.Tampered, g.Fresh = st.in.Start.Brief, now.Tampered, now.OnlyInWorkspace()
	if w := st.in.Start.Workspace; w != nil {
		g.Base = w.Base
	}
	if s := now.SessionOf(st.round.Stage, st.Role); s != nil && s.Adopted() && now.Adopted != nil {
		g.Adopted = &now.Adopted.Brief
	}
	for _, r := range now.Replies {
		if (st.Sees != "" && r.Step == st.Sees) || (st.SeesStage != "" && r.Phase == st.SeesStage) {
			g.Replies = append(g.Replies, r)
		}
	}
	g.Replies = st.inOrder(g.Replies)
	if st.SeesStage != "" && len(g.Replies) > 1 {
		g.Replies = g.Replies[len(g.Replies)-1:]
	}
	return g
}

// inOrder sorts the replies of a group as its definition lists the members, whichever of them settled first: another
// order would be another question.
func (st *step) inOrder(all []run.Reply) []run.Reply {
	place := func(r run.Reply) int {
		for _, s := range st.round.Steps {
			if s.Key == r.Step {
				return slices.IndexFunc(s.Roles, func(m contract.Role) bool { return m.Name == r.Member })
			}
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b run.Reply) int { return place(a) - place(b) })
	return all
}

// runAttempts runs all passes of a step concurrently. All starts are on disk before the first call.
func (st *step) runAttempts(ctx workflow.Context, all []*call) error {
	for _, p := range all {
		(attempts{p}).journalStart(ctx)
	}
	if err := all[0].writeStart(ctx); err != nil {
		return err
	}
	if st.state().Status == run.Paused {
		return nil // the disk is full: make no call
	}
	st.show(ctx)
	errs := make([]error, len(all))
	wg := workflow.NewWaitGroup(ctx)
	for i, p := range all {
		wg.Add(1)
		workflow.GoNamed(ctx, p.title(), func(ctx workflow.Context) {
			defer wg.Done()
			calls, cancel := workflow.WithCancel(ctx)
			defer cancel()
			st.running.begin(p, cancel)
			if st.inbox.pausesNow() || p.overtaken() { // requested before the call began
				cancel()
			}
			errs[i] = attempts{p}.run(calls, ctx)
		})
	}
	wg.Wait(ctx)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// settle journals the results of a step. A step with an unsettled pass is repeated after the pause.
func (st *step) settle(ctx workflow.Context, all []*call) error {
	open, whole := st.unsettled(all), st.completes(all)
	gated := open == nil && whole && all[0].needsDecision()
	for i, p := range all {
		last := open == nil && i == len(all)-1 && whole && !gated
		if !p.answered() {
			continue
		}
		if err := (settlement{call: p, last: last}).run(ctx); err != nil {
			return err
		}
	}
	switch {
	case open != nil && slices.ContainsFunc(all, (*call).waits) && open.failure == nil:
		st.suspend(ctx, all)
		return nil
	case open != nil:
		return st.pauseForFailure(ctx, open)
	case gated && st.failLane(gateQuestion(all[0])) != nil:
		return st.failLane(gateQuestion(all[0]))
	case gated:
		return st.askGate(ctx, all[0])
	case !whole:
		return nil // the others begin next
	}
	st.round.endRound(ctx, st.at)
	st.pauseAfterFailures(ctx)
	return nil
}

// minGroupResults is the number of results with which a group continues when other members failed for good.
const minGroupResults = 2

// unsettled returns the first pass without a result, or nil if the step can continue. In a group, members that
// failed for good settle as failed once enough others have results.
func (st *step) unsettled(all []*call) *call {
	var open *call
	answered, gone := len(st.state().Settled), true
	for _, p := range all {
		switch {
		case p.result != nil:
			answered++
		case open == nil || open.failure == nil && p.failure != nil:
			open = p // a failure pauses the run, whatever else waits
		}
		gone = gone && (p.result != nil || p.failure != nil && !p.stoppedAtBudget() && !p.blocked())
	}
	if open == nil || open.member == "" || !gone || answered < minGroupResults {
		return open
	}
	for _, p := range all {
		if p.result == nil {
			failed := *p.failure
			failed.Spend = run.Spend{} // counted with the attempt
			p.result = &failed
		}
	}
	return nil
}

// pauseForFailure pauses the run because of a failed pass, unless a pause was requested already. The third
// consecutive start in which the same pass fails has its own reason.
func (st *step) pauseForFailure(ctx workflow.Context, p *call) error {
	if p.failure == nil || st.inbox.pauses() || st.state().Status == run.Paused {
		return nil
	}
	if p.stoppedAtBudget() {
		st.pauseOverBudget(ctx, &run.Need{Role: p.role.Name, USD: p.share, Source: run.NeedReached})
		return nil
	}
	if err := st.failLane(p.detail); err != nil && !p.cannotRun() && !p.blocked() {
		return err
	}
	failed := run.FailedPass{Step: p.step.Key, Member: p.member, Category: p.failure.Outcome}
	ev := run.RunPaused{Reason: run.PassFailed, Detail: p.detail, Failed: &failed}
	if p.cannotRun() {
		ev.Reason, ev.Detail = run.GateFailed, p.failure.Message
	} else if f := st.state().Failure; f != nil && f.Same(failed) && f.Starts+1 >= maxConsecutiveFailures && !p.blocked() {
		ev.Reason = run.ConsecutiveFailures
	}
	st.journal.emit(ctx, run.KindRunPaused, st.round.Stage, ev)
	return nil
}

// maxConsecutiveFailures is the number of consecutive failures, in starts of one pass or in passes, after which
// the run pauses with its own reason.
const maxConsecutiveFailures = 3

// pauseAfterFailures pauses after consecutive failed passes, to not waste money.
func (st *step) pauseAfterFailures(ctx workflow.Context) {
	n := st.state().Passes.InRow
	if !st.active() || n < maxConsecutiveFailures || n%maxConsecutiveFailures != 0 {
		return
	}
	ev := run.RunPaused{Reason: run.ConsecutiveFailures, Detail: fmt.Sprintf("%d consecutive passes failed", n)}
	st.journal.emit(ctx, run.KindRunPaused, st.round.Stage, ev)
}
