package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Mean sums the settled calls of a role whose cost is known.
type Mean struct {
	Role  string  `json:"role"`
	Calls int     `json:"calls"`
	USD   float64 `json:"usd"`

	Tokens int64 `json:"tokens,omitempty"`
}

// keptMeans bounds the roles of a state.
const keptMeans = 64

// learnCost counts a settled call in the mean of its role. Answers that were paid for elsewhere, and unknown amounts,
// are not counted.
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
	f.Means[at].USD, f.Means[at].Tokens = Cents(f.Means[at].USD+c.USD), f.Means[at].Tokens+c.Tokens.Sum()
	f.Means = newest(f.Means, keptMeans)
}

// Sources of what a call needs.
const (
	NeedMean    = "mean"     // of the settled calls of its role
	NeedPerPass = "per_pass" // budget.per_pass: no call of the role has settled
	NeedReached = "reached"  // the agent stopped at the amount that it was given
)

// Need is what the next call of a role needs of the budget.
type Need struct {
	Role   string  `json:"role"`
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens,omitempty"`
	Source string  `json:"source,omitempty"` // empty: nothing is known
	// the tokens do not suffice, and USD does
	OfTokens bool `json:"of_tokens,omitempty"`
}

// Needs returns what the next call of a role needs of the budget.
func (s State) Needs(role string) Need {
	for _, m := range s.Means {
		if m.Role == role {
			return Need{
				Role: role, USD: Cents(m.USD / float64(m.Calls)), Tokens: m.Tokens / int64(m.Calls), Source: NeedMean,
			}
		}
	}
	if b := s.Budget; b.PerPassUSD > 0 || b.PerPassTokens > 0 {
		return Need{Role: role, USD: b.PerPassUSD, Tokens: b.PerPassTokens, Source: NeedPerPass}
	}
	return Need{Role: role}
}

// Text describes the need: the mean of role writer is $1.50.
func (n Need) Text() string {
	amount, key := fmt.Sprintf("$%.2f", n.USD), "usd"
	if n.OfTokens {
		amount, key = fmt.Sprintf("%d tokens", n.Tokens), "tokens"
	}
	switch n.Source {
	case NeedPerPass:
		return fmt.Sprintf("budget.per_pass.%s is %s for role %s", key, amount, n.Role)
	case NeedReached:
		return fmt.Sprintf("the agent of role %s stopped at its maximum of %s", n.Role, amount)
	}
	return fmt.Sprintf("the mean of role %s is %s", n.Role, amount)
}

// Remaining is the rest of the budget in USD; 0 if there is none, or no budget.
func (s State) Remaining() float64 { return Cents(max(0, s.Budget.CapUSD-s.Total())) }

// RemainingTokens is the rest of the budget in tokens; 0 if there is none, or no budget.
func (s State) RemainingTokens() int64 { return max(0, s.Budget.Tokens-s.Used.Tokens) }

// Used is what a run has used of its budgets.
type Used struct {
	Calls  int   `json:"calls"` // of agents
	Tokens int64 `json:"tokens"`
	LiveMS int64 `json:"live_ms"` // of work up to the last event, without pauses, questions and interruptions
}

// use counts one call. Commands and answers that were paid for elsewhere are none.
func (u *Used) use(c Spend) {
	if c.Asked() {
		u.Calls, u.Tokens = u.Calls+1, u.Tokens+c.Tokens.Sum()
	}
}

// liveUntil is the time of work since TS in milliseconds.
func (s *State) liveUntil(ts string) int64 {
	if s.Status != Running && s.Status != Replaying || s.TS == "" {
		return 0
	}
	from, err1 := time.Parse(TimeFormat, s.TS)
	to, err2 := time.Parse(TimeFormat, ts)
	if err1 != nil || err2 != nil {
		return 0
	}
	return max(0, to.Sub(from).Milliseconds())
}

// Names of budgets.
const (
	BudgetUSD      = "usd"
	BudgetTokens   = "tokens"
	BudgetCalls    = "calls"
	BudgetHours    = "hours"
	BudgetDeadline = "deadline"
)

// Words lists the budgets: $10.00, 40 calls.
func (b Budget) Words() string {
	var all []string
	add := func(set bool, format string, value any) {
		if set {
			all = append(all, fmt.Sprintf(format, value))
		}
	}
	add(b.CapUSD > 0 || b == Budget{}, "$%.2f", b.CapUSD)
	add(b.Tokens > 0, "%d tokens", b.Tokens)
	add(b.Calls > 0, "%s", Plural(b.Calls, "call"))
	add(b.Hours > 0, "%g hours", b.Hours)
	add(b.Deadline != "", "until %s", b.Deadline)
	return strings.Join(all, ", ")
}

