package workflows

import (
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// validateBudget requires budgets that are not spent.
func (c *control) validateBudget(m contract.Message) error {
	s := c.e.j.state
	switch at, err := time.Parse(time.RFC3339, m.Deadline); {
	case !run.ValidBudget(m.USD):
		return refuse("a budget of %g USD is not a number from 0 to %.0f", m.USD, run.MaxBudgetUSD)
	case m.USD < 0 || m.USD > 0 && m.USD < s.Total() || m.USD == 0 && m.BudgetLimits == (contract.BudgetLimits{}):
		return refuse("a budget of %.2f USD is below the current cost (%.2f)", m.USD, s.Total())
	case m.Deadline != "" && err != nil:
		return refuse("the deadline %q is not a time: write it as in 2026-11-25T18:00:00Z", m.Deadline)
	case m.Tokens < 0 || m.Calls < 0 || !(m.Hours >= 0):
		return refuse("a budget is negative: send numbers above 0")
	case m.Deadline != "" && run.Time(at) <= s.TS:
		return refuse("the deadline %s has passed", m.Deadline)
	}
	next := s
	next.Budget = run.Budget{Tokens: m.Tokens, Calls: m.Calls, Hours: m.Hours}
	if use, spent := next.SpentBudget(""); spent {
		return refuse("the budget would be spent: %s", use.Text)
	}
	return nil
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
