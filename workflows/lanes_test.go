package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

const threeLanes = `
pipeline: lanes
agent: {run: [claude, -p], reply: text}
workspace: {git: worktree}
limits: {attempts: 3}
roles:
  worker: {prompt: prompt.md, gives: report}
stages:
  - name: work
    each: {in: '*.go', at_once: 3, if_failing: continue}
    steps: [{role: worker}]
`

// inLanes is a harness with six lanes, three at the same time.
func inLanes(t *testing.T, src string) *harness {
	t.Helper()
	w := newHarness(t, src)
	w.items = []string{"a", "b", "c", "d", "e", "f"}
	w.fresh()
	return w
}

// expand lists the items of the test.
func (w *harness) expand(_ context.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
	res := contract.ExpandResult{List: "list", Count: len(w.items)}
	for _, name := range w.items[min(in.From, len(w.items)):] {
		res.Items = append(res.Items, contract.LaneItem{Key: name, Name: name})
	}
	return res, nil
}

func (w *harness) registerLanes() {
	w.env.RegisterActivityWithOptions(w.expand, activity.RegisterOptions{Name: contract.ExpandLanes})
	if w.merges != nil {
		w.env.RegisterActivityWithOptions(w.merges.merge, activity.RegisterOptions{Name: contract.MergeLane})
	}
}

// laneCall is the id of the nth call in a lane.
func laneCall(key string, n string) string { return "g0.work/1.1." + key + "." + n }

// The other lanes work while two wait for limits.
func TestLimitStopsOneLane(t *testing.T) {
	w := inLanes(t, threeLanes)
	w.agent.will(laneCall("a", "1"), meets(run.LimitPlan, 3*time.Hour))
	w.agent.will(laneCall("b", "1"), meets(run.LimitPlan, 2*time.Hour))
	w.onLimit(func() {
		s := w.dir.state(t)
		require.Equal(t, 4, s.Lanes.Done)
		require.Equal(t, run.WaitingLimit, s.Status)
	})
	w.done()
	require.GreaterOrEqual(t, w.env.Now().Sub(startTime), 3*time.Hour)
	require.Equal(t, []string{laneCall("b", "2"), laneCall("a", "2")}, w.agent.ids[6:], "each as its own limit resets")
	w.requireFirstAttempts()
	require.Nil(t, w.dir.state(t).Limited)
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
	w := inLanes(t, threeLanes)
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
	w := inLanes(t, strings.Replace(strings.Replace(threeLanes, ", if_failing: continue", "", 1), "attempts: 3",
		"attempts: 1", 1))
	w.agent.will(laneCall("b", "1"), goes(transient))
	w.dir.when(run.KindQuestionAwaited, func() { w.signal("decide", message{"action": "halt"}) })
	w.dir.when(run.KindGateRequested, func() { w.signal("decide", message{"action": "halt"}) })
	w.executeHalted()
	require.LessOrEqual(t, len(w.itemsCalled()), 6)
	require.NotContains(t, w.ended(), "b done")
}

// Without a valid list the run pauses at the step with the list, which a resume repeats.
func TestMissingListPausesAtItsStep(t *testing.T) {
	w := inLanes(t, strings.NewReplacer("roles:\n", "roles:\n  planner: {prompt: prompt.md, gives: list}\n", "stages:\n",
		"stages:\n  - name: planning\n    steps: [{role: planner, as: plan}]\n", "'*.go'", "plan.items").Replace(threeLanes))
	w.agent.will("g0.001.1.-.1", goes(noSections))
	w.agent.will("g0.001.1.-.2", goes(noSections))
	w.onPause(func() {
		s := w.dir.state(t)
		require.Equal(t, run.PassFailed, s.Reason)
		require.Zero(t, s.Next.Stage)
		w.signal("resume", message{})
	})
	w.done()
	require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
}

// A cancelled run starts no further lane.
func TestCancelEndsLanes(t *testing.T) {
	w := inLanes(t, threeLanes)
	w.inFirstLanes(w.env.CancelWorkflow)
	_, err := w.execute()
	require.Error(t, err)
	require.Equal(t, []run.RunEnd{{Status: run.Cancelled}}, payloads[run.RunEnd](w, run.KindRunEnd))
	require.Less(t, len(w.itemsCalled()), 6)
	require.Equal(t, run.Cancelled, w.dir.state(t).Status)
}

// Lanes that the budget does not cover do not start. After it is raised, each item is called once.
func TestBudgetStopsLanes(t *testing.T) {
	w := inLanes(t, withBudget(strings.Replace(threeLanes, "reply: text", "reply: claude-json", 1), "{usd: 4}"))
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
