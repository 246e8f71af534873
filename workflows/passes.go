package workflows

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

// pass is one call of a role: a step by itself, or a member of a group.
type pass struct {
	e       *engine
	at      run.Place
	step    work.Step
	role    work.Role
	member  string  // empty outside groups
	group   []*pass // the members that are asked with it
	denied  bool    // a member that settled before them did not approve
	given   work.Given
	asked   work.ComposeResult
	began   string // when the first attempt of this start began
	tried   int    // attempts of this start
	limited bool   // the last one met an overloaded provider
	id      string // of the call that is out
	result  *work.PassResult
	failure *work.PassResult // the last one, when no attempt is left and the run cannot go on without
	detail  string
	review  string // what the run is to rest for in its next epoch: it is cut off with this pass
}

// passes does a step of kind role or together: compose, write the starts down, wait until they are on disk, call, settle. Members run at the
// same time and are settled in the order of the definition, whoever answered first.
func (e *engine) passes(ctx workflow.Context, at run.Place, s work.Step) error {
	all := e.members(at, s)
	for _, p := range all {
		err := p.compose(ctx)
		if isType(err, work.ErrDiskFull) {
			return e.pause(ctx, run.DiskFull, message(err), "")
		}
		if err != nil {
			return err
		}
		if may, err := p.permitted(ctx); err != nil || !may {
			return err
		}
	}
	defer func() { e.calls = nil }()
	if e.control.Pause {
		return nil // asked for while the prompts were composed: nothing is called any more
	}
	if err := e.attempts(ctx, all); err != nil {
		if kept := e.keepAnswers(ctx, at, all); kept != nil {
			return errors.Join(err, kept)
		}
		return err
	}
	return e.settlePasses(ctx, at, all)
}

