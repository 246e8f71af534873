package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSumsAndDifferencesOfCosts(t *testing.T) {
	a := Spend{Tokens: Tokens{Input: 100, Output: 20, CacheRead: 3000, CacheWrite: 7}, USD: 1.5,
		Prices: []ModelPrice{{Model: "m"}}, Known: CostExact}
	b := Spend{Tokens: Tokens{Input: 1, Output: 2, CacheRead: 4, CacheWrite: 8}, USD: 0.25}
	require.Equal(t, Spend{Tokens: Tokens{Input: 101, Output: 22, CacheRead: 3004, CacheWrite: 15}, USD: 1.75,
		Known: CostExact}, a.Plus(b))
	left := a.Without(b, 2)
	require.Equal(t, Tokens{Input: 99, Output: 18, CacheRead: 2996}, left.Tokens)
	require.Equal(t, 1.25, left.USD)
	require.Equal(t, 2, left.Covers)
	require.Equal(t, Spend{Covers: 3, Known: CostExact, Prices: a.Prices}, a.Without(a.Plus(b), 3), "never below zero")
	require.Equal(t, a.Tokens, a.Without(Spend{}, 0).Tokens)
}

func TestAskedAndUnknownCalls(t *testing.T) {
	for _, row := range []struct {
		spend   Spend
		asked   bool
		unknown int
		text    string
	}{
		{Spend{}, false, 0, "$0.00"},
		{Spend{Known: CostExact}, true, 0, "$0.00"},
		{Spend{USD: 0.004}, true, 0, "$0.00"},
		{Spend{USD: 0.5}, true, 0, "$0.50"},
		{Spend{Tokens: Tokens{CacheRead: 1}}, true, 0, "$0.00"},
		{Spend{Known: CostUnknown}, true, 1, "cost unknown: the agent reported no usage"},
		{Spend{Known: CostUnknown, Tokens: Tokens{Input: 1}}, true, 1, "cost unknown: no price is set for the agent"},
		{Spend{Known: CostUnknown, Tokens: Tokens{Input: 1}, Model: "m"}, true, 1,
			"cost unknown: no price is known for m"},
		{Spend{Known: CostAtLeast, USD: 1.2}, true, 1, "cost ≥ $1.20: the agent's report is incomplete"},
		{Spend{Known: CostAtLeast, USD: 1, Covers: 3}, true, -2, "$1.00"},
		{Spend{Known: CostExact, USD: 1, Covers: 2}, true, -2, "$1.00"},
	} {
		require.Equal(t, row.asked, row.spend.Asked(), "%+v", row.spend)
		require.Equal(t, row.unknown, row.spend.UnknownCalls(), "%+v", row.spend)
		require.Equal(t, row.text, row.spend.Text(), "%+v", row.spend)
	}
	for _, row := range []struct {
		usd     float64
		unknown int
		known   CostKnown
		text    string
	}{
		{0, 0, CostExact, "$0.00"}, {1, 0, CostExact, "$1.00"}, {1, -1, CostExact, "$1.00"}, {0, 1, CostUnknown, "unknown"},
		{0, 2, CostUnknown, "unknown"}, {0.5, 1, CostAtLeast, "≥ $0.50 (1 call not fully known)"},
		{2, 3, CostAtLeast, "≥ $2.00 (3 calls not fully known)"},
	} {
		require.Equal(t, row.known, KnownOf(row.usd, row.unknown))
		require.Equal(t, row.text, CostText(row.usd, row.unknown))
	}
	s := State{Spent: Totals{USD: 1, Unknown: 2}, SunkUSD: 0.5, SunkUnknown: 1}
	require.Equal(t, "≥ $1.50 (3 calls not fully known)", s.CostWords())
	require.Equal(t, "cost unknown", State{Spent: Totals{Unknown: 1}}.CostWords())
}

