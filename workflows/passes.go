package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// pass is one call of a role: a single step, or a member of a group.
type pass struct {
	e         *engine
	at        run.Place
	step      contract.Step
	plan      run.PlanRef // that it is composed with, whatever is in force later
	role      contract.Role
	member    string  // empty outside groups
	group     []*pass // members that are asked together
	denied    bool    // a member that settled earlier did not approve
	context   contract.StepContext
	composed  contract.ComposeResult
	steering  []run.Instruction // that the prompt contains
	startedAt string            // start of the first attempt in this execution
	attempt   int               // attempts in this execution
	share     float64           // of the budget, that the next call may spend; 0: no budget
	tokens    int64             // likewise, reserved
	fallback  int               // agents that met a usage limit before the current one
	limits    []run.Limit       // that the agents met since the last wait
	limited   bool              // all agents met one: the run waits
	waiting   run.LimitedCall   // for the first of them
	callID    string            // of the current call
	unwritten bool              // the start of the attempt is not on disk yet
	result    *contract.PassResult
	// of the last attempt, if none is left and the run cannot continue without a result
	failure      *contract.PassResult
	detail       string
	reviewReason string // review that the next epoch pauses for: this pass was cancelled before it
}

// runPasses runs a step of kind role or together: compose, journal the starts, wait until they are on disk, call,
// settle. Members run concurrently and settle in the order of the definition.
func (e *engine) runPasses(ctx workflow.Context, at run.Place, s contract.Step) error {
	e.inStep = true
	defer func() { e.inStep, e.passes = false, nil }()
	all := e.newPasses(at, s)
	if len(all) == 0 {
		return nil
	}
	if all = e.unlimited(ctx, all); len(all) == 0 {
		return e.suspend(ctx, nil)
	}
	all, err := e.withinBudget(ctx, all)
	if err != nil || len(all) == 0 {
		return err
	}
	e.passes = all
	for _, p := range all {
		err := p.compose(ctx)
		if isType(err, contract.ErrDiskFull) {
			return e.pause(ctx, run.DiskFull, errorMessage(err), "")
		}
		if err != nil {
			return err
		}
		if may, err := p.askPermission(ctx); err != nil || !may {
			return err
		}
	}
	defer e.dropCalls(all)
	if e.control.Pause {
		return nil // requested while the prompts were composed: make no call
	}
	if err := e.runAttempts(ctx, all); err != nil {
		if kept := e.keepResults(ctx, at, all); kept != nil {
			return errors.Join(err, kept)
		}
		return err
	}
	return e.settlePasses(ctx, at, all)
}

// keepResults settles results that were paid for before the step was cancelled. A complete step is not repeated; a
// review after its set waits for the next epoch.
func (e *engine) keepResults(ctx workflow.Context, at run.Place, all []*pass) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	unanswered := func(p *pass) bool { return p.result == nil }
	through := completes(all) && !slices.ContainsFunc(all, unanswered) && !all[0].needsDecision()
	endsSet := through && e.lastInRound(at) && e.round.Kind == pipeline.StageEach
	if endsSet && e.round.PauseAfter {
		all[len(all)-1].reviewReason = e.reviewReason()
	}
	for i, p := range all {
		if p.result == nil {
			continue
		}
		if err := p.settle(ctx, through && i == len(all)-1); err != nil {
			return err
		}
	}
	if endsSet && e.round.Checkpoint != "" {
		return e.checkpoint(ctx, e.round.Checkpoint)
	}
	return nil
}