// keepAnswers writes down what was answered and paid for before the step was cut off. A step that is through is not done again; a review that its set
// wants waits for the next epoch.
func (e *engine) keepAnswers(ctx workflow.Context, at run.Place, all []*pass) error {
	ctx, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	through := !slices.ContainsFunc(all, func(p *pass) bool { return p.result == nil }) && !all[0].mustAsk()
	endsSet := through && e.lastInRound(at) && e.round.Kind == "each"
	if endsSet && e.round.PauseAfter {
		all[len(all)-1].review = e.reviewed()
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

// members gives the passes of a step that have not settled.
func (e *engine) members(at run.Place, s work.Step) []*pass {
	if s.Kind != "together" {
		return []*pass{{e: e, at: at, step: s, role: s.Roles[0], given: e.given(s)}}
	}
	var all []*pass
	for _, r := range s.Roles {
		if !slices.Contains(e.j.state.Settled, r.Name) {
			all = append(all, &pass{e: e, at: at, step: s, role: r, member: r.Name, given: e.given(s)})
		}
	}
	given := e.j.state.Judgement()
	for _, p := range all {
		p.group, p.denied = all, len(e.j.state.Settled) > 0 && given.Approved != nil && !*given.Approved
	}
	return all
}

// given is what a step is given of the state: the artifact, notes, pictures, and the replies of the steps it sees.
func (e *engine) given(s work.Step) work.Given {
	st := e.j.state
	g := work.Given{Artifact: st.Artifact, Notes: st.Notes, Pictures: st.Pictures, Feedback: st.Feedback, Waiver: st.Markers.Waiver, Waivers: st.Waivers}
	if st.Task != st.Pipeline {
		g.Task = st.Task
	}
	if w := e.in.Start.Workspace; w != nil {
		g.Base = w.Base
	}
	for _, r := range st.Replies {
		if (s.Sees != "" && r.Step == s.Sees) || (s.SeesStage != "" && r.Phase == s.SeesStage) {
			g.Replies = append(g.Replies, r)
		}
	}
	if s.SeesStage != "" && len(g.Replies) > 1 {
		g.Replies = g.Replies[len(g.Replies)-1:]
	}
	return g
}

func (p *pass) ref() work.StepRef {
	st := p.e.in.Start
	return work.StepRef{Plan: st.Plan, Inputs: st.Inputs, Stage: p.at.Stage, Round: p.at.Round, Step: p.at.Step, Member: p.member}
}

func (p *pass) compose(ctx workflow.Context) error {
	in := work.ComposeInput{Store: p.e.in.Target.Store, At: p.ref(), Given: p.given}
	if err := p.e.local(ctx, work.Compose, in, &p.asked); err != nil {
		return fmt.Errorf("compose the prompt of %s: %w", p.title(), err)
	}
	return nil
}

// attempts runs every pass of a step to its end, at the same time. All starts are on disk before the first call.
func (e *engine) attempts(ctx workflow.Context, all []*pass) error {
	for _, p := range all {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	if err := e.j.flush(ctx); err != nil {
		return err
	}
	if e.j.state.Status == run.Paused {
		return nil // the disk was full: nothing is called any more
	}
	e.show(ctx)
	errs := make([]error, len(all))
	wg := workflow.NewWaitGroup(ctx)
	for i, p := range all {
		wg.Add(1)
		workflow.GoNamed(ctx, p.title(), func(ctx workflow.Context) {
			defer wg.Done()
			calls, cancel := workflow.WithCancel(ctx)
			defer cancel()
			e.calls = append(e.calls, cancel)
			if e.control.Now { // asked for before the call was there to be ended
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

// settlePasses writes down what the passes of a step came to. A step with a pass that could not settle is done again after the pause.
func (e *engine) settlePasses(ctx workflow.Context, at run.Place, all []*pass) error {
	open := e.unsettled(all)
	gated := open == nil && all[0].mustAsk()
	for i, p := range all {
		if p.result == nil {
			continue
		}
		last := open == nil && i == len(all)-1 && !gated
		if err := p.settle(ctx, last); err != nil {
			return err
		}
	}
	switch {
	case open != nil:
		return e.giveUp(ctx, open)
	case gated:
		return e.gate(ctx, at, all[0])
	}
	if err := e.endOfRound(ctx, at); err != nil {
		return err
	}
	return e.floor(ctx)
}

// endOfRound ends the set that a step was the last of.
func (e *engine) endOfRound(ctx workflow.Context, at run.Place) error {
	if e.lastInRound(at) && e.round.Kind == "each" {
		return e.endSet(ctx)
	}
	return nil
}

// endSet names the place at the end of a set, and rests where the definition wants a review.
func (e *engine) endSet(ctx workflow.Context) error {
	if e.round.Checkpoint != "" {
		if err := e.checkpoint(ctx, e.round.Checkpoint); err != nil {
			return err
		}
	}
	return e.review(ctx)
}

// review rests for a person to look, where the definition says so.
func (e *engine) review(ctx workflow.Context) error {
	if !e.round.PauseAfter {
		return nil
	}
	return e.pause(ctx, run.UserReview, e.reviewed(), "")
}

// reviewed is what a review is about, for people.
func (e *engine) reviewed() string {
	return "a review is wanted after " + e.round.Stage + " " + e.round.Set
}

// enoughMembers is with how many reports a group goes on when others have failed for good.
const enoughMembers = 2

// unsettled gives the first pass without a result, if the step cannot go on without it. In a group, members that failed for good are settled
// as failed once enough others have answered.
func (e *engine) unsettled(all []*pass) *pass {
	var open *pass
	answered, gone := len(e.j.state.Settled), true
	for _, p := range all {
		switch {
		case p.result != nil:
			answered++
		case open == nil:
			open = p
		}
		gone = gone && (p.result != nil || p.failure != nil)
	}
	if open == nil || open.member == "" || !gone || answered < enoughMembers {
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

// giveUp pauses the run because of a pass, unless a person already asked for the pause. The third start in which the same pass fails has a
// reason of its own.
func (e *engine) giveUp(ctx workflow.Context, p *pass) error {
	if p.failure == nil || e.control.Pause || e.j.state.Status == run.Paused {
		return nil
	}
	failed := run.FailedPass{Step: p.step.Key, Member: p.member, Category: p.failure.Outcome}
	ev := run.RunPaused{Reason: run.PassFailed, Detail: p.detail, Failed: &failed}
	if f := e.j.state.Failure; f != nil && f.Same(failed) && f.Starts+1 >= failuresInRow {
		ev.Reason = run.ConsecutiveFailures
	}
	return e.j.emit(ctx, run.KindRunPaused, e.round.Stage, ev)
}

// failuresInRow is after how many failures on end a run pauses with a reason of its own: starts of one pass, or passes.
const failuresInRow = 3

// floor pauses when passes were given up one after another: going on would spend money on nothing.
func (e *engine) floor(ctx workflow.Context) error {
	n := e.j.state.Passes.InRow
	if !e.live() || n < failuresInRow || n%failuresInRow != 0 {
		return nil
	}
	ev := run.RunPaused{Reason: run.ConsecutiveFailures, Detail: fmt.Sprintf("%d passes in a row were given up", n)}
	return e.j.emit(ctx, run.KindRunPaused, e.round.Stage, ev)
}

// about says which pass events speak of.
func (p *pass) about() run.Pass {
	s, r := p.step, p.e.round
	return run.Pass{
		Step: s.Key, Number: s.Number, InRound: s.InRound, OfRound: len(r.Steps), Set: r.Set, Round: p.at.Round, Member: p.member,
		Role: p.role.Name, Gives: p.role.Gives, Order: s.Order, Title: s.LogTitle, Description: s.DescriptionOf(p.member, p.at.Round),
		Dir: p.dir(), Redo: p.e.j.state.Redo(), Files: p.asked.Files, References: p.asked.References,
	}
}

// dir is the folder of a round's evidence. Files in it are named by who was asked: what the same role is asked later in the round lies below it.
func (p *pass) dir() string {
	if !p.e.repeats() || p.e.round.Dir == "" {
		return ""
	}
	for _, s := range p.e.round.Steps[:p.at.Step] {
		if slices.ContainsFunc(s.Roles, func(r work.Role) bool { return r.Name == p.role.Name }) {
			return fmt.Sprintf("%s/step-%d", p.e.round.Dir, p.at.Step+1)
		}
	}
	return p.e.round.Dir
}

func (p *pass) title() string {
	if p.member != "" {
		return p.step.Key + " " + p.member
	}
	return p.step.Key + " " + p.role.Name
}

// nextCall is the id of the next call: it changes only after a judged answer, and where the pass is done again.
func (p *pass) nextCall() string {
	member, redo := p.member, ""
	if member == "" {
		member = "-"
	}
	s := p.e.j.state
	if n := s.Redo(); n > 0 {
		redo = fmt.Sprintf("r%d-", n)
	}
	return fmt.Sprintf("%s/g%d.%s.%d.%s.%s%d", p.e.callRoot(), s.Generation, p.step.Key, p.at.Round, member, redo, s.Try(p.member))
}

// callRoot is what the ids of a run's calls begin with.
func (e *engine) callRoot() string {
	if e.in.Start.Parent != nil || e.in.Start.Source != nil {
		return e.j.state.RunID // a follow-up asks anew, and what a replay takes from the record is its own from then on
	}
	return e.j.state.ThreadID
}
