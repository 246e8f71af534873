package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestRequestedPauseIsReported: until it begins, a requested pause is in the answer to the query; a resume cancels it.
func TestRequestedPauseIsReported(t *testing.T) {
	w := newHarness(t, twoPasses)
	var before, requested, cancelled, now string
	query := func() string {
		v, err := w.env.QueryWorkflow(workflows.QueryStatus)
		require.NoError(t, err)
		var s workflows.StatusAnswer
		require.NoError(t, v.Get(&s))
		return s.Pausing
	}
	pausing := func() string { // after the signals before it
		answer := make(chan string, 1)
		w.env.RegisterDelayedCallback(func() { answer <- query() }, 0)
		return <-answer
	}
	w.onPause(func() { now = pausing(); w.signal("resume", nil) })
	w.agent.will(call(1, 1), after(func() {
		before = pausing()
		w.signal("pause", message{"by": "ada"})
		requested = pausing()
		w.signal("resume", nil)
		cancelled = pausing()
		w.signal("pause", nil)
	}))
	w.done()
	require.Empty(t, before)
	require.Equal(t, "a pause is requested by ada: it begins after the running pass; a resume cancels it", requested)
	require.Empty(t, cancelled)
	require.Empty(t, now, "the run is paused")
}

// TestResumeDoesNotWaitForTheLastMessage: a message arrives with each projection, and each is journaled. The run
// continues nevertheless.
func TestResumeDoesNotWaitForTheLastMessage(t *testing.T) {
	w := newHarness(t, twoPasses)
	const most = 50
	resumed, sent := false, 0
	w.dir.before = map[int]func(){}
	for n := range 3 * most {
		w.dir.before[n] = func() {
			if resumed && sent < most {
				sent++
				w.signal("budget", message{"usd": 100 + sent})
			}
		}
	}
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { resumed = true; w.signal("resume", nil) })
	w.done()
	require.Len(t, w.story(run.KindBudgetRaised, run.KindDecisionRefused), sent, "the last ones follow the end")
	last := ""
	for _, event := range w.story(run.KindBudgetRaised, run.KindDecisionRefused, run.KindPassStart) {
		last = event
	}
	require.Equal(t, most, sent)
	require.NotContains(t, last, string(run.KindPassStart), "it would wait for all of them")
}