// newPasses returns the passes of a step that are not settled.
func (e *engine) newPasses(at run.Place, s contract.Step) []*pass {
	if s.Kind != pipeline.KindTogether {
		return []*pass{{e: e, at: at, step: s, plan: e.in.Start.PlanRef(), role: s.Roles[0], context: e.stepContext(s)}}
	}
	var all []*pass
	for _, r := range s.Roles {
		if !slices.Contains(e.j.state.Settled, r.Name) {
			all = append(all, &pass{e: e, at: at, step: s, plan: e.in.Start.PlanRef(), role: r, member: r.Name,
				context: e.stepContext(s)})
		}
	}
	given := e.j.state.Judgement()
	for _, p := range all {
		p.group, p.denied = all, len(e.j.state.Settled) > 0 && given.Approved != nil && !*given.Approved
	}
	return all
}

// stepContext returns the state a step gets: artifact, notes, pictures, and the replies of the steps it sees.
func (e *engine) stepContext(s contract.Step) contract.StepContext {
	st := e.j.state
	g := contract.StepContext{
		Artifact: st.Artifact, Notes: st.Notes, Pictures: st.Pictures, Feedback: st.Feedback, About: st.About,
		Waiver: st.Markers.Waiver, Waivers: st.Waivers,
	}
	if l := e.in.Start.Lane; l != nil {
		g.Item = &contract.ItemUse{List: l.List, Index: l.Index}
	}
	if st.Task != st.Pipeline {
		g.Task = st.Task
	}
	g.Parent, g.Tampered, g.Fresh = e.in.Start.Brief, st.Tampered, st.OnlyInWorkspace()
	if w := e.in.Start.Workspace; w != nil {
		g.Base = w.Base
	}
	for _, r := range st.Replies {
		if (s.Sees != "" && r.Step == s.Sees) || (s.SeesStage != "" && r.Phase == s.SeesStage) {
			g.Replies = append(g.Replies, r)
		}
	}
	g.Replies = e.inOrder(g.Replies)
	if s.SeesStage != "" && len(g.Replies) > 1 {
		g.Replies = g.Replies[len(g.Replies)-1:]
	}
	return g
}

// inOrder sorts the replies of a group as its definition lists the members, whichever of them settled first: another
// order would be another question.
func (e *engine) inOrder(all []run.Reply) []run.Reply {
	place := func(r run.Reply) int {
		for _, s := range e.round.Steps {
			if s.Key == r.Step {
				return slices.IndexFunc(s.Roles, func(m contract.Role) bool { return m.Name == r.Member })
			}
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b run.Reply) int { return place(a) - place(b) })
	return all
}

func (p *pass) stepRef() contract.StepRef {
	return contract.StepRef{
		PlanUse: useOf(p.plan), Stage: p.at.Stage, Round: p.at.Round, Step: p.at.Step,
		Member: p.member, Agent: p.agent().Name,
	}
}

func (p *pass) compose(ctx workflow.Context) error {
	p.addInstructions()
	t := p.e.in.Target
	in := contract.ComposeInput{RunID: t.RunID, Store: t.Store, At: p.stepRef(), Context: p.context}
	if err := p.e.readStore(ctx, contract.Compose, in, &p.composed); err != nil {
		return fmt.Errorf("compose the prompt of %s: %w", p.title(), err)
	}
	return nil
}

