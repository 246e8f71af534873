package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
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

	require.ErrorContains(t, early.refused, "the run has cost 3.00 USD of a budget of 3.00 USD: raise the budget first, run: starter budget run-1 --usd 6")
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
	var status contract.StatusAnswer
	w.agent.will(call(2, 1), after(func() {
		w.journaled("budget", message{"usd": 7, "by": "ada", "note": "enough"}, run.KindBudgetRaised)
		answered := make(chan struct{})
		w.at(0, func() { status = query[contract.StatusAnswer](w, contract.QueryStatus); close(answered) })
		<-answered
	}))
	w.done()
	want := run.Budget{CapUSD: 7, WarnUSD: 3.5}
	require.Equal(t, want, status.Budget)
	require.Equal(t, []run.BudgetEvent{{Budget: want, TotalUSD: 1, By: "ada", Note: "enough"}},
		payloads[run.BudgetEvent](w, run.KindBudgetRaised))
	require.Equal(t, []string{"pass.start 002", "budget.raised", "pass.end 002"},
		w.story(run.KindPassStart, run.KindBudgetRaised, run.KindPassEnd)[2:5])
	require.Empty(t, w.story(run.KindRunPaused), "4 of 7 USD are spent")
}

// withBudget is a definition with a budget.
func withBudget(definition, budget string) string { return definition + "\nbudget: " + budget + "\n" }

func TestRunPausesBeforeCallThatBudgetDoesNotCover(t *testing.T) {
	w := newHarness(t, strings.Replace(fourPasses, "{usd: 3, warn_at: 0.5}", "{usd: 3.5}", 1))
	var early, small, budget, late *reply
	w.onPause(func() {
		require.Equal(t, []string{call(1, 1), call(2, 1), call(3, 1)}, w.agent.ids)
		early = w.update("resume", nil)
		small = w.update("budget", message{"usd": 3.75})
		require.False(t, w.dir.state(t).Raised)
		budget = w.update("budget", message{"usd": 4})
		late = w.update("resume", nil)
	})
	w.done()
	require.ErrorContains(t, early.refused,
		"$3.00 of $3.50 are spent; the mean of role builder is $1.00: raise the budget")
	require.Contains(t, small.ack.Message, "too small to continue: $3.00 of $3.75 are spent")
	require.Equal(t, "the budget is 4.00 USD", budget.ack.Message)
	require.NoError(t, late.refused)
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, "$0.50 of $3.50 remain; the mean of role builder is $1.00", paused[0].Detail)
	require.Equal(t, run.BudgetThreshold, paused[0].Reason)
	require.Nil(t, w.dir.state(t).Need)
	require.Equal(t, []run.Mean{{Role: "builder", Calls: 4, USD: 4}}, w.dir.state(t).Means)
}

func TestCallsGetRestOfBudget(t *testing.T) {
	w := newHarness(t, strings.Replace(fourPasses, "{usd: 3, warn_at: 0.5}", "{usd: 9, per_pass: {usd: 7.5}}", 1))
	w.done()
	require.Equal(t, []float64{7.5, 7.5, 7, 6}, w.shares())
}

// Members whose calls the rest of the budget does not cover begin when the others have settled.
func TestGroupWithinBudgetRunsOneAfterAnother(t *testing.T) {
	w := newHarness(t, withBudget(aGroup, "{usd: 4.5, per_pass: {usd: 2}}"))
	w.raiseOnPause(9)
	w.done()
	require.Equal(t, []string{
		"pass.start look/1 critic-A", "pass.start look/1 critic-B", "pass.end look/1 critic-A", "pass.end look/1 critic-B",
		"pass.start look/1 critic-C", "pass.end look/1 critic-C",
	}, w.story(run.KindPassStart, run.KindPassEnd, run.KindRunPaused)[:6])
	ends := payloads[run.PassEnd](w, run.KindPassEnd)
	require.Nil(t, ends[1].Next, "the step is not complete")
	require.NotNil(t, ends[2].Next)
	require.Equal(t, []string{"$1.50 of $4.50 remain; budget.per_pass.usd is $2.00 for role reader"}, w.pausedFor())
}

// pausedFor lists the details of all pauses.
func (w *harness) pausedFor() (details []string) {
	for _, p := range payloads[run.RunPaused](w, run.KindRunPaused) {
		details = append(details, p.Detail)
	}
	return details
}

// raiseOnPause raises the budget and resumes when the run pauses for the first time.
func (w *harness) raiseOnPause(usd float64) {
	w.onPause(func() {
		w.update("budget", message{"usd": usd})
		w.update("resume", nil)
	})
}

