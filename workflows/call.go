package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func (p *call) timeout() time.Duration { return p.role.Limits.TimeoutFor(p.attempt) }

func (p *call) input() contract.PassInput {
	st := p.state()
	again := st.Again
	if again == "" && st.Feedback != "" && st.Decided != nil {
		again = st.Decided.ID
	}
	at, given := p.stepRef(), &p.context
	if p.composed.Prompt.Raw == "" {
		given = nil
	}
	from, generations := p.recordedRun()
	if p.replayPolicy() == run.RequireHuman && p.replay.granted((permission{p}).key()) != run.ActionApply {
		from = ""
	}
	return contract.PassInput{
		Steering: p.interrupting(), Context: given, SupersededSeen: st.Late, Scope: p.scope(),
		RecordedRun: from, Generations: generations, RecordedOnly: permission{p}.recordedOnly(),
		DecisionID: again, Tree: p.workspace(), Slot: p.slot(), Before: p.before(), RunID: p.in.Target.RunID, Store: p.in.Target.Store,
		Call: p.callID, Attempt: p.attempt,
		At:      at,
		Heading: p.heading(), Prompt: p.composed.Prompt,
		Artifact: p.context.Artifact, Notes: p.context.Notes, Pictures: p.context.Pictures,
		Item:    p.context.Item,
		Session: p.session(), BudgetUSD: p.share, Now: p.inbox.now(),
		TimeoutMS: p.timeout().Milliseconds(), HeartbeatMS: p.in.Options.HeartbeatMS,
	}
}

// session returns the session that the call continues, if its role continues its own.
func (p *call) session() *run.KeptSession {
	if p.member != "" {
		return nil
	}
	return p.state().SessionOf(p.round.Stage, p.role.Name)
}

// heading returns the heading of an entry in a notes file. It also makes the entry unique.
func (p *call) heading() string {
	if p.step.Number == 0 {
		return fmt.Sprintf("## %s, round %d (%s)", p.round.Title, p.at.Round, p.role.Name)
	}
	return p.passRef().NoteHeading()
}

// bounded returns a share of the budget, or the maximum of one call; 0: there is no limit.
func (p *call) bounded(usd float64) float64 {
	switch b := p.state().Budget; {
	case b.CapUSD == 0:
		return b.PerPassUSD
	case b.PerPassUSD > 0:
		return min(usd, b.PerPassUSD)
	}
	return usd
}

// covered reports whether the rest of the budget covers another attempt of a pass, beside the calls of the other
// members of its group. It sets the pass's share. Without it the step begins again when they have settled.
func (p *call) covered(ctx workflow.Context) bool {
	s := p.state()
	if s.Status != run.Replaying && p.budgetSpent(ctx) {
		return false
	}
	if !p.gated(s, p.step.PlanStep) {
		return true
	}
	left := restOf(s)
	for _, other := range p.group {
		switch {
		case other == p || other.failure != nil:
		case other.result != nil: // not settled yet
			left.take(other.result.Spend.USD, other.result.Spend.Tokens.Sum())
		default:
			left.take(other.share, other.tokens)
		}
	}
	need := s.Needs(p.role.Name)
	if left.covers(&need) && (left.budget.CapUSD == 0 || left.usd > 0) {
		p.share = p.bounded(left.usd)
		return true
	}
	return false
}

// stoppedAtBudget reports whether a pass failed because its agent reached the amount that the run gave it.
func (p *call) stoppedAtBudget() bool {
	return p.failure != nil && p.failure.Outcome == run.CategoryBudgetExceeded && p.failure.OverBudget && p.share > 0
}

// before returns the output of a command in the workspace, for one that repeats it in a fresh folder.
func (p *call) before() *run.Blob {
	if p.step.Fresh == "" {
		return nil
	}
	return p.state().ReplyOf(p.step.Fresh)
}

// A limit of a provider suspends the run. The step unwinds as for a pause: answered members of a group are settled, and
// run.limited contains the calls that wait. The main loop then waits in waitForLimit, and the step begins again. No
// step waits for a limit.

