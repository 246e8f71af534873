package workflows_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

const accountID = "0123456789abcdef"

// account is the workflow of an account in a test, with the runs that it wakes.
type account struct {
	env    *testsuite.TestWorkflowEnvironment
	began  time.Time
	gone   string   // a run that has ended
	woken  []string // run@seconds, with ! if it may make the probe
	onWake func(m contract.AccountMessage)
}

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{env: workflows.NewTestEnvironment()}
	a.began = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)
	a.env.SetStartTime(a.began)
	a.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: contract.AccountPrefix + accountID})
	a.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, "", contract.AccountWake, mock.Anything).Return(
		func(_, id, _, _ string, arg any) error {
			m := arg.(contract.AccountMessage)
			if id == a.gone {
				return errors.New("unknown external workflow execution")
			}
			mark := ""
			if m.Probe {
				mark = "!"
			}
			a.woken = append(a.woken, fmt.Sprintf("%s%s@%.0f", id, mark, a.env.Now().Sub(a.began).Seconds()))
			if a.onWake != nil {
				a.onWake(m)
			}
			return nil
		})
	return a
}

func (a *account) after(d time.Duration, kind string, m contract.AccountMessage) {
	m.Account = accountID
	a.env.RegisterDelayedCallback(func() { a.env.SignalWorkflow(kind, m) }, d)
}

func (a *account) shut(at time.Duration, runID string, number int64, until time.Duration) {
	a.after(at, contract.AccountShut, contract.AccountMessage{Run: runID, Number: number,
		Until: run.Time(a.began.Add(until))})
}

func (a *account) completes(t *testing.T) {
	t.Helper()
	a.env.ExecuteWorkflow(workflows.Account, workflows.AccountInput{})
	require.True(t, a.env.IsWorkflowCompleted())
	require.NoError(t, a.env.GetWorkflowError())
}

