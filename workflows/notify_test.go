package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// fakeReceivers receive notices, after a number of failures.
type fakeReceivers struct {
	mu    sync.Mutex
	fails map[int]int // by receiver
	got   []contract.NotifyInput
	at    func(contract.NotifyInput)
}

func (f *fakeReceivers) Notify(_ context.Context, in contract.NotifyInput) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at != nil {
		f.at(in)
	}
	if f.fails[in.Receiver] > 0 {
		f.fails[in.Receiver]--
		return errors.New("the webhook is down")
	}
	f.got = append(f.got, in)
	return nil
}

// events are those that one receiver has notices of.
func (f *fakeReceivers) events(receiver int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, in := range f.got {
		if in.Receiver == receiver {
			out = append(out, fmt.Sprintf("%s %s", in.Notice.Event, in.Notice.Status))
		}
	}
	return out
}

// oneAsk asks after its first pass.
const oneAsk = head + `
stages:
  - name: build
    steps: [{role: builder}, {ask: "Is it good?"}, {role: builder}]
`

// twoReceivers has two receivers: one of everything, one of what goes wrong.
const twoReceivers = `
notify:
  - {run: [bell]}
  - {webhook: "https://hooks.example.org/secret", on: [pause, failure], give_up: 1h}
`

func TestNoticesGoToSubscribedReceivers(t *testing.T) {
	w := newHarness(t, oneAsk+twoReceivers)
	w.dir.when(run.KindHandoffRequested, func() { w.signal("decide", message{"action": "continue"}) })
	w.received.at = func(in contract.NotifyInput) {
		require.GreaterOrEqual(t, int64(len(w.dir.events(t))), in.Notice.Seq, "its event is on disk")
	}
	w.done()
	require.ElementsMatch(t, []string{"question awaiting_phase_handoff", "end done"}, w.received.events(0),
		"each is a separate workflow: no order is promised")
	require.Empty(t, w.received.events(1), "it did not ask for these")

	n := w.received.got[slices.IndexFunc(w.received.got,
		func(in contract.NotifyInput) bool { return in.Notice.Event == "question" })].Notice
	asked := payloads[run.QuestionRequested](w, run.KindHandoffRequested)[0]
	require.Equal(t, asked.ID, n.QuestionID)
	require.Equal(t, "Is it good?", n.Question)
	require.Equal(t, []string{"continue", "retry_feedback", "halt"}, n.Actions[:3])
	require.Contains(t, n.Next, "starter decide /runs/1 --action continue")
}

func TestFailingReceiverDoesNotBlockRun(t *testing.T) {
	w := newHarness(t, twoPasses+twoReceivers)
	w.received.fails = map[int]int{0: 5, 1: 5}
	w.env.RegisterDelayedCallback(func() { w.signal("pause", nil) }, 0)
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	s := w.dir.state(t)
	require.Equal(t, run.Time(startTime), s.FinishedAt, "the run waited for it")
	require.Contains(t, w.received.events(0), "pause paused", "it was tried again")
}

func TestNotifyFailureIsJournaled(t *testing.T) {
	w := newHarness(t, oneAsk+twoReceivers)
	w.received.fails = map[int]int{0: 1 << 30}
	w.dir.when(run.KindErrorNoted, func() { w.signal("decide", message{"action": "continue"}) })
	w.done()
	noted := payloads[run.ErrorNoted](w, run.KindErrorNoted)
	require.Len(t, noted, 1)
	require.Equal(t, "notify", noted[0].Context)
	require.False(t, noted[0].Recovered)
	require.Regexp(t, `^send the notice of event \d+ \(question\): bell: .*the webhook is down`, noted[0].Message)
}

func TestFailureAndCancelSendNotices(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		w := newHarness(t, twoPasses+twoReceivers)
		w.agent.will(
			call(1, 1), breaks(temporal.NewNonRetryableApplicationError("the plan is gone", contract.ErrBadInput, nil)),
		)
		_, err := w.execute()
		require.Error(t, err)
		require.Equal(t, []string{"failure failed"}, w.received.events(0))
		require.Equal(t, []string{"failure failed"}, w.received.events(1))
	})
	t.Run("cancelled", func(t *testing.T) {
		w := newHarness(t, twoPasses+twoReceivers)
		w.dir.when(run.KindPassStart, w.env.CancelWorkflow)
		_, err := w.execute()
		require.Error(t, err)
		require.Equal(t, []string{"end cancelled"}, w.received.events(0))
	})
}

func TestCancelKeepsPendingNotices(t *testing.T) {
	w := newHarness(t, oneAsk+twoReceivers)
	w.received.fails = map[int]int{0: 3}
	w.received.at = func(in contract.NotifyInput) {
		if in.Notice.Event == "question" {
			w.env.CancelWorkflow()
		}
	}
	_, err := w.execute()
	require.Error(t, err)
	require.ElementsMatch(t, []string{"question awaiting_phase_handoff", "end cancelled"}, w.received.events(0))
}

func TestHistoryReplaySendsNoNoticeTwice(t *testing.T) {
	w := newHarness(t, twoPasses+twoReceivers)
	branched(w, run.ModeReplay, run.UseRecorded)
	w.agent.will(call(2, 1), reuse)
	w.done()
	require.Equal(t, []string{"end done"}, w.received.events(0))
}

func TestNoReceiversStartNoChild(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.env.OnWorkflow(contract.NotifyWorkflow, nil, nil).Panic("a child was started").Maybe()
	w.done()
	require.Empty(t, w.received.got)
}

// TestLastNoticeNamesTheResult and the command that takes it.
func TestLastNoticeNamesTheResult(t *testing.T) {
	w := newHarness(t, judged)
	w.in.Start.Receivers = []run.Receiver{{Name: "ops", On: []string{"end"}}}
	w.ends(run.Done, "")
	require.Len(t, w.received.got, 1)
	require.Equal(t, "1 file on branch result; to take the result: git merge result", w.received.got[0].Notice.Detail)
}