// agent returns the agent that is asked: that of the role, or the fallback after usage limits.
func (p *call) agent() contract.FallbackAgent {
	if p.fallback == 0 {
		return contract.FallbackAgent{Agent: p.role.Agent, Program: p.role.Program}
	}
	return p.role.Fallback[p.fallback-1]
}

// call is what is asked of one role: a single step, or a member of a group.
type call struct {
	*step
	role      contract.Role
	member    string // empty outside groups
	denied    bool   // a member that settled earlier did not approve
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
	failure *contract.PassResult
	detail  string
}

// answered reports whether the call has a result that can settle.
func (p *call) answered() bool { return p.result != nil }

// suspended is the wait for a limit that the run journaled for the call.
func (p *call) suspended() run.LimitedCall { return p.state().Limited.Call(p.member) }

// reserve sets the share of the budget that the call needs.
func (p *call) reserve(need run.Need) { p.share, p.tokens = need.USD, need.Tokens }

// enlarge adds what is left to the share, up to the maximum of one call.
func (p *call) enlarge(usd float64) { p.share = p.bounded(run.Cents(p.share + usd)) }

func (p *call) stepRef() contract.StepRef {
	return contract.StepRef{
		PlanUse: useOf(p.plan), Stage: p.at.Stage, Round: p.at.Round, Step: p.at.Step,
		Member: p.member, Agent: p.agent().Name,
	}
}

func (p *call) compose(ctx workflow.Context) error {
	p.addInstructions()
	p.context.Outputs = nil
	for _, o := range p.state().Outputs {
		if slices.Contains(p.role.Uses, o.ID) && !o.Skipped {
			p.context.Outputs = append(p.context.Outputs, o)
		}
	}
	t := p.in.Target
	in := contract.ComposeInput{RunID: t.RunID, Store: t.Store, At: p.stepRef(), Context: p.context}
	if err := p.host.readStore(ctx, contract.Compose, in, &p.composed); err != nil {
		return fmt.Errorf("compose the prompt of %s: %w", p.title(), err)
	}
	return nil
}

// cannotRun reports whether a command was not found or could not be executed: whether the work is right is unknown.
func (p *call) cannotRun() bool {
	return p.step.Kind == pipeline.KindRun && p.failure != nil && p.failure.Outcome == run.CategorySpawnFailed
}

// passRef returns the pass that an event refers to.
func (p *call) passRef() run.Pass {
	s, r := p.step.Step, p.round.Round
	return run.Pass{
		Step: s.Key, Number: s.Number, InRound: s.InRound, OfRound: max(len(r.Steps), s.InRound), Set: r.Set, Round: p.at.Round,
		Member: p.member, Fresh: s.Fresh, Item: p.itemName(),
		Role: p.role.Name, Gives: p.role.Gives, Order: s.Order, Title: p.inLane(s.LogTitle),
		Description: p.inLane(s.DescriptionOf(p.member, p.at.Round)),
		Dir:         p.evidenceDir(), Redo: p.state().Redo(), Files: p.composed.Files,
		References: p.composed.References,
	}
}

// evidenceDir returns the folder of a round's evidence. Files are named by role, so a second step of the same role
// in a round gets a subfolder.
func (p *call) evidenceDir() string {
	dir := p.round.Dir
	if dir == "" || !p.round.repeats() {
		return ""
	}
	for _, s := range slices.Concat(p.round.Steps, p.round.Fresh)[:p.at.Step] {
		if slices.ContainsFunc(s.Roles, func(r contract.Role) bool { return r.Name == p.role.Name }) {
			return fmt.Sprintf("%s/step-%d", dir, p.at.Step+1)
		}
	}
	return dir
}

func (p *call) title() string {
	return p.inLane(p.step.Key + " " + cmp.Or(p.member, p.role.Name))
}

// nextCallID returns the id of the next call. It changes only after a judged result or a redo.
func (p *call) nextCallID() string {
	member, redo := cmp.Or(p.member, "-"), ""
	if l := p.in.Start.Lane; l != nil {
		member = strings.TrimSuffix(l.Key+"+"+p.member, "+")
	}
	s := p.state()
	if n := s.Redo(); n > 0 {
		redo = fmt.Sprintf("r%d-", n)
	}
	return fmt.Sprintf("%s/g%d.%s.%d.%s.%s%d", p.callPrefix(), s.Generation, p.step.Key, p.at.Round, member, redo,
		s.Try(p.member))
}

