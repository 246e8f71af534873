package workflows_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// sixLanes works on six items, three at the same time.
func sixLanes(t *testing.T, src string) *harness {
	t.Helper()
	w := inLanes(t, src)
	w.items = []string{"a", "b", "c", "d", "e", "f"}
	return w
}

// itemsCalled lists the items that were called, in order of their names.
func (w *harness) itemsCalled() (all []string) {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	for _, id := range w.agent.ids {
		all = append(all, strings.Split(id, ".")[3])
	}
	slices.Sort(all)
	return all
}

// ended lists the lanes that ended, with their outcomes, in order of their names.
func (w *harness) ended() (all []string) {
	for _, l := range payloads[run.LaneEnded](w, run.KindLaneEnded) {
		all = append(all, l.Name+" "+l.Outcome)
	}
	slices.Sort(all)
	return all
}

var allDone = []string{"a done", "b done", "c done", "d done", "e done", "f done"}

// inFirstLanes calls do in the call of lane b. The lanes beside it, a and c, end after it.
func (w *harness) inFirstLanes(do func()) {
	done := make(chan struct{})
	w.agent.will(laneCall("b", "1"), after(func() { do(); close(done) }))
	for _, lane := range []string{"a", "c"} {
		w.agent.will(laneCall(lane, "1"), after(func() { <-done }))
	}
}

// A pause lets the calls of all lanes end, and a resume continues without a second call.
func TestPauseWaitsForCallsOfLanes(t *testing.T) {
	w := sixLanes(t, threeLanes)
	w.inFirstLanes(func() { w.signal("pause", nil) })
	var paused run.State
	w.onPause(func() {
		paused = w.dir.state(t)
		w.signal("resume", nil)
	})
	w.done()
	require.Empty(t, paused.InFlight)
	require.Less(t, paused.Lanes.Begun, 6, "no lane begins after the request")
	require.Equal(t, w.items, w.itemsCalled())
	require.Equal(t, allDone, w.ended())
}

// A halt of the question about a lane ends the run; nothing else is called.
func TestHaltEndsRunWithLanes(t *testing.T) {
	w := sixLanes(t, strings.Replace(strings.Replace(threeLanes, ", if_failing: continue", "", 1), "attempts: 3",
		"attempts: 1", 1))
	w.agent.will(laneCall("b", "1"), goes(transient))
	w.dir.when(run.KindQuestionAwaited, func() { w.signal("decide", message{"action": "halt"}) })
	w.dir.when(run.KindGateRequested, func() { w.signal("decide", message{"action": "halt"}) })
	r, err := w.execute()
	require.NoError(t, err)
	require.Equal(t, run.Halted, r.Status)
	require.LessOrEqual(t, len(w.itemsCalled()), 6)
	require.NotContains(t, w.ended(), "b done")
}

// A cancelled run starts no further lane.
func TestCancelEndsLanes(t *testing.T) {
	w := sixLanes(t, threeLanes)
	w.inFirstLanes(w.env.CancelWorkflow)
	_, err := w.execute()
	require.Error(t, err)
	require.Equal(t, []run.RunEnd{{Status: run.Cancelled}}, payloads[run.RunEnd](w, run.KindRunEnd))
	require.Less(t, len(w.itemsCalled()), 6)
	require.Equal(t, run.Cancelled, w.dir.state(t).Status)
}

// Lanes that the budget does not cover do not start. After it is raised, each item is called once.
func TestBudgetStopsLanes(t *testing.T) {
	w := sixLanes(t, withBudget(strings.Replace(threeLanes, "reply: text", "reply: claude-json", 1), "{usd: 4}"))
	var paused run.State
	var before []string
	w.onPause(func() {
		paused, before = w.dir.state(t), w.itemsCalled()
		w.signal("budget", message{"usd": 20})
		w.signal("resume", nil)
	})
	w.done()
	require.Equal(t, run.BudgetThreshold, paused.Reason)
	require.LessOrEqual(t, paused.Total(), 4.0, "lanes together keep to the budget")
	require.Len(t, before, 4)
	require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
	require.Equal(t, w.items, w.itemsCalled())
	require.Equal(t, allDone, w.ended())
}

// An amendment counts for the lanes that begin after it.
func TestAmendmentCountsForLaterLanes(t *testing.T) {
	one := strings.Replace(threeLanes, "at_once: 3", "at_once: 1", 1)
	w := amendable(t, one)
	w.items = []string{"a", "b", "c", "d", "e", "f"}
	first := w.in.Start.Plan
	next := w.given(strings.Replace(one, "attempts: 3", "attempts: 2", 1), "second")
	w.agent.will(laneCall("a", "1"), after(func() {
		w.journaled("amend", message{"plan": next}, run.KindRunAmended)
	}))
	w.done()
	require.Equal(t, w.items, w.itemsCalled())
	plans := map[string]string{}
	for i, id := range w.agent.ids {
		plans[strings.Split(id, ".")[3]] = w.agent.inputs[i].At.Plan
	}
	require.Equal(t, first, plans["a"])
	require.Equal(t, next.Plan, plans["b"])
}
