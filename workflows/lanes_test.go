package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
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

// inLanes is a harness with lanes a, b and c.
func inLanes(t *testing.T, src string) *harness {
	t.Helper()
	w := newHarness(t, src)
	w.items = []string{"a", "b", "c"}
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

// A run waits for a limit when all its lanes do, and makes each call again.
func TestLanesWaitForLimit(t *testing.T) {
	w := inLanes(t, threeLanes)
	for _, key := range w.items {
		w.agent.will(laneCall(key, "1"), meets(run.LimitPlan, 3*time.Hour))
	}
	w.onLimit(func() {
		s := w.dir.state(t)
		require.Equal(t, run.WaitingLimit, s.Status)
		require.Len(t, s.Limited.Calls(), 3)
	})
	w.done()
	require.Len(t, payloads[run.RunLimited](w, run.KindRunLimited), 1)
	require.GreaterOrEqual(t, w.env.Now().Sub(startTime), 3*time.Hour)
	require.Len(t, w.agent.ids, 6)
	for _, start := range payloads[run.PassStart](w, run.KindPassStart) {
		require.Equal(t, 1, start.Attempt, "a limit uses no attempt")
	}
	require.Nil(t, w.dir.state(t).Limited)
}

// The other lanes work while one waits for a limit.
func TestLimitStopsOneLane(t *testing.T) {
	w := inLanes(t, threeLanes)
	w.items = append(w.items, "d", "e")
	w.agent.will(laneCall("a", "1"), meets(run.LimitPlan, 3*time.Hour))
	w.onLimit(func() { require.Equal(t, 4, w.dir.state(t).Lanes.Done) })
	w.done()
	require.Len(t, payloads[run.RunLimited](w, run.KindRunLimited), 1)
	require.Len(t, w.agent.ids, 6)
}

// Attempts of a lane count across executions.
func TestAttemptsOfLanesOutliveExecutions(t *testing.T) {
	w := inLanes(t, threeLanes)
	w.items = []string{"a"}
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		w.agent.will(laneCall("a", n), goes(transient))
	}
	w.dir.when(run.KindPassAttempt, func() {
		w.env.SetContinueAsNewSuggested(true)
		w.signal("budget", message{"usd": 500})
	})
	executions := w.chain(func(workflows.Input) {})
	require.Equal(t, 2, executions)
	require.Len(t, w.agent.ids, 3, w.story(run.KindPassStart, run.KindPassAttempt))
	ended := payloads[run.LaneEnded](w, run.KindLaneEnded)
	require.Len(t, ended, 1)
	require.Equal(t, run.LaneOutcomeFailed, ended[0].Outcome)
}

// Without a valid list the run pauses at the step with the list, which a resume repeats.
func TestMissingListPausesAtItsStep(t *testing.T) {
	w := inLanes(t, `
pipeline: lanes
agent: {run: [claude, -p], reply: text}
workspace: {git: worktree}
limits: {attempts: 1}
roles:
  planner: {prompt: prompt.md, gives: list}
  worker: {prompt: prompt.md, gives: report}
stages:
  - name: planning
    steps: [{role: planner, as: plan}]
  - name: work
    each: {in: plan.items}
    steps: [{role: worker}]
`)
	for _, n := range []string{"1", "2", "3"} {
		w.agent.will("g0.001.1.-."+n, goes(noSections))
	}
	paused := 0
	w.dir.when(run.KindRunPaused, func() {
		paused++
		s := w.dir.state(t)
		require.Equal(t, run.PassFailed, s.Reason)
		require.Zero(t, s.Next.Stage)
		w.agent.mu.Lock()
		w.agent.scripts = map[string][]script{}
		w.agent.mu.Unlock()
		w.signal("resume", message{})
	})
	w.done()
	require.Equal(t, 1, paused)
}