// needsDecision reports whether a step with a gate failed its command or a check of its reply, or returned no
// verdict. (A group without a verdict continues and does not approve the work.)
func (p *call) needsDecision() bool {
	if p.member == "" && p.result != nil && p.result.Unjudged {
		return true
	}
	if p.step.IfFailing != "ask" || p.result == nil {
		return false
	}
	return p.result.Outcome != run.CategoryOK || p.result.Value == "failed" ||
		p.step.Kind == pipeline.KindRole && !p.result.Validation.Passed
}

// effectClass returns the class of a step's external effect, as declared or by its kind.
func (p *call) effectClass() string { return cmp.Or(p.step.Effect, p.passRef().EffectClass()) }

// acts reports whether the step declares an external action. It is never executed a second time, or in a replay for the
// first time, without an operator.
func (p *call) acts() bool { return p.step.Effect == run.EffectExternal }

// interruptible reports whether an instruction for a role may interrupt the call of the pass. A command has no prompt.
func (p *call) interruptible(role string) bool {
	return p.step.Kind != pipeline.KindRun && p.result == nil && (role == "" || role == p.role.Name)
}

// overtaken reports whether an instruction that interrupts the call arrived after its prompt was composed.
func (p *call) overtaken() bool {
	s := p.state()
	missing := func(i run.Instruction) bool {
		return i.Now && !slices.ContainsFunc(p.steering, func(in run.Instruction) bool { return in.ID == i.ID })
	}
	return s.Status == run.Running && p.interruptible("") &&
		slices.ContainsFunc(s.InstructionsFor(p.role.Name, p.callID), missing)
}

// interrupting lists the instructions in the prompt for which a call was interrupted: its session continues with them.
func (p *call) interrupting() []string {
	var all []string
	for _, i := range p.steering {
		if i.Now {
			all = append(all, i.Text)
		}
	}
	return all
}

// addInstructions adds the instructions of operators to a prompt before it is composed. A command has none.
func (p *call) addInstructions() {
	if p.step.Kind == pipeline.KindRun {
		return
	}
	p.steering, p.context.Steering, p.context.Recorded = nil, nil, nil
	if p.state().Status == run.Replaying {
		p.context.Recorded = p.in.Start.Instructions
		return
	}
	p.steering = p.state().InstructionsFor(p.role.Name, p.nextCallID())
	for _, i := range p.steering {
		p.context.Steering = append(p.context.Steering, i.Text)
	}
}

// approved reports whether a pass of a role with verdicts approves the work; nil: its role returns none. A member
// of a group approves only if no other member disapproves.
func (p *call) approved() *bool {
	if !p.role.HasVerdict {
		return nil
	}
	yes := !p.denied && !slices.ContainsFunc(p.group, (*call).disapproves) && !p.disapproves()
	return &yes
}

// disapproves reports whether a pass has a result that should approve the work and does not.
func (p *call) disapproves() bool {
	return p.role.HasVerdict && p.result != nil &&
		(p.result.Outcome != run.CategoryOK || !pipeline.Approves(p.role.Approval, p.result.Verdict))
}

// slot names the folder that the call works in. Lanes have their own, and so have the members of a group, which work at
// the same time.
func (p *call) slot() string {
	var names []string
	if p.step.Fresh != "" {
		return contract.FreshSlot
	}
	if l := p.in.Start.Lane; l != nil {
		names = append(names, fmt.Sprintf("lane-%d", l.Slot))
	}
	if i := slices.Index(p.group, p); i > 0 {
		names = append(names, fmt.Sprintf("member-%d", i))
	}
	return strings.Join(names, "-")
}

// scope returns the declared scope that the changes of a pass are compared with, or nil.
func (p *call) scope() *run.Scope {
	if p.role.Gives != pipeline.GivesChanges {
		return nil
	}
	return p.state().Scope
}
