package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestBudgetMessages sends budgets to a run that has spent 1 USD, 100 tokens and one call of a larger
// budget, with a warning at 80 %. What a message does not name stays as it is.
func TestBudgetMessages(t *testing.T) {
	before := run.Budget{CapUSD: 40, WarnUSD: 32, Tokens: 9000, Calls: 90, Hours: 9, Deadline: "2026-02-01T00:00:00Z"}
	with := func(change func(b *run.Budget)) run.Budget {
		b := before
		change(&b)
		return b
	}
	for name, row := range map[string]struct {
		m    message
		want run.Budget
		ack  string
		text string // of the refusal
	}{
		"usd":           {message{"usd": 10}, with(func(b *run.Budget) { b.CapUSD, b.WarnUSD = 10, 8 }), "10.00 USD", ""},
		"what is spent": {message{"usd": 1}, with(func(b *run.Budget) { b.CapUSD, b.WarnUSD = 1, 0.8 }), "1.00 USD", ""},
		"tokens":        {message{"tokens": 101}, with(func(b *run.Budget) { b.Tokens = 101 }), "101 tokens", ""},
		"calls":         {message{"calls": 2}, with(func(b *run.Budget) { b.Calls = 2 }), "2 calls", ""},
		"hours":         {message{"hours": 0.5}, with(func(b *run.Budget) { b.Hours = 0.5 }), "0.5 hours", ""},
		"deadline": {message{"deadline": "2026-01-02T03:05:00Z"},
			with(func(b *run.Budget) { b.Deadline = "2026-01-02T03:05:00Z" }), "until 2026-01-02T03:05:00Z", ""},
		"all": {message{"usd": 20, "tokens": 500, "calls": 8, "hours": 2, "deadline": "2027-01-01T00:00:00Z"},
			run.Budget{CapUSD: 20, WarnUSD: 16, Tokens: 500, Calls: 8, Hours: 2, Deadline: "2027-01-01T00:00:00Z"},
			"20.00 USD, 500 tokens, 8 calls, 2 hours, until 2027-01-01T00:00:00Z", ""},
		"tokens that are spent": {message{"tokens": 100}, before, "",
			"the budget would be spent: 100 of 100 tokens"},
		"calls that are spent": {message{"calls": 1}, before, "", "the budget would be spent: 1 of 1 call"},
		"negative usd":         {message{"usd": -1}, before, "", "a budget of -1 USD is not a number from 0 to 1000000000"},
		"negative tokens":      {message{"tokens": -1}, before, "", "a budget is negative: send numbers above 0"},
		"negative calls":       {message{"calls": -1}, before, "", "a budget is negative: send numbers above 0"},
		"negative hours":       {message{"hours": -1}, before, "", "a budget is negative: send numbers above 0"},
		"a word as deadline": {message{"deadline": "soon"}, before, "",
			`the deadline "soon" is not a time: write it as in 2026-11-25T18:00:00Z`},
		"a deadline that has passed": {message{"deadline": "2026-01-02T03:04:05Z"}, before, "",
			"the deadline 2026-01-02T03:04:05Z has passed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, withBudget(twoPasses, "{usd: 40, warn_at: 0.8, tokens: 9000, calls: 90, hours: 9, "+
				"deadline: '2026-02-01T00:00:00Z'}"))
			w.agent.will(call(1, 1), func(ok contract.PassResult) (contract.PassResult, error) {
				ok.Spend = run.Spend{USD: 1, Tokens: run.Tokens{Input: 60, Output: 40}, Known: run.CostExact}
				return ok, nil
			})
			var answer *reply
			var cost workflows.CostAnswer
			w.agent.will(call(2, 1), after(func() {
				row.m["by"], row.m["note"] = "ada", "enough"
				answer = w.update("budget", row.m)
				answered := make(chan struct{})
				w.env.RegisterDelayedCallback(func() {
					v, err := w.env.QueryWorkflow(workflows.QueryCost)
					require.NoError(t, err)
					require.NoError(t, v.Get(&cost))
					close(answered)
				}, 0)
				<-answered
			}))
			r, err := w.execute()
			require.NoError(t, err)
			require.NotEmpty(t, r.Status)
			require.Equal(t, row.want, cost.Budget)
			if row.text != "" {
				require.ErrorContains(t, answer.refused, row.text)
				return
			}
			require.Equal(t, "the budget is "+row.ack, answer.ack.Message)
			require.Equal(t, []run.BudgetEvent{{Budget: row.want, TotalUSD: 1, By: "ada", Auth: "none", Note: "enough"}},
				payloads[run.BudgetEvent](w, run.KindBudgetRaised))
		})
	}
}
