package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// message is what people type: lower-case keys, and sometimes one that this release does not know.
type message map[string]any

// signal sends a signal; it is taken before anything that the caller does next.
func (w *harness) signal(verb string, m message) { w.env.SignalWorkflow(verb, m) }

// onPause runs f when the next pause is on disk.
func (w *harness) onPause(f func()) { w.dir.when(run.KindRunPaused, f) }

// update sends an Update and waits until it was sent; the answer comes when the workflow has seen it.
func (w *harness) update(verb string, m message) *reply {
	r := &reply{}
	w.updateInto(r, verb, m)
	return r
}

// updateInto is update for a call that the message cancels: the run may end before the call continues.
func (w *harness) updateInto(r *reply, verb string, m message) {
	sent := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(verb, "", r, m)
		close(sent)
	}, 0)
	<-sent
}

// reply is the answer to an Update.
type reply struct {
	accepted bool
	refused  error
	ack      contract.Ack
	err      error
}

func (r *reply) Accept()          { r.accepted = true }
func (r *reply) Reject(err error) { r.refused = err }
func (r *reply) Complete(success any, err error) {
	r.ack, _ = success.(contract.Ack)
	r.err = err
}

func TestPauseAndResume(t *testing.T) {
	ways := []struct {
		name string
		send func(w *harness, verb string, m message) *reply
	}{
		{"signal", func(w *harness, verb string, m message) *reply { w.signal(verb, m); return nil }},
		{"update", (*harness).update},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			var pause, resume *reply
			w.agent.will(call(1, 1), after(func() { pause = way.send(w, "pause", message{"by": "ada", "later": true}) }))
			w.onPause(func() {
				require.Equal(t, []string{call(1, 1)}, w.agent.ids, "the running pass is finished, the next not begun")
				resume = way.send(w, "resume", message{"by": "bob", "unknown": []int{1}})
			})
			w.done()
			if pause != nil {
				require.Equal(t, contract.Ack{RunID: "run-1", Status: run.Running,
					Message: "pausing after the running pass"}, pause.ack)
				require.Equal(t, contract.Ack{RunID: "run-1", Status: run.Paused, Message: "resuming"}, resume.ack)
			}
			require.Equal(t, []string{"pass.end 001", "run.paused", "run.resumed", "pass.end 002"},
				w.story(run.KindPassEnd, run.KindRunPaused, run.KindRunResumed, run.KindDecisionRefused))
			paused := payloads[run.RunPaused](w, run.KindRunPaused)[0]
			require.Equal(t, run.RunPaused{Reason: run.UserRequested, By: "ada"}, paused)
			require.Equal(t, "bob", payloads[run.RunResumed](w, run.KindRunResumed)[0].By)
			require.Contains(t, w.story(run.KindCheckpointCreated)[0], "cp-PAUSE-20260102T")
		})
	}
}

// TestInvalidUpdateLeavesNoTrace: a signal cannot be refused, and is journaled.
func TestInvalidUpdateLeavesNoTrace(t *testing.T) {
	w := newHarness(t, twoPasses)
	var answer *reply
	w.agent.will(call(2, 1), after(func() { answer = w.update("budget", message{"usd": 0.5}) }))
	w.done()
	require.ErrorContains(t, answer.refused, "a budget of 0.50 USD is below the current cost (1.00)")
	require.ErrorAs(t, answer.refused, new(*temporal.ApplicationError))
	require.False(t, answer.accepted)
	require.Empty(t, w.story(run.KindDecisionRefused))
}

func TestPauseNowCancelsCallAndRepeatsPass(t *testing.T) {
	w := newHarness(t, twoPasses)
	pause, ended := &reply{}, make(chan struct{})
	w.env.SetOnActivityCanceledListener(func(*activity.Info) { close(ended) })
	w.agent.will(call(1, 1), after(func() {
		w.updateInto(pause, "pause", message{"now": true})
		<-ended
	}))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, "ending the running call and pausing; resume repeats its pass", pause.ack.Message)
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids,
		"it was not answered, so it is the same call")
	require.Equal(t, []string{"pass.attempt 001", "run.paused", "run.resumed", "pass.end 001", "pass.end 002"},
		w.story(run.KindPassAttempt, run.KindRunPaused, run.KindRunResumed, run.KindPassEnd))
	require.Equal(t, run.CategoryCancelled, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Category)
}

// failsBefore is a failure after which f is called in the wait for another attempt. From the start of the run, a slow
// machine could call it earlier: time goes by the clock while an activity runs.
func (w *harness) failsBefore(wait time.Duration, f func()) script {
	return func(ok contract.PassResult) (contract.PassResult, error) {
		w.at(wait, f)
		return goes(transient)(ok)
	}
}

func TestPauseEndsRetryWait(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), w.failsBefore(3*time.Second, func() { w.env.SignalWorkflow("pause", nil) }))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 2), call(2, 1)}, w.agent.ids)
	require.Equal(t, []string{"pass.attempt 001", "run.paused", "run.resumed"},
		w.story(run.KindPassAttempt, run.KindRunPaused, run.KindRunResumed))
	require.Less(t, w.env.Now().Sub(startTime).Seconds(), 5.0)
}

