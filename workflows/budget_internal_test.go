package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestGatedSteps: only calls of agents count against a budget, and none of a record.
func TestGatedSteps(t *testing.T) {
	role, command := pipeline.PlanStep{Kind: pipeline.KindRole}, pipeline.PlanStep{Kind: pipeline.KindRun}
	for name, row := range map[string]struct {
		budget run.Budget
		status run.Status
		step   pipeline.PlanStep
		gated  bool
	}{
		"usd":         {run.Budget{CapUSD: 1}, run.Running, role, true},
		"tokens":      {run.Budget{Tokens: 1}, run.Running, role, true},
		"calls":       {run.Budget{Calls: 1}, run.Running, role, true},
		"per pass":    {run.Budget{PerPassUSD: 1}, run.Running, role, true},
		"hours":       {run.Budget{Hours: 1}, run.Running, role, false},
		"no budget":   {run.Budget{}, run.Running, role, false},
		"a command":   {run.Budget{CapUSD: 1}, run.Running, command, false},
		"of a record": {run.Budget{CapUSD: 1}, run.Replaying, role, false},
	} {
		s := run.State{Budget: row.budget, Status: row.status}
		require.Equal(t, row.gated, loopIn(run.State{}).gated(s, row.step), name)
	}
}

// TestShareOfACall: the rest of the budget, and the maximum of one call.
func TestShareOfACall(t *testing.T) {
	for name, row := range map[string]struct {
		budget run.Budget
		want   float64
	}{
		"no budget": {run.Budget{}, 0}, "a maximum only": {run.Budget{PerPassUSD: 3}, 3},
		"no maximum":      {run.Budget{CapUSD: 9}, 5},
		"a maximum below": {run.Budget{CapUSD: 9, PerPassUSD: 3}, 3}, "a maximum above": {run.Budget{CapUSD: 9,
			PerPassUSD: 7}, 5},
	} {
		p := passOf(loopIn(run.State{Budget: row.budget}), contract.Step{}, contract.Role{}, "")
		require.Equal(t, row.want, p.bounded(5), name)
	}
	over := contract.PassResult{Reading: run.Reading{Outcome: run.CategoryBudgetExceeded}, OverBudget: true}
	other, allowed := over, over
	other.Outcome, allowed.OverBudget = run.CategoryUnknown, false
	for name, row := range map[string]struct {
		failure *contract.PassResult
		share   float64
		want    bool
	}{
		"at its share": {&over, 1, true}, "without a share": {&over, 0, false}, "another failure": {&other, 1, false},
		"at its own maximum": {&allowed, 1, false}, "no failure": {nil, 1, false},
	} {
		require.Equal(t, row.want, (&call{failure: row.failure, share: row.share}).stoppedAtBudget(), name)
	}
}

// TestRestIsNeverNegative: a call that costs more than what is left leaves nothing.
func TestRestIsNeverNegative(t *testing.T) {
	left := rest{usd: 1, tokens: 1, calls: 1}
	left.take(2, 2)
	require.Equal(t, rest{}, left)
}

// TestBudgetOfAMessage: what a message does not name stays as it is, and a budget below one counts too.
func TestBudgetOfAMessage(t *testing.T) {
	before := run.Budget{CapUSD: 40, WarnUSD: 32, Tokens: 9000, Calls: 90, Hours: 9, Deadline: "2026-02-01T00:00:00Z"}
	const later = "2027-01-01T00:00:00Z"
	for name, row := range map[string]struct {
		m      contract.Message
		change func(b *run.Budget)
		text   string
	}{
		"nothing": {contract.Message{}, func(*run.Budget) {}, ""},
		"usd":     {contract.Message{USD: 0.5}, func(b *run.Budget) { b.CapUSD, b.WarnUSD = 0.5, 0.4 }, "0.50 USD"},
		"tokens":  {contract.Message{BudgetLimits: contract.BudgetLimits{Tokens: 1}}, func(b *run.Budget) { b.Tokens = 1 }, "1 tokens"},
		"calls":   {contract.Message{BudgetLimits: contract.BudgetLimits{Calls: 1}}, func(b *run.Budget) { b.Calls = 1 }, "1 call"},
		"hours":   {contract.Message{BudgetLimits: contract.BudgetLimits{Hours: 0.5}}, func(b *run.Budget) { b.Hours = 0.5 }, "0.5 hours"},
		"deadline": {contract.Message{BudgetLimits: contract.BudgetLimits{Deadline: later}}, func(b *run.Budget) { b.Deadline = later },
			"until " + later},
		"all": {contract.Message{USD: 20, BudgetLimits: contract.BudgetLimits{Tokens: 500, Calls: 8, Hours: 2, Deadline: later}},
			func(b *run.Budget) {
				*b = run.Budget{CapUSD: 20, WarnUSD: 16, Tokens: 500, Calls: 8, Hours: 2, Deadline: later}
			}, "20.00 USD, 500 tokens, 8 calls, 2 hours, until " + later},
	} {
		want := before
		row.change(&want)
		require.Equal(t, want, changedBudget(row.m, before, 0.8), name)
		require.Equal(t, row.text, budgetText(row.m), name)
	}
	for budget, share := range map[run.Budget]float64{{}: 0.8, {CapUSD: 0.5, WarnUSD: 0.25}: 0.5, {CapUSD: 9}: 0} {
		e := loopIn(run.State{})
		e.in.Start.Budget = budget
		require.Equal(t, share, e.budgetWarnShare(), "the share of the definition")
	}
}

