package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

const ticket = "0123456789abcdef"

// queued is the result of a call that waits for a place and asks again after a time.
func queued(after time.Duration) script {
	return goes(contract.PassResult{
		Reading: run.Reading{Outcome: run.CategoryRateLimit,
			Message: "the call waits for its turn, as number 3 of 4: account work may make 2 calls at once"}, Uncalled: true,
		Limit: &run.Limit{Kind: run.LimitAtOnce, Bound: run.AtOnceAccount, Most: 2, Account: "work", AccountID: ticket,
			Again: run.Time(startTime.Add(after))},
	})
}

// shut is the result of a call whose account is shut until an hour after the start.
var shut = goes(contract.PassResult{Reading: run.Reading{Outcome: run.CategoryRateLimit, Message: "refused"}, Limit: &run.Limit{
	Kind: run.LimitPlan, Reset: run.Time(startTime.Add(time.Hour)), Account: "max", AccountID: ticket}})

// hostAnswers has the host of the run answer its questions in order; then any call may be made.
func (w *harness) hostAnswers(all ...func() (contract.AskResult, error)) (asked *[]time.Duration) {
	asked = &[]time.Duration{}
	w.env.RegisterActivityWithOptions(func(_ context.Context, in contract.AskInput) (contract.AskResult, error) {
		require.Equal(w.t, "run-1", in.RunID)
		require.Len(w.t, in.Limits, 1)
		n := len(*asked)
		*asked = append(*asked, w.env.Now().Sub(startTime))
		if n < len(all) {
			return all[n]()
		}
		return contract.AskResult{Cause: run.LimitTurn, Limit: in.Limits[0]}, nil
	}, activity.RegisterOptions{Name: contract.Ask})
	return asked
}

func again(after time.Duration) func() (contract.AskResult, error) {
	return func() (contract.AskResult, error) {
		return contract.AskResult{Again: run.Time(startTime.Add(after))}, nil
	}
}

// TestCallWaitsUntilItsHostAllowsIt: the run asks its host, and journals nothing before the call may be made.
func TestCallWaitsUntilItsHostAllowsIt(t *testing.T) {
	const m = time.Minute
	for name, row := range map[string]struct {
		first   script
		answers []func() (contract.AskResult, error)
		prepare func(w *harness)
		asked   []time.Duration
		cause   run.LimitCause
		account string
		now     bool
	}{
		"a place": {queued(m), []func() (contract.AskResult, error){again(3 * m), again(5 * m)}, nil,
			[]time.Duration{m, 3 * m, 5 * m}, run.LimitTurn, ticket, false},
		"the host fails": {queued(m), []func() (contract.AskResult, error){func() (contract.AskResult, error) {
			return contract.AskResult{}, errors.New("the file is on fire")
		}}, nil, []time.Duration{m, m}, run.LimitTurn, ticket, false},
		"an operator asks": {queued(m), []func() (contract.AskResult, error){again(30 * m)}, func(w *harness) {
			w.at(2*m, func() { w.signal(contract.VerbResume, message{}) })
		}, []time.Duration{m}, run.LimitOperator, "", true},
		"the account is open": {shut, []func() (contract.AskResult, error){func() (contract.AskResult, error) {
			return contract.AskResult{Cause: run.LimitAccount, Limit: run.Limit{Account: "max"}}, nil
		}}, nil, []time.Duration{60*m + 35*time.Second}, run.LimitAccount, "max", false},
		"it is the first one": {shut, []func() (contract.AskResult, error){again(70 * m),
			func() (contract.AskResult, error) {
				return contract.AskResult{Cause: run.LimitProbe, Limit: run.Limit{Account: "max"}}, nil
			}}, nil, []time.Duration{60*m + 35*time.Second, 70 * m}, run.LimitProbe, "max", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), row.first)
			asked := w.hostAnswers(row.answers...)
			if row.prepare != nil {
				row.prepare(w)
			}
			w.done()
			require.Len(t, *asked, len(row.asked))
			for i, want := range row.asked {
				require.InDelta(t, want, (*asked)[i], float64(26*time.Second), "question %d", i)
			}
			require.Equal(t, []string{"pass.start 001", "pass.attempt 001", "run.limited", "run.unlimited",
				"pass.start 001", "pass.end 001", "pass.start 002", "pass.end 002"}, w.story(run.KindPassStart,
				run.KindPassAttempt, run.KindRunLimited, run.KindRunUnlimited, run.KindPassEnd))
			end := payloads[run.RunUnlimited](w, run.KindRunUnlimited)[0]
			require.Equal(t, row.cause, end.Cause)
			require.Equal(t, row.account, end.Account)
			require.Equal(t, row.now, w.agent.inputs[1].Now)
			w.requireFirstAttempts()
			if row.cause == run.LimitTurn {
				require.Nil(t, w.dir.state(t).Problem, "waiting is no error")
			}
		})
	}
}

// TestPauseEndsTheQuestionToTheHost: a host without a worker does not answer, and the pause begins at once.
func TestPauseEndsTheQuestionToTheHost(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), queued(time.Minute))
	w.hostAnswers(func() (contract.AskResult, error) {
		w.signal("pause", nil)
		return contract.AskResult{}, activity.ErrResultPending
	})
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, time.Minute, w.env.Now().Sub(startTime).Round(time.Minute))
	require.True(t, w.agent.inputs[1].Now, "resume tries at once")
}