// A run learns the mean of a role from its settled calls, and from nothing else.
func TestMeansOfRoles(t *testing.T) {
	f := folder{}
	learn := func(role string, spend Spend) { f.learnCost(&PassEnd{Pass: Pass{Role: role}, Spend: spend}) }
	learn("", Spend{USD: 1})
	learn("command", Spend{})
	learn("writer", Spend{Known: CostUnknown, USD: 1})
	require.Empty(t, f.Means)
	learn("writer", Spend{USD: 0.5, Tokens: Tokens{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40}})
	learn("reviewer", Spend{Known: CostExact})
	given := f.Means
	learn("writer", Spend{USD: 1, Known: CostAtLeast, Tokens: Tokens{Output: 5}})
	require.Equal(t, []Mean{{Role: "writer", Calls: 2, USD: 1.5, Tokens: 105}, {Role: "reviewer", Calls: 1}}, f.Means)
	require.Equal(t, 1, given[0].Calls, "the state that was handed out stays")
	for i := range keptMeans {
		learn(string(rune('A'+i)), Spend{USD: 1})
	}
	require.Len(t, f.Means, keptMeans)
	require.Equal(t, "A", f.Means[0].Role)

	s := State{Means: given, Budget: Budget{CapUSD: 8, PerPassUSD: 2, WarnUSD: 3, Tokens: 50, PerPassTokens: 70}}
	s.Means = []Mean{{Role: "reviewer", Calls: 1, USD: 9}, {Role: "writer", Calls: 4, USD: 3, Tokens: 202}}
	require.Equal(t, Need{Role: "writer", USD: 0.75, Tokens: 50, Source: NeedMean}, s.Needs("writer"))
	require.Equal(t, Need{Role: "tester", USD: 2, Tokens: 70, Source: NeedPerPass}, s.Needs("tester"))
	s.Budget = Budget{PerPassUSD: 0.5}
	require.Equal(t, Need{Role: "tester", USD: 0.5, Source: NeedPerPass}, s.Needs("tester"))
	s.Budget = Budget{PerPassTokens: 1, CapUSD: 5, Tokens: 6}
	require.Equal(t, Need{Role: "tester", Tokens: 1, Source: NeedPerPass}, s.Needs("tester"))
	s.Budget = Budget{CapUSD: 5, Tokens: 6}
	require.Equal(t, Need{Role: "tester"}, s.Needs("tester"))

	for want, n := range map[string]Need{
		"the mean of role writer is $1.50":                       {Role: "writer", USD: 1.5, Tokens: 7, Source: NeedMean},
		"the mean of role writer is 7 tokens":                    {Role: "writer", USD: 1.5, Tokens: 7, OfTokens: true},
		"budget.per_pass.usd is $1.50 for role a":                {Role: "a", USD: 1.5, Source: NeedPerPass},
		"budget.per_pass.tokens is 7 tokens for role a":          {Role: "a", Tokens: 7, OfTokens: true, Source: NeedPerPass},
		"the agent of role a stopped at its maximum of $0.20":    {Role: "a", USD: 0.2, Source: NeedReached},
		"the agent of role a stopped at its maximum of 9 tokens": {Role: "a", Tokens: 9, OfTokens: true, Source: NeedReached},
	} {
		require.Equal(t, want, n.Text())
	}
}

func TestRestOfBudgets(t *testing.T) {
	s := State{Budget: Budget{CapUSD: 10, WarnUSD: 8, Tokens: 100, PerPassTokens: 9}, Spent: Totals{USD: 2.5}, SunkUSD: 1,
		Used: Used{Tokens: 30, LiveMS: 5}}
	require.Equal(t, 6.5, s.Remaining())
	require.EqualValues(t, 70, s.RemainingTokens())
	s.Spent.USD, s.Used.Tokens = 20, 300
	require.Zero(t, s.Remaining())
	require.Zero(t, s.RemainingTokens())
	for amount, want := range map[float64]bool{-0.01: false, 0: true, 5: true, MaxBudgetUSD: true,
		MaxBudgetUSD + 1: false} {
		require.Equal(t, want, ValidBudget(amount), amount)
	}
	require.Equal(t, "$0.00", Budget{}.Words())
	require.Equal(t, "1 tokens", Budget{Tokens: 1}.Words())
	require.Equal(t, "1 call, 1 hours", Budget{Calls: 1, Hours: 1}.Words())
	require.Equal(t, "$1.00, 30 tokens, 2 calls, 1.5 hours, until T",
		Budget{CapUSD: 1, Tokens: 30, Calls: 2, Hours: 1.5, Deadline: "T"}.Words())
	require.Equal(t, "", Budget{WarnUSD: 1}.Words())
}