// Without a mean, each role has one call at a time, and calls of other roles do not wait for it.
func TestGroupWithoutMeansSharesBudget(t *testing.T) {
	w := newHarness(t, withBudget(aGroup, "{usd: 9}"))
	w.done()
	require.Equal(t, []float64{3, 3, 3, 6}, w.shares())
	require.Empty(t, w.pausedFor())
}

// shares lists what calls may spend.
func (w *harness) shares() (usd []float64) {
	for _, in := range w.agent.inputs {
		usd = append(usd, in.BudgetUSD)
	}
	return usd
}

func TestRetryThatBudgetDoesNotCoverIsNotMade(t *testing.T) {
	w := newHarness(t, withBudget(twoPasses, "{usd: 2.5}"))
	w.agent.will(call(2, 1), goes(transient))
	w.raiseOnPause(5)
	w.done()
	require.Equal(t, []string{"$0.50 of $2.50 remain; the mean of role builder is $1.00"}, w.pausedFor())
	require.Equal(t, []string{call(1, 1), call(2, 1), call(2, 2)}, w.agent.ids)
	require.InDelta(t, 3, w.dir.state(t).Total(), 1e-9)
}

func TestAgentThatStopsAtItsShareOfBudgetPausesRun(t *testing.T) {
	w := newHarness(t, withBudget(aGroup, "{usd: 6}"))
	stopped := contract.PassResult{
		Reading: run.Reading{Outcome: run.CategoryBudgetExceeded, Message: "stopped"}, Permanent: true, OverBudget: true,
	}
	w.agent.will(groupCall("critic-C", "1"), goes(stopped))
	w.raiseOnPause(20)
	w.done()
	require.Equal(t, []string{"$3.00 of $6.00 remain; the agent of role critic-C stopped at its maximum of $2.00"},
		w.pausedFor())
	require.ElementsMatch(t, []string{groupCall("critic-A", "1"), groupCall("critic-B", "1"), groupCall("critic-C", "1")},
		w.agent.ids[:3], "at the same time")
	require.Equal(t, []string{groupCall("critic-C", "2"), "g0.001.1.-.1"}, w.agent.ids[3:])
}

// TestEachBudgetPausesRun raises what is spent; the run continues.
func TestEachBudgetPausesRun(t *testing.T) {
	for budget, row := range map[string]struct {
		calls int // before the pause
		why   string
		raise message
	}{
		"{calls: 2}": {2, "2 of 2 calls are used", message{"calls": 9}},
		"{tokens: 250}": {2, "50 of 250 tokens remain; the mean of role builder is 100 tokens",
			message{"tokens": 900}},
		"{deadline: '2026-01-02T03:04:05Z'}": {0, "the deadline 2026-01-02T03:04:05Z has passed",
			message{"deadline": "2027-01-02T03:04:05Z"}},
	} {
		t.Run(budget, func(t *testing.T) {
			w := newHarness(t, strings.Replace(fourPasses, "{usd: 3, warn_at: 0.5}", budget, 1))
			for i := range 4 {
				w.agent.will(call(i+1, 1), func(ok contract.PassResult) (contract.PassResult, error) {
					ok.Spend = run.Spend{USD: 1, Tokens: run.Tokens{Input: 60, Output: 40}, Known: run.CostExact}
					return ok, nil
				})
			}
			w.onPause(func() {
				require.Len(t, w.agent.ids, row.calls)
				w.update("budget", row.raise)
				w.update("resume", nil)
			})
			w.done()
			require.Equal(t, []string{row.why}, w.pausedFor())
			require.Equal(t, run.Used{Calls: 4, Tokens: 400}, run.Used{Calls: w.dir.state(t).Used.Calls,
				Tokens: w.dir.state(t).Used.Tokens})
		})
	}
}

// TestHoursCountWorkOnly leaves out the pause.
func TestHoursCountWorkOnly(t *testing.T) {
	w := newHarness(t, strings.Replace(fourPasses, "{usd: 3, warn_at: 0.5}", "{hours: 1}", 1))
	w.agent.will(call(1, 1), goes(transient)) // waits for five seconds
	w.in.Options.TimeScale = 900
	w.onPause(func() {
		require.Len(t, w.agent.ids, 1, "the retry would begin after the hour")
		w.env.RegisterDelayedCallback(func() {
			w.env.SignalWorkflow("budget", message{"hours": 3})
			w.env.SignalWorkflow("resume", message{})
		}, 5*time.Hour)
	})
	w.done()
	require.Len(t, w.pausedFor(), 1)
	require.Regexp(t, `^1\.\d of 1 hours are used$`, w.pausedFor()[0])
	live := time.Duration(w.dir.state(t).Used.LiveMS) * time.Millisecond
	require.Greater(t, live, time.Hour)
	require.Less(t, live, 3*time.Hour, "without the pause")
}
