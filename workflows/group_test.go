package workflows_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

func groupCall(member string, try string) string { return "g0.look/1.1." + member + "." + try }

func TestMembersRunConcurrentlyAndSettleInOrder(t *testing.T) {
	w := newHarness(t, aGroup)
	var all sync.WaitGroup
	all.Add(3)
	together := func() { all.Done(); all.Wait() } // nobody answers before everybody was asked
	answered := make(chan string, 3)
	turns := map[string]chan struct{}{
		"critic-C": make(chan struct{}), "critic-B": make(chan struct{}), "critic-A": make(chan struct{}),
	}
	answer := func(member, next string) script {
		return after(func() {
			together()
			<-turns[member]
			answered <- member
			if next != "" {
				close(turns[next])
			}
		})
	}
	close(turns["critic-C"])
	w.agent.will(groupCall("critic-C", "1"), answer("critic-C", "critic-B"))
	w.agent.will(groupCall("critic-B", "1"), answer("critic-B", "critic-A"))
	w.agent.will(groupCall("critic-A", "1"), answer("critic-A", ""))
	w.done()

	close(answered)
	require.Equal(t, []string{"critic-C", "critic-B", "critic-A"}, []string{<-answered, <-answered, <-answered})
	require.Equal(
		t, []string{"pass.end look/1 critic-A", "pass.end look/1 critic-B", "pass.end look/1 critic-C", "pass.end 001"},
		w.story(run.KindPassEnd),
	)
	require.Equal(
		t, []string{
			"pass.start look/1 critic-A", "pass.start look/1 critic-B", "pass.start look/1 critic-C", "pass.start 001",
		}, w.story(run.KindPassStart),
	)
}

func TestFailedMemberIsRetriedAlone(t *testing.T) {
	w := newHarness(t, aGroup)
	w.agent.will(groupCall("critic-B", "1"), goes(transient))
	w.done()
	require.Equal(t, map[string]int{
		groupCall("critic-A", "1"): 1, groupCall("critic-B", "1"): 1, groupCall("critic-B", "2"): 1,
		groupCall("critic-C", "1"): 1, "g0.001.1.-.1": 1,
	}, w.agent.calls)
}

func TestResumedGroupAsksMissingMembers(t *testing.T) {
	w := newHarness(t, aGroup)
	w.agent.will(groupCall("critic-B", "1"), goes(permanent))
	w.agent.will(groupCall("critic-C", "1"), goes(permanent))
	w.onPause(func() { w.signal("resume", message{}) })
	w.done()
	require.Equal(t, 1, w.agent.calls[groupCall("critic-A", "1")], "what was answered is not asked again")
	require.Equal(t, 1, w.agent.calls[groupCall("critic-B", "2")])
	require.Equal(t, 1, w.agent.calls[groupCall("critic-C", "2")])
	require.Equal(t, []string{
		"pass.end look/1 critic-A", "run.paused", "run.resumed", "pass.end look/1 critic-B", "pass.end look/1 critic-C",
		"pass.end 001",
	}, w.story(run.KindPassEnd, run.KindRunPaused, run.KindRunResumed))
	require.Equal(t, run.PassFailed, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
}

func TestLaterStepSeesAllGroupReplies(t *testing.T) {
	w := newHarness(t, aGroup)
	var seen []string
	w.composing = func(in contract.ComposeInput) {
		for _, r := range in.Context.Replies {
			seen = append(seen, r.Role)
		}
	}
	w.done()
	require.Equal(t, []string{"critic-A", "critic-B", "critic-C"}, seen)
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
	require.Equal(t, []string{"pass.end look/1 critic-C", "pass.end look/1 critic-A", "pass.end look/1 critic-B",
		"pass.end 001"}, w.story(run.KindPassEnd))
	require.Equal(t, []string{"critic-A", "critic-B", "critic-C"}, seen)
}