func TestShortBudgets(t *testing.T) {
	const now, past, future = "2026-01-02T03:00:00.000Z", "2026-01-02T03:00:00Z", "2026-01-02T03:00:01Z"
	for name, row := range map[string]struct {
		budget Budget
		spent  float64
		tokens int64
		need   *Need
		short  bool
		words  string
	}{
		"nothing is spent": {Budget{CapUSD: 10}, 0, 0, nil, false, "$0.00 of $10.00 are spent"},
		"all is spent":     {Budget{CapUSD: 10}, 10, 0, nil, true, "$10.00 of $10.00 are spent"},
		"the call costs the rest": {Budget{CapUSD: 10}, 8, 0, &Need{Role: "a", USD: 2}, false,
			"$8.00 of $10.00 are spent; the mean of role a is $2.00"},
		"the call costs more": {Budget{CapUSD: 10, WarnUSD: 1}, 8, 0, &Need{Role: "a", USD: 2.01}, true,
			"$8.00 of $10.00 are spent; the mean of role a is $2.01"},
		"a call without a budget": {Budget{}, 8, 5, &Need{Role: "a", USD: 2, Tokens: 3}, false,
			"$8.00 of $0.00 are spent; the mean of role a is $2.00"},
		"the agent has stopped": {Budget{CapUSD: 10}, 8, 0, &Need{Role: "a", USD: 9, Source: NeedReached}, false,
			"$8.00 of $10.00 are spent; the agent of role a stopped at its maximum of $9.00"},
		"the agent has stopped, and all is spent": {Budget{CapUSD: 8}, 8, 0, &Need{Role: "a", Source: NeedReached}, true,
			"$8.00 of $8.00 are spent; the agent of role a stopped at its maximum of $0.00"},
		"the tokens suffice": {Budget{Tokens: 100}, 0, 60, &Need{Role: "a", Tokens: 40, OfTokens: true}, false,
			"60 of 100 tokens are used; the mean of role a is 40 tokens"},
		"too few tokens": {Budget{Tokens: 100, PerPassTokens: 7}, 0, 60, &Need{Role: "a", Tokens: 41, OfTokens: true}, true,
			"60 of 100 tokens are used; the mean of role a is 41 tokens"},
		"no tokens": {Budget{CapUSD: 1, Tokens: 100}, 0.5, 100, nil, true, "100 of 100 tokens are used"},
		"before the deadline": {Budget{CapUSD: 1, Deadline: future}, 0.5, 0, nil, false,
			"$0.50 of $1.00 are spent"},
		"at the deadline": {Budget{Deadline: past}, 0, 0, nil, true, "the deadline " + past + " has passed"},
	} {
		s := State{Budget: row.budget, Spent: Totals{USD: row.spent}, Used: Used{Tokens: row.tokens}, Need: row.need, TS: now}
		require.Equal(t, row.short, s.BudgetShort(), name)
		require.Equal(t, row.words, s.BudgetWords(), name)
	}
}

// The time of work counts up to a moment, while the run works.
func TestHoursAndDeadlines(t *testing.T) {
	const now, hour = "2026-01-02T04:30:00.000Z", 3_600_000
	s := State{Status: Running, TS: "2026-01-02T03:00:00.000Z", CreatedAt: "2026-01-01T00:00:00.000Z",
		Used: Used{LiveMS: 2 * hour}, Budget: Budget{Hours: 3.5, Deadline: "2026-01-02T04:30:01Z"}}
	require.Equal(t, []BudgetUse{
		{Name: BudgetHours, Used: 3.5, Limit: 3.5, Text: "3.5 of 3.5 hours", Spent: true},
		{Name: BudgetDeadline, Limit: 1, Text: "until 2026-01-02T04:30:01Z"},
	}, s.BudgetUses(now))
	require.Equal(t, 2.0, s.BudgetUses("")[0].Used)
	require.Equal(t, 2.0, s.BudgetUses("2026-01-02T02:00:00.000Z")[0].Used, "time that runs backwards")
	require.Equal(t, 2.0, s.BudgetUses("yesterday")[0].Used)
	require.Equal(t, 2.016, s.BudgetUses("2026-01-02T03:01:00.000Z")[0].Used, "rounded down to three digits")
	use, spent := s.SpentBudget(now)
	require.True(t, spent)
	require.Equal(t, "3.5 of 3.5 hours", use.Text)
	use, spent = s.SpentBudget("")
	require.False(t, spent)
	require.Zero(t, use)
	s.Budget = Budget{Deadline: "2026-01-02T04:30:00Z"}
	require.Equal(t, []BudgetUse{{Name: BudgetDeadline, Used: 1, Limit: 1, Spent: true,
		Text: "deadline 2026-01-02T04:30:00Z has passed"}}, s.BudgetUses(now))
	s.Budget.Deadline = "soon"
	require.Empty(t, s.BudgetUses(now))
	s.Budget = Budget{Hours: 1}
	for status, want := range map[Status]float64{Running: 3.5, Replaying: 3.5, Paused: 2, WaitingLimit: 2, Done: 2} {
		s.Status = status
		require.Equal(t, want, s.BudgetUses(now)[0].Used, status)
	}
	s.Status, s.TS = Running, "long ago"
	require.Equal(t, 2.0, s.BudgetUses(now)[0].Used)
	s.TS = ""
	require.Equal(t, 2.0, s.BudgetUses(now)[0].Used)
}

