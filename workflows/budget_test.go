package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// fourPasses cost 1 USD each.
const fourPasses = head + `
budget: {usd: 3, warn_at: 0.5}
stages:
  - name: build
    steps: [{role: builder}, {role: builder}, {role: builder}, {role: builder}]
`

func TestBudgetWarnsOnceAndPausesBeforeNextCall(t *testing.T) {
	w := newHarness(t, fourPasses)
	var early, budget, late *reply
	w.onPause(func() {
		require.Equal(t, []string{call(1, 1), call(2, 1), call(3, 1)}, w.agent.ids)
		early = w.update("resume", nil)
		w.signal("resume", message{"by": "ada"})
		budget = w.update("budget", message{"usd": 10})
		late = w.update("resume", nil)
	})
	w.done()

	require.ErrorContains(t, early.refused, "the run has cost 3.00 USD of a budget of 3.00 USD: raise it first")
	require.Equal(t, "the budget is 10.00 USD", budget.ack.Message)
	require.NoError(t, late.refused)
	require.Equal(t, []string{
		"pass.end 001", "pass.end 002", "budget.warning", "pass.end 003", "budget.exceeded", "run.paused",
		"decision.refused", "budget.raised",
		"run.resumed", "pass.end 004",
	}, w.story(run.KindPassEnd, run.KindBudgetWarning, run.KindBudgetExceeded, run.KindRunPaused,
		run.KindDecisionRefused, run.KindBudgetRaised, run.KindRunResumed))
	require.Equal(t, run.BudgetThreshold, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
	require.Equal(t, run.Budget{CapUSD: 10, WarnUSD: 5}, w.dir.state(t).Budget)
}

func TestBudgetUpdateIsProjectedDuringPass(t *testing.T) {
	w := newHarness(t, fourPasses)
	w.agent.will(call(1, 1), after(func() {
		raised := make(chan struct{})
		w.dir.when(run.KindBudgetRaised, func() { close(raised) })
		w.signal("budget", message{"usd": 7, "by": "ada"})
		<-raised
	}))
	w.done()
	require.Equal(t, []string{"pass.start 001", "budget.raised", "pass.end 001"},
		w.story(run.KindPassStart, run.KindBudgetRaised, run.KindPassEnd)[:3])
	require.Empty(t, w.story(run.KindRunPaused), "4 of 7 USD are spent")
}