// runAttempts runs all passes of a step concurrently. All starts are on disk before the first call.
func (e *engine) runAttempts(ctx workflow.Context, all []*pass) error {
	for _, p := range all {
		if err := p.journalStart(ctx); err != nil {
			return err
		}
	}
	if all[0].takesTurn() {
		all[0].unwritten = true
	} else if err := e.j.flush(ctx); err != nil {
		return err
	}
	if e.j.state.Status == run.Paused {
		return nil // the disk is full: make no call
	}
	e.showDetails(ctx)
	errs := make([]error, len(all))
	wg := workflow.NewWaitGroup(ctx)
	for i, p := range all {
		wg.Add(1)
		workflow.GoNamed(ctx, p.title(), func(ctx workflow.Context) {
			defer wg.Done()
			calls, cancel := workflow.WithCancel(ctx)
			defer cancel()
			e.calls = append(e.calls, runningCall{p, cancel})
			if e.control.Now || p.overtaken() { // requested before the call began
				cancel()
			}
			errs[i] = p.run(calls, ctx)
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

// settlePasses journals the results of a step. A step with an unsettled pass is repeated after the pause.
func (e *engine) settlePasses(ctx workflow.Context, at run.Place, all []*pass) error {
	open, whole := e.unsettled(all), completes(all)
	gated := open == nil && whole && all[0].needsDecision()
	for i, p := range all {
		if p.result == nil {
			continue
		}
		last := open == nil && i == len(all)-1 && whole && !gated
		if err := p.settle(ctx, last); err != nil {
			return err
		}
	}
	switch {
	case open != nil && slices.ContainsFunc(all, (*pass).waits) && open.failure == nil:
		return e.suspend(ctx, all)
	case open != nil:
		return e.pauseForFailure(ctx, open)
	case gated && e.failLane(gateQuestion(all[0])) != nil:
		return e.failLane(gateQuestion(all[0]))
	case gated:
		return e.askGate(ctx, at, all[0])
	case !whole:
		return nil // the others begin next
	}
	if err := e.endRound(ctx, at); err != nil {
		return err
	}
	return e.pauseAfterFailures(ctx)
}

// endRound ends the set after its last step.
func (e *engine) endRound(ctx workflow.Context, at run.Place) error {
	if e.lastInRound(at) && e.round.Kind == pipeline.StageEach {
		return e.endSet(ctx)
	}
	return nil
}

// endSet creates the checkpoint at the end of a set, and pauses if the definition wants a review.
func (e *engine) endSet(ctx workflow.Context) error {
	if e.round.Checkpoint != "" {
		if err := e.checkpoint(ctx, e.round.Checkpoint); err != nil {
			return err
		}
	}
	return e.review(ctx)
}

// review pauses for a review if the definition wants one.
func (e *engine) review(ctx workflow.Context) error {
	if !e.round.PauseAfter {
		return nil
	}
	return e.pause(ctx, run.UserReview, e.reviewReason(), "")
}

// reviewReason returns what to review.
func (e *engine) reviewReason() string {
	return "review requested after " + e.round.Stage + " " + e.round.Set
}

// minGroupResults is the number of results with which a group continues when other members failed for good.
const minGroupResults = 2

// unsettled returns the first pass without a result, or nil if the step can continue. In a group, members that
// failed for good settle as failed once enough others have results.
func (e *engine) unsettled(all []*pass) *pass {
	var open *pass
	answered, gone := len(e.j.state.Settled), true
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
func (e *engine) pauseForFailure(ctx workflow.Context, p *pass) error {
	if p.failure == nil || e.control.Pause || e.j.state.Status == run.Paused {
		return nil
	}
	if p.stoppedAtBudget() {
		return e.pauseOverBudget(ctx, &run.Need{Role: p.role.Name, USD: p.share, Source: run.NeedReached})
	}
	if err := e.failLane(p.detail); err != nil && !p.cannotRun() && !p.blocked() {
		return err
	}
	failed := run.FailedPass{Step: p.step.Key, Member: p.member, Category: p.failure.Outcome}
	ev := run.RunPaused{Reason: run.PassFailed, Detail: p.detail, Failed: &failed}
	if p.cannotRun() {
		ev.Reason, ev.Detail = run.GateFailed, p.failure.Message
	} else if f := e.j.state.Failure; f != nil && f.Same(failed) && f.Starts+1 >= maxConsecutiveFailures && !p.blocked() {
		ev.Reason = run.ConsecutiveFailures
	}
	return e.j.emit(ctx, run.KindRunPaused, e.round.Stage, ev)
}

// cannotRun reports whether a command was not found or could not be executed: whether the work is right is unknown.
func (p *pass) cannotRun() bool {
	return p.step.Kind == pipeline.KindRun && p.failure != nil && p.failure.Outcome == run.CategorySpawnFailed
}

// maxConsecutiveFailures is the number of consecutive failures, in starts of one pass or in passes, after which
// the run pauses with its own reason.
const maxConsecutiveFailures = 3

// pauseAfterFailures pauses after consecutive failed passes, to not waste money.
func (e *engine) pauseAfterFailures(ctx workflow.Context) error {
	n := e.j.state.Passes.InRow
	if !e.active() || n < maxConsecutiveFailures || n%maxConsecutiveFailures != 0 {
		return nil
	}
	ev := run.RunPaused{Reason: run.ConsecutiveFailures, Detail: fmt.Sprintf("%d consecutive passes failed", n)}
	return e.j.emit(ctx, run.KindRunPaused, e.round.Stage, ev)
}

// passRef returns the pass that an event refers to.
func (p *pass) passRef() run.Pass {
	s, r := p.step, p.e.round
	return run.Pass{
		Step: s.Key, Number: s.Number, InRound: s.InRound, OfRound: max(len(r.Steps), s.InRound), Set: r.Set, Round: p.at.Round,
		Member: p.member, Fresh: s.Fresh, Item: p.e.itemName(),
		Role: p.role.Name, Gives: p.role.Gives, Order: s.Order, Title: p.e.inLane(s.LogTitle),
		Description: p.e.inLane(s.DescriptionOf(p.member, p.at.Round)),
		Dir:         p.evidenceDir(), Redo: p.e.j.state.Redo(), Files: p.composed.Files,
		References: p.composed.References,
	}
}

// evidenceDir returns the folder of a round's evidence. Files are named by role, so a second step of the same role
// in a round gets a subfolder.
func (p *pass) evidenceDir() string {
	dir := p.e.round.Dir
	if dir == "" || !p.e.repeats() {
		return ""
	}
	for _, s := range slices.Concat(p.e.round.Steps, p.e.round.Fresh)[:p.at.Step] {
		if slices.ContainsFunc(s.Roles, func(r contract.Role) bool { return r.Name == p.role.Name }) {
			return fmt.Sprintf("%s/step-%d", dir, p.at.Step+1)
		}
	}
	return dir
}

func (p *pass) title() string {
	return p.e.inLane(p.step.Key + " " + cmp.Or(p.member, p.role.Name))
}

// nextCallID returns the id of the next call. It changes only after a judged result or a redo.
func (p *pass) nextCallID() string {
	member, redo := cmp.Or(p.member, "-"), ""
	if l := p.e.in.Start.Lane; l != nil {
		member = strings.TrimSuffix(l.Key+"+"+p.member, "+")
	}
	s := p.e.j.state
	if n := s.Redo(); n > 0 {
		redo = fmt.Sprintf("r%d-", n)
	}
	return fmt.Sprintf("%s/g%d.%s.%d.%s.%s%d", p.e.callPrefix(), s.Generation, p.step.Key, p.at.Round, member, redo,
		s.Try(p.member))
}

// callPrefix returns the prefix of the run's call ids.
func (e *engine) callPrefix() string {
	if l := e.in.Start.Lane; l != nil {
		return l.Calls
	}
	if e.in.Start.Parent != nil || e.in.Start.Source != nil {
		return e.j.state.RunID // a follow-up makes new calls, and a replay's calls are its own
	}
	return e.j.state.ThreadID
}

// itemName is the name of the item of a lane; empty: the run is none.
func (e *engine) itemName() string {
	if l := e.in.Start.Lane; l != nil {
		return l.Name
	}
	return ""
}

// inLane adds the item to a text about a step.
func (e *engine) inLane(text string) string {
	if name := e.itemName(); name != "" {
		return text + " — " + name
	}
	return text
}

// dropCalls forgets the calls of passes.
func (e *engine) dropCalls(all []*pass) {
	e.calls = slices.DeleteFunc(slices.Clone(e.calls), func(c runningCall) bool { return slices.Contains(all, c.pass) })
}
