package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// warnBudget journals once that most of the budget is spent.
func (e *engine) warnBudget(ctx workflow.Context) error {
	s := e.j.state
	if s.Budget.WarnUSD <= 0 || s.Total() < s.Budget.WarnUSD || s.Warned {
		return nil
	}
	return e.j.emit(ctx, run.KindBudgetWarning, s.Phase, run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total()})
}

// budgetSpent reports whether a budget is spent.
func (e *engine) budgetSpent(ctx workflow.Context) bool {
	_, spent := e.j.state.SpentBudget(run.Time(workflow.Now(ctx)))
	return spent
}

// pauseOverBudget pauses the run before its next call. need: what the call needs; nil: a budget is spent.
func (e *engine) pauseOverBudget(ctx workflow.Context, need *run.Need) error {
	s := e.j.state
	ev := run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total(), Need: need}
	detail := fmt.Sprintf("the run has cost %.2f USD of a budget of %.2f USD", s.Total(), s.Budget.CapUSD)
	switch use, _ := s.SpentBudget(run.Time(workflow.Now(ctx))); {
	case need != nil:
		ev.Unknown = s.UnknownCalls()
		if need.OfTokens {
			ev.Rest = s.RemainingTokens()
		}
		detail = ev.Exceeded()
	case use.Name == run.BudgetDeadline:
		ev.Spent = "the " + use.Text
	case use.Name != "" && use.Name != run.BudgetUSD:
		ev.Spent = use.Text + " are used"
	}
	if ev.Spent != "" {
		detail = ev.Spent
	}
	if err := e.j.emit(ctx, run.KindBudgetExceeded, s.Phase, ev); err != nil {
		return err
	}
	return e.pause(ctx, run.BudgetThreshold, detail, "")
}

// gated reports whether calls of a step count against a budget.
func (e *engine) gated(s run.State, step pipeline.PlanStep) bool {
	b := s.Budget
	return (b.CapUSD > 0 || b.Tokens > 0 || b.Calls > 0 || b.PerPassUSD > 0) && s.Status != run.Replaying &&
		step.Kind != pipeline.KindRun
}

// rest is what remains of the budgets.
type rest struct {
	budget run.Budget
	usd    float64
	tokens int64
	calls  int
}

func restOf(s run.State) rest {
	return rest{budget: s.Budget, usd: s.Remaining(), tokens: s.RemainingTokens(), calls: s.Budget.Calls - s.Used.Calls}
}

// covers reports whether the rest covers a call; need.OfTokens is set if only the tokens do not suffice.
func (r rest) covers(need *run.Need) bool {
	if r.budget.CapUSD > 0 && need.USD > r.usd {
		return false
	}
	need.OfTokens = r.budget.Tokens > 0 && need.Tokens > r.tokens
	return !need.OfTokens && (r.budget.Calls == 0 || r.calls > 0)
}

// take takes what a call needs off the rest.
func (r *rest) take(usd float64, tokens int64) {
	r.usd, r.tokens, r.calls = run.Cents(max(0, r.usd-usd)), max(0, r.tokens-tokens), r.calls-1
}

// withinBudget returns the first passes of a step whose calls the rest of the budget covers, each with its share. The
// others begin when these have settled. If the rest covers no call, it pauses the run.
func (e *engine) withinBudget(ctx workflow.Context, all []*pass) ([]*pass, error) {
	s := e.j.state
	if len(all) == 0 || !e.gated(s, all[0].step.PlanStep) {
		return all, nil
	}
	left, n := restOf(s), 0
	for _, p := range all {
		need := s.Needs(p.role.Name)
		if !left.covers(&need) {
			break
		}
		p.share, p.tokens, n = need.USD, need.Tokens, n+1
		left.take(need.USD, need.Tokens)
	}
	if n == 0 {
		need := s.Needs(all[0].role.Name)
		left.covers(&need)
		return nil, e.pauseOverBudget(ctx, &need)
	}
	for _, p := range all[:n] {
		p.share = p.bounded(run.Cents(p.share + left.usd/float64(n)))
	}
	return all[:n], nil
}

// bounded returns a share of the budget, or the maximum of one call; 0: there is no limit.
func (p *pass) bounded(usd float64) float64 {
	switch b := p.e.j.state.Budget; {
	case b.CapUSD == 0:
		return b.PerPassUSD
	case b.PerPassUSD > 0:
		return min(usd, b.PerPassUSD)
	}
	return usd
}

// covered reports whether the rest of the budget covers another attempt of a pass, beside the calls of the other
// members of its group. It sets the pass's share. Without it the step begins again when they have settled.
func (p *pass) covered(ctx workflow.Context) bool {
	s := p.e.j.state
	if s.Status != run.Replaying && p.e.budgetSpent(ctx) {
		return false
	}
	if !p.e.gated(s, p.step.PlanStep) {
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

// completes reports whether passes are all that a step has left.
func completes(all []*pass) bool { return all[0].member == "" || len(all) == len(all[0].group) }

// stoppedAtBudget reports whether a pass failed because its agent reached the amount that the run gave it.
func (p *pass) stoppedAtBudget() bool {
	return p.failure != nil && p.failure.Outcome == run.CategoryBudgetExceeded && p.failure.OverBudget && p.share > 0
}
