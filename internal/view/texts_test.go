package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

func TestUnrepairedDamage(t *testing.T) {
	repaired, open := run.JournalDamage{Repaired: true}, run.JournalDamage{}
	require.False(t, view.Unrepaired(nil))
	require.False(t, view.Unrepaired([]run.JournalDamage{repaired, repaired}))
	require.True(t, view.Unrepaired([]run.JournalDamage{repaired, open}))
}

func TestAdviceIsAboutPauses(t *testing.T) {
	of := func(effective run.Status, reason string) string {
		r := view.Recorded(run.State{Status: run.Paused, Reason: reason})
		r.Effective.Status = effective
		return r.Advice()
	}
	require.NotEmpty(t, of(run.Paused, run.DiskFull))
	require.Empty(t, of(run.Paused, run.UserRequested), "no error has paused it")
	require.Empty(t, of(run.Interrupted, run.DiskFull))
}

func TestReasonsForNotContinuing(t *testing.T) {
	for want, s := range map[string]run.State{
		"Finished. 2 files on branch passbook/r; to take the result: git merge passbook/r.": {Status: run.Done,
			Delivery: &run.Delivered{Delivered: true, To: "branch",
				Target: "passbook/r", Commit: "abc", Files: 2, Message: "m"}},
		"Finished. 1 file in /src, commit 0123456789ab.": {Status: run.Done, Delivery: &run.Delivered{Delivered: true,
			To: "checkout", Target: "/src", Commit: "0123456789abcdef", Files: 1}},
		"Finished. 1 file in /src, not committed.": {Status: run.Done, Delivery: &run.Delivered{Delivered: true,
			To: "checkout", Target: "/src", Files: 1}},
		"Finished. Nothing was delivered: no change.": {Status: run.Done, Delivery: &run.Delivered{Message: "no change",
			Target: "t"}},
		"3 of 4 passes, 2 cycles, 5 calls, $1.50. Score 2.5.": {Status: run.Done, Rounds: 2, Score: new(2.5),
			Passes: run.PassCount{Total: 4, LastSettled: 3, Invalid: 1}, Spent: run.Totals{Calls: 5, USD: 1.5}},
		"The budget is now $9.00. Press r to resume.": {Status: run.Paused, Reason: run.BudgetThreshold, Raised: true,
			Budget: run.Budget{CapUSD: 9}},
		run.Means(run.Paused, run.BudgetThreshold) + " $3.00 of $3.00 are spent.\nPress b to raise it, then r to resume.": {
			Status: run.Paused, Reason: run.BudgetThreshold, Budget: run.Budget{CapUSD: 3}, Spent: run.Totals{USD: 3}},
		"": {Status: run.Running},
	} {
		require.Equal(t, want, view.WhyPaused(s, s.Status))
	}
}