func TestSubjectOfExceededBudgets(t *testing.T) {
	need := Need{Role: "a", USD: 2, Tokens: 30}
	ofTokens := need
	ofTokens.OfTokens = true
	for want, b := range map[string]BudgetEvent{
		"2 of 2 calls are used":                                   {Spent: "2 of 2 calls are used", By: "ann", Need: &need},
		"20 of 90 tokens remain; the mean of role a is 30 tokens": {Need: &ofTokens, Rest: 20, Budget: Budget{Tokens: 90}},
		"$1.50 of $10.00 remain; the mean of role a is $2.00":     {Need: &need, TotalUSD: 8.5, Budget: Budget{CapUSD: 10}},
		"at most $0.00 of $10.00 remain; the mean of role a is $2.00": {Need: &need, TotalUSD: 11, Unknown: 1,
			Budget: Budget{CapUSD: 10}},
		"11.00 USD are spent, the budget is 10.00": {TotalUSD: 11, Budget: Budget{CapUSD: 10}},
	} {
		require.Equal(t, want, b.Exceeded())
	}
}

// Another budget ends the cause of a pause only if it covers the next call.
func TestSetBudget(t *testing.T) {
	paused := State{Status: Paused, Reason: BudgetThreshold, Budget: Budget{CapUSD: 5}, Spent: Totals{USD: 5}}
	for name, row := range map[string]struct {
		state          State
		to             Budget
		raised, warned bool
	}{
		"raised":                    {paused, Budget{CapUSD: 6}, true, false},
		"raised above the warning":  {paused, Budget{CapUSD: 9, WarnUSD: 6}, true, false},
		"raised at the warning":     {paused, Budget{CapUSD: 9, WarnUSD: 5}, true, true},
		"raised beyond the warning": {paused, Budget{CapUSD: 9, WarnUSD: 0.5}, true, true},
		"the same":                  {paused, paused.Budget, false, false},
		"still spent":               {paused, Budget{CapUSD: 4}, false, false},
		"paused for another reason": {State{Status: Paused, Reason: UserRequested}, Budget{CapUSD: 6}, false, false},
		"running, for the same one": {State{Status: Running, Reason: BudgetThreshold}, Budget{CapUSD: 6}, false, false},
	} {
		f := folder{State: row.state}
		f.setBudget(row.to)
		require.Equal(t, row.to, f.Budget, name)
		require.Equal(t, row.raised, f.Raised, name)
		require.Equal(t, row.warned, f.Warned, name)
	}
}

// TestCostsAtListPrice: a run whose calls a subscription pays shows what they would cost, also after a revert.
func TestCostsAtListPrice(t *testing.T) {
	s := State{ListPrice: true, Spent: Totals{USD: 0.49}}
	require.Equal(t, "≈ $0.49 at list price", s.CostText())
	s.Spent.Unknown = 1
	require.Equal(t, "≥ $0.49 (1 call not fully known) at list price", s.CostText())
	require.Equal(t, "$0.00", State{ListPrice: true}.CostText())
	require.True(t, Checkpoint{}.Reverted(s).ListPrice)
}