// BudgetUse is one budget of a run and how much of it is used.
type BudgetUse struct {
	Name  string  `json:"name"` // usd, tokens, calls, hours or deadline
	Used  float64 `json:"used"` // of a deadline: 1 if it has passed
	Limit float64 `json:"limit"`
	Text  string  `json:"text"` // 5 of 12 calls
	Spent bool    `json:"spent"`
}

// BudgetUses lists the budgets of a run and what is used of them at a time; empty: at the last event.
func (s State) BudgetUses(now string) []BudgetUse {
	all := s.uses(now)
	for i := range all {
		all[i].Text = s.useText(all[i], now)
	}
	return all
}

// uses is BudgetUses without the texts: the records are folded with it at every event.
func (s *State) uses(now string) []BudgetUse {
	b, all := &s.Budget, []BudgetUse(nil)
	add := func(name string, used, limit float64) {
		if limit > 0 {
			all = append(all, BudgetUse{Name: name, Used: used, Limit: limit, Spent: used >= limit})
		}
	}
	add(BudgetUSD, s.Total(), b.CapUSD)
	add(BudgetTokens, float64(s.Used.Tokens), float64(b.Tokens))
	add(BudgetCalls, float64(s.Used.Calls), float64(b.Calls))
	if b.Hours > 0 {
		add(BudgetHours, math.Floor(1000*s.liveHours(now))/1000, b.Hours)
	}
	if b.Deadline == "" {
		return all
	}
	if at, err := time.Parse(time.RFC3339, b.Deadline); err == nil {
		use := BudgetUse{Name: BudgetDeadline, Limit: 1}
		if is, err := time.Parse(time.RFC3339, cmp.Or(now, s.TS)); err == nil && !is.Before(at) {
			use.Used, use.Spent = 1, true
		}
		all = append(all, use)
	}
	return all
}

// liveHours is the time of work up to a time; empty: up to the last event.
func (s *State) liveHours(now string) float64 {
	return float64(s.Used.LiveMS+s.liveUntil(cmp.Or(now, s.TS))) / float64(time.Hour.Milliseconds())
}

func (s *State) useText(u BudgetUse, now string) string {
	b, used := &s.Budget, &s.Used
	switch u.Name {
	case BudgetTokens:
		return fmt.Sprintf("%d of %d tokens", used.Tokens, b.Tokens)
	case BudgetCalls:
		return fmt.Sprintf("%d of %s", used.Calls, Plural(b.Calls, "call"))
	case BudgetHours:
		return fmt.Sprintf("%.1f of %g hours", s.liveHours(now), b.Hours)
	case BudgetDeadline:
		if u.Spent {
			return "deadline " + b.Deadline + " has passed"
		}
		return "until " + b.Deadline
	}
	return fmt.Sprintf("%s of $%.2f", s.CostText(), b.CapUSD)
}

// SpentBudget returns the first budget that is spent at a time; empty: at the last event.
func (s State) SpentBudget(now string) (BudgetUse, bool) {
	for _, u := range s.uses(now) {
		if u.Spent {
			u.Text = s.useText(u, now)
			return u, true
		}
	}
	return BudgetUse{}, false
}

// BudgetShort reports whether the budget does not cover the call for which the run paused.
func (s *State) BudgetShort() bool {
	spent := slices.ContainsFunc(s.uses(""), func(u BudgetUse) bool { return u.Spent })
	n := s.Need
	if spent || n == nil || n.Source == NeedReached {
		return spent
	}
	return s.Budget.CapUSD > 0 && s.Remaining() < n.USD || s.Budget.Tokens > 0 && s.RemainingTokens() < n.Tokens
}

// BudgetWords describes why the budget does not suffice: $9.00 of $10.00 are spent; the mean of role writer is $1.50.
func (s State) BudgetWords() string {
	use, spent := s.SpentBudget("")
	switch {
	case spent && use.Name == BudgetDeadline:
		return "the " + use.Text
	case spent && use.Name != BudgetUSD:
		return use.Text + " are used"
	case s.Need != nil && s.Need.OfTokens:
		return fmt.Sprintf("%d of %d tokens are used; %s", s.Used.Tokens, s.Budget.Tokens, s.Need.Text())
	}
	text := fmt.Sprintf("%s of $%.2f are spent", s.CostText(), s.Budget.CapUSD)
	if s.Need != nil {
		text += "; " + s.Need.Text()
	}
	return text
}
