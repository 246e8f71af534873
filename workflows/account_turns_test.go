package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

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
			for _, start := range payloads[run.PassStart](w, run.KindPassStart) {
				require.Equal(t, 1, start.Attempt, "waiting uses no attempt")
			}
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

// TestLanesHaveTheirTurns: one call at once, and each lane begins when it is woken.
func TestLanesHaveTheirTurns(t *testing.T) {
	w := inLanes(t, threeLanes)
	for i, key := range w.items[1:] {
		limit := queued(request)
		limit.Limit.AccountID = accountID[:15] + key
		w.agent.will(laneCall(key, "1"), goes(limit))
		w.env.RegisterDelayedCallback(func() {
			w.env.SignalWorkflow(contract.AccountWake, contract.AccountMessage{Account: limit.Limit.AccountID, Number: request})
		}, time.Duration(i+1)*time.Minute)
	}
	w.done()
	require.Equal(t, []string{laneCall("b", "1"), laneCall("c", "1")}, w.agent.ids[len(w.agent.ids)-2:])
	require.Len(t, w.agent.ids, 5)
	require.Equal(t, 2*time.Minute, w.env.Now().Sub(startTime).Round(time.Minute))
}