// TestLeasePassesOn: at the reset one run may make a call; when the provider answers, all others. The lease passes on
// when its run waits, makes no call, has ended, or starts nothing in two minutes.
func TestLeasePassesOn(t *testing.T) {
	for _, row := range []struct {
		name string
		does func(a *account)
		want []string
	}{
		{"it answers", func(a *account) { // the earlier limit of c does not count
			a.shut(0, "c", 1, 90*time.Second)
			a.after(110*time.Second, contract.AccountStarted, contract.AccountMessage{Run: "a", Number: 1})
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "a", Number: 1})
		}, []string{"a!@100", "a@120", "b@120", "c@120"}},
		{"it makes no call", func(a *account) {
			a.after(110*time.Second, contract.AccountLeft, contract.AccountMessage{Run: "a", Number: 1})
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@110", "b@120", "c@120"}},
		{"it has ended", func(a *account) {
			a.gone = "a"
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"b!@100", "b@120", "c@120"}},
		{"it waits again", func(a *account) {
			a.shut(110*time.Second, "a", 1, 100*time.Second)
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@110", "b@120", "c@120", "a@120"}},
		{"it does not start", func(a *account) {
			a.after(230*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@220", "b@230", "c@230", "a@230"}},
		{"it starts, and does not answer", func(a *account) {
			a.after(200*time.Second, contract.AccountStarted, contract.AccountMessage{Run: "a", Number: 1})
			a.after(330*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 1})
		}, []string{"a!@100", "b!@320", "b@330", "c@330", "a@330"}},
		{"it meets the next limit", func(a *account) {
			a.shut(110*time.Second, "a", 2, 200*time.Second)
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "a", Number: 1})
			a.after(210*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "b", Number: 2})
		}, []string{"a!@100", "b!@200", "b@210", "c@210", "a@210"}},
		{"all leave", func(a *account) {
			for _, id := range []string{"a", "b", "c"} {
				a.after(50*time.Second, contract.AccountLeft, contract.AccountMessage{Run: id, Number: 1})
			}
		}, nil},
		{"it is not a message of a limit", func(a *account) {
			a.after(time.Second, contract.AccountShut, contract.AccountMessage{Run: "d", Number: 9, Until: "soon"})
			a.after(120*time.Second, contract.AccountOpened, contract.AccountMessage{Run: "a", Number: 1})
		}, []string{"a!@100", "a@120", "b@120", "c@120"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newAccount(t)
			for _, id := range []string{"a", "b", "c"} {
				a.shut(0, id, 1, 100*time.Second)
			}
			row.does(a)
			a.completes(t)
			require.ElementsMatch(t, row.want, a.woken)
		})
	}
}

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
			w.requireFirstAttempts()
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

const request = 7 // the number of its request

// queued is the result of a call that waits for its turn.
func queued(number int64) contract.PassResult {
	return contract.PassResult{
		Outcome: run.CategoryRateLimit, Uncalled: true,
		Message: "the call waits for its turn, as number 3 of 4: account work may make 2 calls at once",
		Limit: &run.Limit{Kind: run.LimitAtOnce, Bound: run.AtOnceAccount, Most: 2, Account: "work", AccountID: accountID,
			Number: number},
	}
}

func TestCallWaitsForItsTurn(t *testing.T) {
	for name, row := range map[string]struct {
		results []contract.PassResult
		prepare func(w *harness)
		waits   []time.Duration // that began
		causes  []run.LimitCause
	}{
		"it is woken": {[]contract.PassResult{queued(request)}, func(w *harness) { w.wakeAt(time.Minute, request, false) },
			[]time.Duration{5 * time.Minute}, []run.LimitCause{run.LimitTurn}},
		"an earlier request": {[]contract.PassResult{queued(request)},
			func(w *harness) { w.wakeAt(time.Minute, request-1, false) },
			[]time.Duration{5 * time.Minute}, []run.LimitCause{run.LimitTimer}},
		"no message, each wait is longer": {[]contract.PassResult{queued(request), queued(request + 1)}, func(*harness) {},
			[]time.Duration{5 * time.Minute, 10 * time.Minute}, []run.LimitCause{run.LimitTimer, run.LimitTimer}},
		"an operator asks": {[]contract.PassResult{queued(request)}, func(w *harness) {
			w.at(time.Minute, func() { w.signal(workflows.VerbResume, message{}) })
		}, []time.Duration{5 * time.Minute}, []run.LimitCause{run.LimitOperator}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			var all []script
			for _, res := range row.results {
				all = append(all, goes(res))
			}
			w.agent.will(call(1, 1), all...)
			row.prepare(w)
			w.done()
			var causes []run.LimitCause
			for _, end := range payloads[run.RunUnlimited](w, run.KindRunUnlimited) {
				causes = append(causes, end.Cause)
			}
			require.Equal(t, row.causes, causes)
			for i, wait := range row.waits {
				require.Equal(t, wait, w.waits[i].Round(time.Second))
			}
			w.requireFirstAttempts()
			require.Nil(t, w.dir.state(t).Problem, "waiting is no error")
		})
	}
}

// wakes is the result of a call that waits for its turn, which it has before the run knows.
func (w *harness) wakes(number int64) script {
	return func(ok contract.PassResult) (contract.PassResult, error) {
		w.env.SignalWorkflow(contract.AccountWake, contract.AccountMessage{Account: accountID, Number: number})
		return goes(queued(number))(ok)
	}
}

func TestRunIsWokenBeforeItWaits(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), w.wakes(request), w.wakes(request+1), goes(queued(request+2)))
	w.wakeAt(time.Minute, request+2, false)
	w.done()
	ends := payloads[run.RunUnlimited](w, run.KindRunUnlimited)
	require.Len(t, ends, 3)
	require.Equal(t, run.LimitTurn, ends[2].Cause, "an earlier turn does not count again")
	require.Equal(t, []time.Duration{20 * time.Minute}, w.waits[len(w.waits)-1:])
}
