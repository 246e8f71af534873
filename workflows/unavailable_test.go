package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

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
			var held workflows.HeldAnswer
			w.env.RegisterDelayedCallback(func() {
				v, err := w.env.QueryWorkflow(workflows.QueryHeld)
				require.NoError(t, err)
				require.NoError(t, v.Get(&held))
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
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(workflows.VerbPause, message{}) }, 30*time.Second)
	w.env.RegisterDelayedCallback(func() {
		require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
		w.env.SignalWorkflow(workflows.VerbResume, message{})
	}, time.Hour)
	w.done()
}
