package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

const accountLimit = 5 // its number

// waitsForAccount is a run whose first call meets a limit of an account that resets after an hour.
func waitsForAccount(t *testing.T) *harness {
	t.Helper()
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1),
		goes(contract.PassResult{Outcome: run.CategoryRateLimit, Message: "refused", Limit: &run.Limit{
			Kind: run.LimitPlan, Reset: run.Time(startTime.Add(time.Hour)), Account: "max", AccountID: accountID,
			Number: accountLimit}}))
	return w
}

// probes are the limits whose probe was leased to the calls, in order.
func (w *harness) probes() (out []int64) {
	for _, in := range w.agent.inputs {
		out = append(out, in.Probe)
	}
	return out
}

// wakeAt sends messages of the account, some time after the start.
func (w *harness) wakeAt(after time.Duration, number int64, probe bool) {
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow(contract.AccountWake, contract.AccountMessage{Account: accountID, Number: number, Probe: probe})
	}, after)
}

func TestAccountWakesRun(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(w *harness)
		after   time.Duration // when the run makes its call
		cause   run.LimitCause
		probe   int64
	}{
		"it is leased the probe": {func(w *harness) { w.wakeAt(time.Hour, accountLimit, true) }, time.Hour, run.LimitProbe,
			accountLimit},
		"it is open": {func(w *harness) { w.wakeAt(time.Hour, accountLimit, false) }, time.Hour, run.LimitAccount, 0},
		"an earlier limit": {func(w *harness) { w.wakeAt(time.Minute, accountLimit-1, true) },
			65*time.Minute + 10*time.Second, run.LimitTimer, 0},
		"no message": {func(*harness) {}, 65*time.Minute + 10*time.Second, run.LimitTimer, 0},
		"another message": {func(w *harness) {
			w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow(contract.AccountWake, "hello") }, time.Minute)
		}, 65*time.Minute + 10*time.Second, run.LimitTimer, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := waitsForAccount(t)
			row.prepare(w)
			w.done()
			ends := payloads[run.RunUnlimited](w, run.KindRunUnlimited)
			require.Len(t, ends, 1)
			require.Equal(t, row.cause, ends[0].Cause)
			waited := w.waits[0]
			if row.cause == run.LimitTimer {
				require.GreaterOrEqual(t, waited.Round(time.Second), row.after)
				require.LessOrEqual(t, waited, row.after+time.Minute)
			}
			require.Equal(t, []int64{0, row.probe, 0}, w.probes())
			for _, start := range payloads[run.PassStart](w, run.KindPassStart) {
				require.Equal(t, 1, start.Attempt)
			}
		})
	}
}

// TestRunPassesOnTheProbe that it does not use: it was paused before the message, or after it.
func TestRunPassesOnTheProbe(t *testing.T) {
	for name, paused := range map[string]time.Duration{"before": 30 * time.Minute, "after": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := waitsForAccount(t)
			left := 0
			w.env.OnSignalExternalWorkflow(mock.Anything, contract.AccountPrefix+accountID, "", contract.AccountLeft,
				mock.Anything).Return(func(_, _, _, _ string, arg any) error {
				require.EqualValues(t, accountLimit, arg.(contract.AccountMessage).Number)
				left++
				return nil
			})
			w.env.RegisterDelayedCallback(func() {
				if paused == time.Hour {
					w.env.SignalWorkflow(contract.AccountWake, contract.AccountMessage{Account: accountID, Number: accountLimit,
						Probe: true})
				}
				w.env.SignalWorkflow("pause", nil)
			}, paused)
			w.wakeAt(2*time.Hour, accountLimit, true)
			w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, 3*time.Hour)
			w.done()
			require.Positive(t, left)
			require.Equal(t, []int64{0, contract.ProbeNow, 0}, w.probes(), "resume tries at once")
		})
	}
}
