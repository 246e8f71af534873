package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestLostDeliveryKeepsCallID: a call whose delivery is lost is delivered again, to the host that knows of it, or to
// any if no worker polls there. What was only handed over is not lost.
func TestLostDeliveryKeepsCallID(t *testing.T) {
	const any, far = "passbook-calls", "passbook-calls-far"
	heard := contract.Heartbeat{Host: "far"}
	nowhere := breaks(temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil))
	gives := func(res contract.PassResult) script {
		return func(contract.PassResult) (contract.PassResult, error) { return res, nil }
	}
	for name, row := range map[string]struct {
		first  []script
		queues []string
		lost   int
	}{
		"with a heartbeat":    {[]script{breaks(temporal.NewHeartbeatTimeoutError(heard))}, []string{any, far, any}, 1},
		"without a heartbeat": {[]script{breaks(temporal.NewHeartbeatTimeoutError())}, []string{any, any, any}, 1},
		"answered, not stored": {[]script{breaks(temporal.NewApplicationError("the store is away", contract.ErrUnstored,
			heard))}, []string{any, far, any}, 1},
		"the worker stops": {[]script{breaks(temporal.NewNonRetryableApplicationError("bye", contract.ErrWorkerStopping,
			nil))}, []string{any, any, any}, 1},
		"the host is gone": {[]script{breaks(temporal.NewHeartbeatTimeoutError(heard)), nowhere},
			[]string{any, far, any, any}, 1},
		"handed over": {[]script{gives(contract.PassResult{HandedOver: "far"})}, []string{any, far, any}, 0},
		"claimed by a host that is gone": {[]script{gives(contract.PassResult{ClaimedBy: &contract.HostClaim{Host: "far",
			Until: "2020-01-02T03:04:05.000Z"}}), nowhere}, []string{any, far, any, any}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), row.first...)
			w.done()
			require.Equal(t, row.queues, w.agent.queues)
			require.Equal(t, map[string]int{call(1, 1): len(row.first) + 1, call(2, 1): 1}, w.agent.calls)
			attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
			require.Len(t, attempts, row.lost)
			for _, a := range attempts {
				require.Equal(t, run.CategoryLost, a.Category)
				require.False(t, a.Judged)
			}
			require.Equal(t, 1, payloads[run.PassEnd](w, run.KindPassEnd)[0].Attempts)
			require.Empty(t, w.waits, "the first loss is not waited for")
		})
	}
}

func TestRepeatedWorkerLossBacksOff(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), times(7, breaks(errors.New("the store is away")))...)
	w.done()
	require.Equal(t, 8, w.agent.calls[call(1, 1)])
	require.Equal(
		t, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second,
		}, w.waits,
	)
}

func TestUnstoredAnswerIsRedelivered(t *testing.T) {
	unstored := temporal.NewApplicationError("the store is away", contract.ErrUnstored, contract.Heartbeat{Host: "far"})
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), times(50, breaks(unstored))...)
	w.done()
	require.Equal(t, 51, w.agent.calls[call(1, 1)])
	require.Len(t, payloads[run.PassAttempt](w, run.KindPassAttempt), 20, "the later tries have no lines")
}

func TestRepeatedlyLostCallPausesRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), times(20, breaks(errors.New("the store is damaged")))...)
	w.onPause(func() { w.signal("resume", message{}) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.PassFailed, paused[0].Reason)
	require.Equal(t, run.CategoryUnknown, paused[0].Failed.Category)
	all := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Equal(t, run.CategoryUnknown, all[len(all)-1].Category)
	require.Contains(t, all[len(all)-1].Message, "001 builder was lost 20 times: the store is damaged")
	require.Equal(t, 21, w.agent.calls[call(1, 1)], "nothing was judged: the call keeps its id")
}

// shared makes the run's store one that hosts share.
func (w *harness) shared() *harness {
	w.in.Target.Store = "s3://runs"
	return w
}

func noStore(host string) error {
	return temporal.NewApplicationErrorWithOptions("list s3://runs: the store is not reachable", contract.ErrNoStore,
		temporal.ApplicationErrorOptions{Details: []any{contract.Heartbeat{Host: host}}})
}

func noProgram() error {
	return temporal.NewNonRetryableApplicationError("start agent scripted: not found", contract.ErrNoProgram, nil)
}

func TestUnreachableStoreDelaysRun(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		most time.Duration // of the waits between two local activities
	}{
		{"reported", noStore("here"), time.Minute},
		{"anything else", errors.New("no credentials"), 2 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, twoPasses).shared()
			for range 20 { // the attempts of one local activity end after a minute
				w.away = append(w.away, row.err)
			}
			var held contract.HeldAnswer
			w.env.RegisterDelayedCallback(func() {
				held = query[contract.HeldAnswer](w, contract.QueryHeld)
			}, 100*time.Second)
			w.done()
			require.Empty(t, w.away)
			require.Contains(t, w.waits, row.most)
			require.False(t, held.Held, "that is a full disk")
			if row.most == time.Minute {
				require.True(t, held.Waiting)
				require.Equal(t, "list s3://runs: the store is not reachable", held.Message)
			}
			require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
		})
	}
}

func TestCallWaitsForCapableHost(t *testing.T) {
	const any = "passbook-calls-scripted"
	for _, row := range []struct {
		name   string
		errs   []error
		queues []string
	}{
		{"the program", []error{noProgram(), noProgram()}, []string{any, any, any, any}},
		{
			"the store, also on the host of the answer", []error{noStore("far"), noStore("far"), noStore("far")},
			[]string{any, "passbook-calls-far", any, "passbook-calls-far", any},
		},
		{"the store of an unknown host", []error{noStore("")}, []string{any, any, any}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, twoPasses).shared()
			for _, err := range row.errs {
				w.agent.will(call(1, 1), breaks(err))
			}
			w.done()
			require.Equal(t, row.queues, w.agent.queues)
			require.Empty(t, payloads[run.PassAttempt](w, run.KindPassAttempt), "what a host lacks is not an attempt")
			require.Len(t, w.waits, len(row.errs))
		})
	}
}

func TestPauseEndsWaitForHost(t *testing.T) {
	w := newHarness(t, twoPasses).shared()
	w.agent.will(call(1, 1), times(8, breaks(noProgram()))...)
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(contract.VerbPause, message{}) }, 30*time.Second)
	w.env.RegisterDelayedCallback(func() {
		require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
		w.env.SignalWorkflow(contract.VerbResume, message{})
	}, time.Hour)
	w.done()
}

func TestRecoveredProjectionErrorIsJournaled(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){2: func() {
		w.dir.troubles = []contract.RecoveredError{{Category: "file-io", Message: "read-only file system", Attempt: 4},
			{
				Category: "state-corruption", Message: "state.json is damaged",
			}}
	}}
	w.done()
	require.Equal(t, []run.ErrorNoted{
		{Category: "file-io", Message: "read-only file system", Recovered: true, Attempt: 4},
		{Category: "state-corruption", Message: "state.json is damaged", Recovered: true},
	}, payloads[run.ErrorNoted](w, run.KindErrorNoted))
	require.Equal(t, run.CategoryStateCorruption, w.status().Problem.Category)
}

func TestNothingIsJournaledAfterEnd(t *testing.T) {
	whole := newHarness(t, twoPasses)
	whole.done()
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){
		len(whole.dir.batches): func() {
			w.dir.troubles = []contract.RecoveredError{{Category: "file-io",
				Message: "late"}}
		},
	}
	w.done()
	require.Empty(t, w.dir.troubles, "it was reported")
	events := w.dir.events(t)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
}
