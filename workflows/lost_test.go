package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

func TestALostDeliveryKeepsItsCall(t *testing.T) {
	stopping := temporal.NewNonRetryableApplicationError("the worker stopped", work.ErrWorkerStopping, nil)
	tests := []struct {
		name    string
		err     error
		message string
		queue   string // of the redelivery
	}{
		{"heard of before", temporal.NewHeartbeatTimeoutError(work.Heartbeat{Host: "far"}), "the worker was not heard of any more", "passbook-calls-far"},
		{"never heard of", temporal.NewHeartbeatTimeoutError(), "the worker was not heard of any more", "passbook-calls"},
		{"answered, not stored", temporal.NewApplicationError("the store is away", work.ErrUnstored, work.Heartbeat{Host: "far"}), "the store is away", "passbook-calls-far"},
		{"stopping", stopping, "the worker stopped", "passbook-calls"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, twoPasses)
			w.agent.will(call(1, 1), breaks(tt.err))
			w.done()
			require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids, "the same call is delivered again")
			require.Equal(t, []string{"passbook-calls", tt.queue, "passbook-calls"}, w.agent.queues)
			attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
			require.Len(t, attempts, 1)
			require.Equal(t, "lost", attempts[0].Category)
			require.Equal(t, tt.message, attempts[0].Message)
			require.False(t, attempts[0].Judged)
			require.Equal(t, 1, payloads[run.PassEnd](w, run.KindPassEnd)[0].Attempts)
			require.Empty(t, w.waits, "the first loss is not waited for")
		})
	}
}

// TestAHandedOverCallIsNoLostAttempt: its worker stopped, and the next one of that host joins it. A call that another host has claimed is waited for there.
func TestAHandedOverCallIsNoLostAttempt(t *testing.T) {
	nowhere := temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	gives := func(res work.PassResult) script {
		return func(work.PassResult) (work.PassResult, error) { return res, nil }
	}
	tests := []struct {
		name   string
		first  []script
		queues []string
	}{
		{"handed over", []script{gives(work.PassResult{HandedOver: "far"})}, []string{"passbook-calls", "passbook-calls-far", "passbook-calls"}},
		{
			"elsewhere, and the host is gone",
			[]script{gives(work.PassResult{Elsewhere: &work.Elsewhere{Host: "far", Until: "2020-01-02T03:04:05.000Z"}}), breaks(nowhere)},
			[]string{"passbook-calls", "passbook-calls-far", "passbook-calls", "passbook-calls"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, twoPasses)
			w.agent.will(call(1, 1), tt.first...)
			w.done()
			require.Equal(t, tt.queues, w.agent.queues)
			require.Empty(t, payloads[run.PassAttempt](w, run.KindPassAttempt))
			require.Empty(t, w.waits)
		})
	}
}

func TestWorkersThatAreLostAgainAndAgainAreWaitedFor(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.agent.will(call(1, 1), times(7, breaks(errors.New("the store is away")))...)
	w.done()
	require.Equal(t, 8, w.agent.calls[call(1, 1)])
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second}, w.waits)
}

// TestAnAnswerWaitsForItsStore however long that is away: the call is paid for. Other losses are given up.
func TestAnAnswerWaitsForItsStore(t *testing.T) {
	unstored := temporal.NewApplicationError("the store is away", work.ErrUnstored, work.Heartbeat{Host: "far"})
	w := newWorld(t, twoPasses)
	w.agent.will(call(1, 1), times(50, breaks(unstored))...)
	w.done()
	require.Equal(t, 51, w.agent.calls[call(1, 1)])
	require.Len(t, payloads[run.PassAttempt](w, run.KindPassAttempt), 20, "the later tries have no lines")
}

func TestAHostThatTakesNothingIsNotAskedTwice(t *testing.T) {
	w := newWorld(t, twoPasses)
	nowhere := temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
	w.agent.will(call(1, 1), breaks(temporal.NewHeartbeatTimeoutError(work.Heartbeat{Host: "far"})), breaks(nowhere))
	w.done()
	require.Equal(t, []string{"passbook-calls", "passbook-calls-far", "passbook-calls", "passbook-calls"}, w.agent.queues)
	require.Len(t, payloads[run.PassAttempt](w, run.KindPassAttempt), 1, "a delivery that nobody took is no attempt")
}
