package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestUsedOfBudgets counts calls of agents, their tokens, and the time of work: no pause, no interruption.
func TestUsedOfBudgets(t *testing.T) {
	s := run.State{Status: run.Running, TS: "2026-01-02T03:00:00.000Z", Seq: 1, RunID: "r", Epoch: 1}
	at := func(ts string, kind run.Kind, payload any) {
		raw, err := run.Payload(payload)
		require.NoError(t, err)
		s = run.Apply(s, run.Event{Seq: s.Seq + 1, TS: "2026-01-02T" + ts + ":00.000Z", Kind: kind, Payload: raw})
		require.Empty(t, s.InvalidTransition)
	}
	answer := run.Spend{Tokens: run.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Known: run.CostExact}
	at("03:10", run.KindPassEnd, run.PassEnd{Outcome: run.CategoryOK, Spend: answer})
	at("03:20", run.KindPassEnd, run.PassEnd{Outcome: run.CategoryOK}) // a command
	at("03:30", run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	at("05:00", run.KindRunResumed, run.RunResumed{Epoch: 1})
	lost := run.Spend{Known: run.CostUnknown}
	at("05:15", run.KindPassAttempt, run.PassAttempt{Category: run.CategoryLost, Spend: &lost})
	require.Equal(t, run.Used{Calls: 2, Tokens: 10, LiveMS: 45 * 60_000}, s.Used)
	at("09:00", run.KindRunInterrupted, run.RunInterrupted{Reason: "the server lost it"})
	require.EqualValues(t, 45*60_000, s.Used.LiveMS)

	s.Budget = run.Budget{CapUSD: 1, Tokens: 20, Calls: 2, Hours: 8, Deadline: "2026-01-02T10:00:00Z"}
	var texts []string
	for _, u := range s.BudgetUses("") {
		texts = append(texts, u.Text)
		require.Equal(t, u.Name == run.BudgetCalls, u.Spent, u.Name)
	}
	require.Equal(t, []string{
		"unknown of $1.00", "10 of 20 tokens", "2 of 2 calls", "0.8 of 8 hours", "until 2026-01-02T10:00:00Z",
	}, texts)
}

// TestNextCommandRaisesWhatIsSpent suggests the flag of the budget that is spent.
func TestNextCommandRaisesWhatIsSpent(t *testing.T) {
	for want, s := range map[string]run.State{
		"--usd 3":   {Budget: run.Budget{CapUSD: 1}, Spent: run.Totals{USD: 1}, Need: &run.Need{USD: 1.5}},
		"--calls 4": {Budget: run.Budget{CapUSD: 1, Calls: 2}, Used: run.Used{Calls: 2}},
		"--hours 3": {Budget: run.Budget{Hours: 1.5}, Used: run.Used{LiveMS: 6e6}},
		"--tokens 95": {Budget: run.Budget{Tokens: 30}, Used: run.Used{Tokens: 20},
			Need: &run.Need{Tokens: 75, OfTokens: true}},
		"--deadline TIME": {Budget: run.Budget{Deadline: "2026-01-01T00:00:00Z"}, TS: "2026-01-02T00:00:00.000Z"},
	} {
		s.Status, s.Reason = run.Paused, run.BudgetThreshold
		c, ok := run.Offers(run.NextCommands(s, run.Situation{
			EffectiveStatus: run.EffectiveStatus{ShownStatus: run.Paused.Shown(), Liveness: run.LiveOpen}, Dir: "runs/x",
		}), run.Resume)
		require.True(t, ok)
		require.Equal(t, "budget runs/x "+want, strings.Join(c.Steps[0], " "))
		flag, value, _ := strings.Cut(strings.TrimPrefix(want, "--"), " ")
		if flag == run.BudgetDeadline {
			value = `"TIME"`
		}
		require.Equal(t, `{"`+flag+`":`+value+"}", c.Messages[0].Input)
	}
}
