package workflows_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func groupCall(member string, try string) string { return "g0.look/1.1." + member + "." + try }

// TestMembersRunConcurrentlyAndSettleInOrder: all members are called before one answers, and they answer in another
// order than the definition lists them.
func TestMembersRunConcurrentlyAndSettleInOrder(t *testing.T) {
	w := newHarness(t, aGroup)
	var all sync.WaitGroup
	all.Add(3)
	answered := map[string]chan struct{}{"": make(chan struct{}), "critic-C": make(chan struct{}),
		"critic-B": make(chan struct{}), "critic-A": make(chan struct{})}
	close(answered[""])
	for member, before := range map[string]string{"critic-C": "", "critic-B": "critic-C", "critic-A": "critic-B"} {
		w.agent.will(groupCall(member, "1"), after(func() {
			all.Done()
			all.Wait()
			<-answered[before]
			close(answered[member])
		}))
	}
	w.done()
	require.Equal(t, []string{"pass.end look/1 critic-A", "pass.end look/1 critic-B", "pass.end look/1 critic-C",
		"pass.end 001"}, w.story(run.KindPassEnd))
	require.Equal(t, []string{"pass.start look/1 critic-A", "pass.start look/1 critic-B", "pass.start look/1 critic-C",
		"pass.start 001"}, w.story(run.KindPassStart))
}

// A pause within a group does not change the order of its replies: the question of the next step is the same.
func TestRepliesOfAResumedGroupKeepTheirOrder(t *testing.T) {
	w := newHarness(t, aGroup)
	w.agent.will(groupCall("critic-A", "1"), goes(permanent))
	w.agent.will(groupCall("critic-B", "1"), goes(permanent))
	w.onPause(func() { w.signal("resume", message{}) })
	var seen []string
	w.composing = func(in contract.ComposeInput) {
		for _, r := range in.Context.Replies {
			seen = append(seen, r.Role)
		}
	}
	w.done()
	require.Equal(t, []string{"pass.end look/1 critic-C", "run.paused", "run.resumed", "pass.end look/1 critic-A",
		"pass.end look/1 critic-B", "pass.end 001"}, w.story(run.KindPassEnd, run.KindRunPaused, run.KindRunResumed))
	require.Equal(t, 1, w.agent.calls[groupCall("critic-C", "1")], "what was answered is not asked again")
	require.Equal(t, 1, w.agent.calls[groupCall("critic-A", "2")])
	require.Equal(t, 1, w.agent.calls[groupCall("critic-B", "2")])
	require.Equal(t, []string{"critic-A", "critic-B", "critic-C"}, seen)
}

func TestThirdFailedStartNeedsForce(t *testing.T) {
	w := newHarness(t, twoPasses)
	for try := 1; try <= 3; try++ {
		w.agent.will(call(1, try), goes(permanent))
	}
	var refused, unexplained error
	w.onEachPause(func(n int) {
		if n < 3 {
			w.signal("resume", message{})
			return
		}
		answer := w.update("resume", message{})
		bare := w.update("resume", message{"force": true})
		w.env.RegisterDelayedCallback(func() {
			refused = answer.refused
			unexplained = bare.refused
			w.signal("resume", message{"force": true})
			w.signal("resume", message{"force": true, "reason": "the cause is fixed"})
		}, time.Second)
	})
	w.done()
	require.Empty(t, w.waits, "a permanent failure pauses at once")
	reasons := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, reasons, 3)
	require.Equal(t, []string{run.PassFailed, run.PassFailed, run.ConsecutiveFailures},
		[]string{reasons[0].Reason, reasons[1].Reason, reasons[2].Reason})
	require.ErrorContains(t, refused, "001 failed in 3 consecutive starts")
	require.ErrorContains(t, refused, "starter resume run-1 --force")
	resumed := payloads[run.RunResumed](w, run.KindRunResumed)
	require.Len(t, resumed, 3)
	require.True(t, resumed[2].Force)
	require.Equal(t, "the cause is fixed", resumed[2].Why)
	require.ErrorContains(t, unexplained, "force needs a reason")
	output := payloads[run.DecisionRefused](w, run.KindDecisionRefused)
	require.Len(t, output, 1, "the signal without a reason")
	require.Contains(t, output[0].Reason, "force needs a reason, run: starter resume run-1 --force --reason TEXT")
	require.Nil(t, w.dir.state(t).Failure)
}

func TestThreeConsecutiveFailedPassesPause(t *testing.T) {
	w := newHarness(t, strings.Replace(fourPasses, "usd: 3", "usd: 30", 1))
	for pass := 1; pass <= 3; pass++ {
		for try := 1; try <= 2; try++ {
			w.agent.will(call(pass, try), goes(noSections))
		}
	}
	w.onPause(func() {
		require.NotContains(t, w.agent.ids, call(4, 1), "the fourth is not called")
		w.signal("resume", message{"force": true, "note": "fixed"})
	})
	w.done()
	require.Equal(t, run.ConsecutiveFailures, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
	require.Equal(t, run.CategoryOK, payloads[run.PassEnd](w, run.KindPassEnd)[3].Outcome)
}

func TestPermanentErrorProjectsFailedRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.in.Start.Stages = append(w.in.Start.Stages, run.StageRef{Name: "more than the plan has"})
	_, err := w.execute()
	require.ErrorContains(t, err, "the plan has 1 stages")
	require.Equal(t, run.Failed, w.dir.state(t).Status)
	require.NotEmpty(t, payloads[run.RunEnd](w, run.KindRunEnd)[0].Reason)
}
