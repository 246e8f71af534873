package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// changeMean is a change of this code that an execution follows unless its history predates it.
const changeMean = "a call needs the mean of its role" // before: any rest of the budget

// warnBudget journals once that most of the budget is spent.
func (e *engine) warnBudget(ctx workflow.Context) error {
	s := e.j.state
	if s.Budget.WarnUSD <= 0 || s.Total() < s.Budget.WarnUSD || s.Warned {
		return nil
	}
	return e.j.emit(ctx, run.KindBudgetWarning, s.Phase, run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total()})
}

// budgetSpent reports whether the cap is reached.
func (e *engine) budgetSpent() bool {
	s := e.j.state
	return s.Budget.CapUSD > 0 && s.Total() >= s.Budget.CapUSD
}

// pauseOverBudget pauses the run before its next call. need: what the call needs; nil: the budget is spent.
func (e *engine) pauseOverBudget(ctx workflow.Context, need *run.Need) error {
	s := e.j.state
	ev := run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total(), Need: need}
	detail := fmt.Sprintf("the run has cost %.2f USD of a budget of %.2f USD", s.Total(), s.Budget.CapUSD)
	if need != nil {
		ev.Unknown = s.UnknownCalls()
		detail = ev.Exceeded()
	}
	if err := e.j.emit(ctx, run.KindBudgetExceeded, s.Phase, ev); err != nil {
		return err
	}
	return e.pause(ctx, run.BudgetThreshold, detail, "")
}

// gated reports whether calls of a step count against a budget.
func (e *engine) gated(s run.State, step pipeline.PlanStep) bool {
	return s.Budget.CapUSD > 0 && s.Status != run.Replaying && step.Kind != pipeline.KindRun
}

// withinBudget returns the first passes of a step whose calls the rest of the budget covers, each with its share. The
// others begin when these have settled. If the rest covers no call, it pauses the run.
func (e *engine) withinBudget(ctx workflow.Context, all []*pass) ([]*pass, error) {
	s := e.j.state
	if len(all) == 0 || !e.gated(s, all[0].step.PlanStep) {
		return all, nil
	}
	left, n := s.Remaining(), 0
	for _, p := range all {
		need := s.Needs(p.role.Name)
		if need.USD > left && follows(ctx, changeMean) {
			break
		}
		p.share, left, n = need.USD, run.Cents(max(0, left-need.USD)), n+1
	}
	if n == 0 {
		need := s.Needs(all[0].role.Name)
		return nil, e.pauseOverBudget(ctx, &need)
	}
	for _, p := range all[:n] {
		p.share = p.bounded(run.Cents(p.share + left/float64(n)))
	}
	return all[:n], nil
}

// bounded returns an amount, or the maximum of one call.
func (p *pass) bounded(usd float64) float64 {
	if most := p.e.j.state.Budget.PerPassUSD; most > 0 {
		return min(usd, most)
	}
	return usd
}

// covered reports whether the rest of the budget covers another attempt of a pass, beside the calls of the other
// members of its group. It sets the pass's share. Without it the step begins again when they have settled.
func (p *pass) covered(ctx workflow.Context) bool {
	s := p.e.j.state
	if !p.e.gated(s, p.step.PlanStep) {
		return true
	}
	left := s.Remaining()
	for _, other := range p.group {
		switch {
		case other == p || other.failure != nil:
		case other.result != nil:
			left -= other.result.Spend.USD // not settled yet
		default:
			left -= other.share
		}
	}
	if left = run.Cents(left); left > 0 && left >= s.Needs(p.role.Name).USD {
		p.share = p.bounded(left)
		return true
	}
	return !follows(ctx, changeMean)
}

// completes reports whether passes are all that a step has left.
func completes(all []*pass) bool { return all[0].member == "" || len(all) == len(all[0].group) }

// stoppedAtBudget reports whether a pass failed because its agent reached the amount that the run gave it.
func (p *pass) stoppedAtBudget() bool {
	return p.failure != nil && p.failure.Outcome == run.CategoryBudgetExceeded && p.failure.OverBudget && p.share > 0
}
