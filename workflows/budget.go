package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// warnBudget journals once that most of the budget is spent.
func (x *execution) warnBudget(ctx workflow.Context) {
	s := x.state()
	if s.Budget.WarnUSD <= 0 || s.Total() < s.Budget.WarnUSD || s.Warned {
		return
	}
	x.journal.emit(ctx, run.KindBudgetWarning, s.Phase, run.BudgetEvent{Budget: s.Budget, TotalUSD: s.Total()})
}

// budgetSpent reports whether a budget is spent.
func (x *execution) budgetSpent(ctx workflow.Context) bool {
	_, spent := x.state().SpentBudget(run.Time(workflow.Now(ctx)))
	return spent
}

// pauseOverBudget pauses the run before its next call. need: what the call needs; nil: a budget is spent.
func (x *execution) pauseOverBudget(ctx workflow.Context, need *run.Need) {
	s := x.state()
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
	x.journal.emit(ctx, run.KindBudgetExceeded, s.Phase, ev)
	x.pause(ctx, run.BudgetThreshold, detail, "")
}

// gated reports whether calls of a step count against a budget.
func (x *execution) gated(s run.State, step pipeline.PlanStep) bool {
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

// changedBudget returns a budget with the changes of a message.
func changedBudget(m contract.Message, b run.Budget, warnShare float64) run.Budget {
	if m.USD > 0 {
		b.CapUSD, b.WarnUSD = m.USD, run.Cents(m.USD*warnShare)
	}
	if m.Tokens > 0 {
		b.Tokens = m.Tokens
	}
	if m.Calls > 0 {
		b.Calls = m.Calls
	}
	if m.Hours > 0 {
		b.Hours = m.Hours
	}
	if m.Deadline != "" {
		b.Deadline = m.Deadline
	}
	return b
}

// budgetText lists the budgets that a message sets.
func budgetText(m contract.Message) string {
	var all []string
	if m.USD > 0 {
		all = append(all, fmt.Sprintf("%.2f USD", m.USD))
	}
	if m.Tokens > 0 {
		all = append(all, fmt.Sprintf("%d tokens", m.Tokens))
	}
	if m.Calls > 0 {
		all = append(all, run.Plural(m.Calls, "call"))
	}
	if m.Hours > 0 {
		all = append(all, fmt.Sprintf("%g hours", m.Hours))
	}
	if m.Deadline != "" {
		all = append(all, "until "+m.Deadline)
	}
	return strings.Join(all, ", ")
}

// limitsOf are the budgets besides that in USD.
func limitsOf(b run.Budget) contract.BudgetLimits {
	return contract.BudgetLimits{Tokens: b.Tokens, Calls: b.Calls, Hours: b.Hours, Deadline: b.Deadline}
}

func (x *execution) budgetWarnShare() float64 {
	b := x.in.Start.Budget
	if b.CapUSD <= 0 {
		return 0.8
	}
	return b.WarnUSD / b.CapUSD
}