// TestAttemptWithinTheRest: another attempt reckons with the calls of the other members of its group.
func TestAttemptWithinTheRest(t *testing.T) {
	cost := &contract.PassResult{Spend: run.Spend{USD: 3, Tokens: run.Tokens{Input: 6}}}
	usd, tokens := run.Budget{CapUSD: 10, PerPassUSD: 4}, run.Budget{Tokens: 10, PerPassTokens: 5}
	for name, row := range map[string]struct {
		budget  run.Budget
		other   call
		covered bool
		share   float64
	}{
		"a running call":           {usd, call{share: 6}, true, 4},
		"a running call of more":   {usd, call{share: 7}, false, 0},
		"an answer":                {usd, call{share: 9, result: cost}, true, 4},
		"a failure":                {usd, call{share: 9, failure: cost}, true, 4},
		"tokens of an answer":      {tokens, call{result: cost}, false, 0},
		"tokens of a running call": {tokens, call{tokens: 5}, true, 0},
		"usd without a need":       {run.Budget{CapUSD: 10}, call{share: 9}, true, 1},
		"nothing is left":          {run.Budget{CapUSD: 10}, call{share: 10}, false, 0},
	} {
		p := passOf(loopIn(run.State{Budget: row.budget}), reportStep, contract.Role{}, "")
		p.group = []*call{p, &row.other}
		var covered bool
		inside(t, func(ctx workflow.Context) error { covered = p.covered(ctx); return nil })
		require.Equal(t, row.covered, covered, name)
		require.InDelta(t, row.share, p.share, 0, name)
	}
}

// The calls of a group share the rest of each budget.
func TestRestOfBudgetsIsShared(t *testing.T) {
	s := run.State{Budget: run.Budget{CapUSD: 10, Tokens: 100, Calls: 5}, Spent: run.Totals{USD: 4},
		Used: run.Used{Tokens: 40, Calls: 2}}
	for name, row := range map[string]struct {
		budget   run.Budget
		need     run.Need
		taken    int // calls that are covered one after another
		ofTokens bool
	}{
		"dollars":   {run.Budget{CapUSD: 10}, run.Need{USD: 2, Tokens: 900}, 3, false},
		"tokens":    {run.Budget{Tokens: 100}, run.Need{USD: 900, Tokens: 30}, 2, true},
		"calls":     {run.Budget{Calls: 3}, run.Need{USD: 900, Tokens: 900}, 1, false},
		"all":       {s.Budget, run.Need{USD: 1, Tokens: 1}, 3, false},
		"too much":  {s.Budget, run.Need{USD: 6.01}, 0, false},
		"no budget": {run.Budget{}, run.Need{USD: 900}, 9, false},
	} {
		s.Budget = row.budget
		left, n := restOf(s), 0
		need := row.need
		for n < 9 && left.covers(&need) {
			left.take(need.USD, need.Tokens)
			n++
		}
		require.Equal(t, row.taken, n, name)
		require.Equal(t, row.ofTokens, need.OfTokens, name)
	}
}

// TestBudgetWarning: once, as soon as the cost reaches the share.
func TestBudgetWarning(t *testing.T) {
	for name, row := range map[string]struct {
		warn, total float64
		warned      bool
		want        int
	}{
		"below": {8, 7.99, false, 0}, "reached": {8, 8, false, 1}, "again": {8, 9, true, 0}, "none": {0, 9, false, 0},
		"of cents": {0.5, 0.6, false, 1},
	} {
		e := loopIn(run.State{Status: run.Running, Budget: run.Budget{CapUSD: 10, WarnUSD: row.warn}, Warned: row.warned,
			Spent: run.Totals{USD: row.total}})
		inside(t, func(ctx workflow.Context) error { e.warnBudget(ctx); return nil })
		require.Len(t, e.journal.pending, row.want, name)
		if row.want > 0 {
			require.Equal(t, run.BudgetEvent{Budget: e.journal.now.Budget, TotalUSD: row.total},
				run.PayloadOf[run.BudgetEvent](last(t, e)), name)
		}
	}
}