func TestInvalidSignalIsJournaled(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() {
		w.env.SignalWorkflow("pause", "not an object")
		w.env.SignalWorkflow("budget", map[string]any{"usd": "plenty"})
		w.env.SignalWorkflow("budget", map[string]any{"calls": 1.5})
		w.signal("budget", message{"usd": -1})
		w.signal("pause", message{"note": strings.Repeat("x", 40<<10)})
	}))
	w.done()
	var output []string
	for _, r := range payloads[run.DecisionRefused](w, run.KindDecisionRefused) {
		output = append(output, r.Verb+": "+r.Reason)
	}
	require.Len(t, output, 5)
	require.Equal(t, `pause: decode the message: it has the wrong JSON type: string; send JSON such as {"note":"…"}`, output[0])
	require.Equal(t, `budget: decode the message: usd has the wrong JSON type: string; send JSON such as {"note":"…"}`, output[1])
	require.Equal(t, `budget: decode the message: calls has the wrong JSON type: number 1.5; send JSON such as {"note":"…"}`, output[2])
	require.Contains(t, output[3], "budget: a budget of -1 USD is not a number")
	require.Contains(t, output[4], "pause: the message has 40971 bytes; the maximum is 32768")
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
}

func TestEarlyMessageWaitsForDirectory(t *testing.T) {
	for name, send := range map[string]func(w *harness){
		"signal": func(w *harness) { w.signal("budget", message{"usd": 7}) },
		"update": func(w *harness) { w.update("budget", message{"usd": 7}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.dir.opening = func() { send(w) }
			w.done()
			require.Equal(t, "Open", w.trace[0])
			events := w.dir.events(t)
			require.Equal(t, run.KindRunStart, events[0].Kind)
			require.InDelta(t, 7, w.dir.state(t).Budget.CapUSD, 1e-9)
		})
	}
}

// journaled sends a signal and waits until its event is on disk.
func (w *harness) journaled(verb string, m message, kind run.Kind) {
	written := make(chan struct{})
	w.dir.when(kind, func() { close(written) })
	w.signal(verb, m)
	<-written
}

// query returns the answer to a query.
func query[T any](w *harness, name string) (answer T) {
	w.t.Helper()
	v, err := w.env.QueryWorkflow(name)
	require.NoError(w.t, err)
	require.NoError(w.t, v.Get(&answer))
	return answer
}

func (w *harness) status() run.State { return query[run.State](w, contract.QueryStatus) }

// fields returns one field of each element.
func fields[T, F any](all []T, field func(T) F) (out []F) {
	for _, one := range all {
		out = append(out, field(one))
	}
	return out
}

func TestPauseDuringComposeMakesNoCall(t *testing.T) {
	w := newHarness(t, twoPasses)
	asked := false
	w.composing = func(in contract.ComposeInput) {
		if in.At.Step == 1 && !asked {
			asked = true
			w.signal("pause", message{})
		}
	}
	w.onPause(func() {
		require.Len(t, w.agent.ids, 1, "the second call was not made")
		w.signal("resume", message{})
	})
	w.done()
	require.Len(t, w.agent.ids, 2)
}

// TestRequestedPauseIsReported: until it begins, a requested pause is in the answer to the query; a resume cancels it.
func TestRequestedPauseIsReported(t *testing.T) {
	w := newHarness(t, twoPasses)
	var before, requested, cancelled, now string
	pausing := func() string { // after the signals before it
		answer := make(chan string, 1)
		w.env.RegisterDelayedCallback(func() { answer <- query[contract.StatusAnswer](w, contract.QueryStatus).Pausing }, 0)
		return <-answer
	}
	w.onPause(func() { now = pausing(); w.signal("resume", nil) })
	w.agent.will(call(1, 1), after(func() {
		before = pausing()
		w.signal("pause", message{"by": "ada"})
		requested = pausing()
		w.signal("resume", nil)
		cancelled = pausing()
		w.signal("pause", nil)
	}))
	w.done()
	require.Empty(t, before)
	require.Equal(t, "a pause is requested by ada: it begins after the running pass; a resume cancels it", requested)
	require.Empty(t, cancelled)
	require.Empty(t, now, "the run is paused")
}

// TestResumeDoesNotWaitForTheLastMessage: a message arrives with each projection, and each is journaled. The run
// continues nevertheless.
func TestResumeDoesNotWaitForTheLastMessage(t *testing.T) {
	w := newHarness(t, twoPasses)
	const most = 50
	resumed, sent := false, 0
	w.dir.before = map[int]func(){}
	for n := range 3 * most {
		w.dir.before[n] = func() {
			if resumed && sent < most {
				sent++
				w.signal("budget", message{"usd": 100 + sent})
			}
		}
	}
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { resumed = true; w.signal("resume", nil) })
	w.done()
	require.Len(t, w.story(run.KindBudgetRaised, run.KindDecisionRefused), sent, "the last ones follow the end")
	last := ""
	for _, event := range w.story(run.KindBudgetRaised, run.KindDecisionRefused, run.KindPassStart) {
		last = event
	}
	require.Equal(t, most, sent)
	require.NotContains(t, last, string(run.KindPassStart), "it would wait for all of them")
}

// onEachPause runs f with the number of each pause that is on disk.
func (w *harness) onEachPause(f func(n int)) {
	n := 0
	var next func()
	next = func() {
		w.onPause(next)
		n++
		f(n)
	}
	w.onPause(next)
}

// executeCancelled runs the workflow, which must end as cancelled.
func (w *harness) executeCancelled() {
	w.t.Helper()
	_, err := w.execute()
	require.ErrorAs(w.t, err, new(*temporal.CanceledError))
	require.Equal(w.t, run.Cancelled, w.dir.state(w.t).Status)
}

// executeHalted runs the workflow, which must end as halted.
func (w *harness) executeHalted() {
	w.t.Helper()
	r, err := w.execute()
	require.NoError(w.t, err)
	require.Equal(w.t, run.Halted, r.Status)
}

// requireFirstAttempts wants each call to be a first attempt: waits use none.
func (w *harness) requireFirstAttempts() {
	w.t.Helper()
	for _, start := range payloads[run.PassStart](w, run.KindPassStart) {
		require.Equal(w.t, 1, start.Attempt)
	}
}
