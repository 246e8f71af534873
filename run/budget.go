package run

import (
	"fmt"
	"slices"
)

// Mean sums the settled calls of a role whose cost is known.
type Mean struct {
	Role  string  `json:"role"`
	Calls int     `json:"calls"`
	USD   float64 `json:"usd"`
}

// keptMeans bounds the roles of a state.
const keptMeans = 64

// learnCost counts a settled call in the mean of its role. Answers that were paid for elsewhere, and amounts that are
// unknown, teach nothing.
func (f *folder) learnCost(p *PassEnd) {
	c := p.Spend
	if p.Role == "" || c.Known == CostUnknown || c.Known == "" && c.USD == 0 {
		return
	}
	f.Means = list(f, f.Means)
	at := slices.IndexFunc(f.Means, func(m Mean) bool { return m.Role == p.Role })
	if at < 0 {
		at = len(f.Means)
		f.Means = append(f.Means, Mean{Role: p.Role})
	}
	f.Means[at].Calls++
	f.Means[at].USD = Cents(f.Means[at].USD + c.USD)
	f.Means = newest(f.Means, keptMeans)
}

// Sources of what a call needs.
const (
	NeedMean    = "mean"     // of the settled calls of its role
	NeedPerPass = "per_pass" // budget.per_pass.usd: no call of the role has settled
	NeedReached = "reached"  // the agent stopped at the amount that it was given
)

// Need is what the next call of a role needs of the budget.
type Need struct {
	Role   string  `json:"role"`
	USD    float64 `json:"usd"`
	Source string  `json:"source,omitempty"` // empty: nothing is known
}

// Needs returns what the next call of a role needs of the budget.
func (s State) Needs(role string) Need {
	for _, m := range s.Means {
		if m.Role == role {
			return Need{Role: role, USD: Cents(m.USD / float64(m.Calls)), Source: NeedMean}
		}
	}
	if s.Budget.PerPassUSD > 0 {
		return Need{Role: role, USD: s.Budget.PerPassUSD, Source: NeedPerPass}
	}
	return Need{Role: role}
}

// Text describes the need: the mean of role writer is $1.50.
func (n Need) Text() string {
	switch n.Source {
	case NeedPerPass:
		return fmt.Sprintf("budget.per_pass.usd is $%.2f for role %s", n.USD, n.Role)
	case NeedReached:
		return fmt.Sprintf("the agent of role %s stopped at its maximum of $%.2f", n.Role, n.USD)
	}
	return fmt.Sprintf("the mean of role %s is $%.2f", n.Role, n.USD)
}

// Remaining is the rest of the budget in USD; 0 if there is none, or no budget.
func (s State) Remaining() float64 { return Cents(max(0, s.Budget.CapUSD-s.Total())) }

// BudgetShort reports whether the rest of the budget does not cover the call for which the run paused.
func (s State) BudgetShort() bool {
	switch n := s.Need; {
	case s.Budget.CapUSD <= 0:
		return false
	case s.Total() >= s.Budget.CapUSD:
		return true
	default:
		return n != nil && n.Source != NeedReached && s.Remaining() < n.USD
	}
}

// BudgetWords describes the rest of the budget: $9.00 of $10.00 are spent; the mean of role writer is $1.50.
func (s State) BudgetWords() string {
	text := fmt.Sprintf("%s of $%.2f are spent", s.CostText(), s.Budget.CapUSD)
	if s.Need != nil {
		text += "; " + s.Need.Text()
	}
	return text
}
