package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// message is what people type: lower-case keys, and sometimes one that this release does not know.
type message map[string]any

// signal sends a signal; it is taken before anything that the caller does next.
func (w *world) signal(verb string, m message) { w.env.SignalWorkflow(verb, m) }

// onPause runs f when the next pause is on disk.
func (w *world) onPause(f func()) { w.dir.when(run.KindRunPaused, f) }

// update sends an Update and waits until it was sent; the answer comes when the workflow has seen it.
func (w *world) update(verb string, m message) *reply {
	r := &reply{}
	sent := make(chan struct{})
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(verb, "", r, m)
		close(sent)
	}, 0)
	<-sent
	return r
}

// reply is the answer to an Update.
type reply struct {
	accepted bool
	refused  error
	ack      workflows.Ack
	err      error
}

func (r *reply) Accept()          { r.accepted = true }
func (r *reply) Reject(err error) { r.refused = err }
func (r *reply) Complete(success any, err error) {
	r.ack, _ = success.(workflows.Ack)
	r.err = err
}

func TestPauseAndResume(t *testing.T) {
	ways := []struct {
		name string
		send func(w *world, verb string, m message)
	}{
		{"signal", func(w *world, verb string, m message) { w.signal(verb, m) }},
		{"update", func(w *world, verb string, m message) { w.update(verb, m) }},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := newWorld(t, twoPasses)
			w.agent.will(call(1, 1), after(func() { way.send(w, "pause", message{"by": "ada", "later": true}) }))
			w.onPause(func() {
				require.Equal(t, []string{call(1, 1)}, w.agent.ids, "the running pass is finished, the next not begun")
				way.send(w, "resume", message{"by": "bob", "unknown": []int{1}})
			})
			w.done()
			require.Equal(t, []string{"pass.end 001", "run.paused", "run.resumed", "pass.end 002"},
				w.story(run.KindPassEnd, run.KindRunPaused, run.KindRunResumed, run.KindDecisionRefused))
			paused := payloads[run.RunPaused](w, run.KindRunPaused)[0]
			require.Equal(t, run.RunPaused{Reason: run.UserRequested, By: "ada"}, paused)
			require.Equal(t, "bob", payloads[run.RunResumed](w, run.KindRunResumed)[0].By)
			require.Contains(t, w.story(run.KindCheckpointCreated)[0], "cp-PAUSE-20260102T")
		})
	}
}

func TestAnUpdateAnswersAtOnce(t *testing.T) {
	w := newWorld(t, twoPasses)
	var pause, resume *reply
	w.agent.will(call(1, 1), after(func() { pause = w.update("pause", nil) }))
	w.onPause(func() { resume = w.update("resume", nil) })
	w.done()
	require.Equal(t, workflows.Ack{RunID: "run-1", Status: run.Running, Said: "pausing after the running pass"}, pause.ack)
	require.Equal(t, workflows.Ack{RunID: "run-1", Status: run.Paused, Said: "resuming"}, resume.ack)
}

func TestWhatCannotBeActedOnIsRefused(t *testing.T) {
	tests := []struct {
		name, verb string
		m          message
		says       string
	}{
		{"resume of a running run", "resume", nil, "the run is running: only a paused run can be resumed"},
		{"budget below what is spent", "budget", message{"usd": 0.5}, "a budget of 0.50 USD is below what is spent (1.00)"},
		{"budget without a number", "budget", nil, "a budget of 0.00 USD is below what is spent (1.00)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, twoPasses)
			var answer *reply
			w.agent.will(call(2, 1), after(func() { answer = w.update(tt.verb, tt.m) }))
			w.done()
			require.ErrorContains(t, answer.refused, tt.says)
			var app *temporal.ApplicationError
			require.ErrorAs(t, answer.refused, &app)
			require.False(t, answer.accepted)
			require.Empty(t, w.story(run.KindDecisionRefused), "a refused Update leaves no trace")

			w = newWorld(t, twoPasses)
			w.agent.will(call(2, 1), after(func() { w.signal(tt.verb, tt.m) }))
			w.done()
			refused := payloads[run.DecisionRefused](w, run.KindDecisionRefused)
			require.Len(t, refused, 1, "a signal cannot be refused: it is written down")
			require.Equal(t, tt.verb, refused[0].Verb)
			require.Contains(t, refused[0].Reason, tt.says)
		})
	}
}

func TestAPauseThatHasNotBegunCanBeTakenBack(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.agent.will(call(1, 1), after(func() {
		w.signal("pause", nil)
		w.signal("resume", nil)
	}))
	w.done()
	require.Empty(t, w.story(run.KindRunPaused, run.KindDecisionRefused))
}

func TestPauseNowEndsTheCallAndItsPassIsDoneAgain(t *testing.T) {
	w := newWorld(t, twoPasses)
	ended := make(chan struct{})
	w.env.SetOnActivityCanceledListener(func(*activityInfo) { close(ended) })
	w.agent.will(call(1, 1), after(func() {
		w.signal("pause", message{"now": true})
		<-ended
	}))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids, "it was not answered, so it is the same call")
	require.Equal(t, []string{"pass.attempt 001", "run.paused", "run.resumed", "pass.end 001", "pass.end 002"},
		w.story(run.KindPassAttempt, run.KindRunPaused, run.KindRunResumed, run.KindPassEnd))
	require.Equal(t, "cancelled", payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Category)
}

func TestAPauseCutsAWaitShort(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.agent.will(call(1, 1), goes(rateLimit))
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow("pause", nil) }, 30*time.Second)
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 2), call(2, 1)}, w.agent.ids)
	require.Equal(t, []string{"pass.attempt 001", "run.paused", "run.resumed"}, w.story(run.KindPassAttempt, run.KindRunPaused, run.KindRunResumed))
	require.Less(t, w.env.Now().Sub(begin).Seconds(), 60.0)
}
