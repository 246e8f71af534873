package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// message is what people type: lower-case keys, and sometimes one that this release does not know.
type message map[string]any

// signal sends a signal; it is taken before anything that the caller does next.
func (w *harness) signal(verb string, m message) { w.env.SignalWorkflow(verb, w.withGrants(m)) }

// onPause runs f when the next pause is on disk.
func (w *harness) onPause(f func()) { w.dir.when(run.KindRunPaused, f) }

// update sends an Update and waits until it was sent; the answer comes when the workflow has seen it.
func (w *harness) update(verb string, m message) *reply {
	r := &reply{}
	m = w.withGrants(m)
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
		send func(w *harness, verb string, m message)
	}{
		{"signal", func(w *harness, verb string, m message) { w.signal(verb, m) }},
		{"update", func(w *harness, verb string, m message) { w.update(verb, m) }},
	}
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), after(func() { way.send(w, "pause", message{"by": "ada", "later": true}) }))
			w.onPause(func() {
				require.Equal(t, []string{call(1, 1)}, w.agent.ids, "the running pass is finished, the next not begun")
				way.send(w, "resume", message{"by": "bob", "unknown": []int{1}})
			})
			w.done()
			require.Equal(t, []string{"pass.end 001", "run.paused", "run.resumed", "pass.end 002"},
				w.story(run.KindPassEnd, run.KindRunPaused, run.KindRunResumed, run.KindDecisionRefused))
			paused := payloads[run.RunPaused](w, run.KindRunPaused)[0]
			require.Equal(t, run.RunPaused{Reason: run.UserRequested, By: "ada", Auth: "none"}, paused)
			require.Equal(t, "bob", payloads[run.RunResumed](w, run.KindRunResumed)[0].By)
			require.Contains(t, w.story(run.KindCheckpointCreated)[0], "cp-PAUSE-20260102T")
		})
	}
}

func TestUpdateReturnsAtOnce(t *testing.T) {
	w := newHarness(t, twoPasses)
	var pause, resume *reply
	w.agent.will(call(1, 1), after(func() { pause = w.update("pause", nil) }))
	w.onPause(func() { resume = w.update("resume", nil) })
	w.done()
	require.Equal(t, workflows.Ack{RunID: "run-1", Status: run.Running, Message: "pausing after the running pass"},
		pause.ack)
	require.Equal(t, workflows.Ack{RunID: "run-1", Status: run.Paused, Message: "resuming"}, resume.ack)
}

// TestPauseNowTellsWhatItDoes answers the two kinds of pauses differently.
func TestPauseNowTellsWhatItDoes(t *testing.T) {
	w := newHarness(t, twoPasses)
	var pause *reply
	ended := make(chan struct{})
	w.env.SetOnActivityCanceledListener(func(*activityInfo) { close(ended) })
	w.agent.will(call(1, 1), after(func() { pause = w.update("pause", message{"now": true}); <-ended }))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, "ending the running call and pausing; resume repeats its pass", pause.ack.Message)
}

func TestInvalidMessagesAreRefused(t *testing.T) {
	tests := []struct {
		name, verb string
		m          message
		text       string
	}{
		{"resume of a running run", "resume", nil, "the run is running: only a paused run can be resumed"},
		{
			"budget below what is spent", "budget", message{"usd": 0.5},
			"a budget of 0.50 USD is below the current cost (1.00)",
		},
		{
			"budget beyond all money", "budget", message{"usd": 1e308},
			"a budget of 1e+308 USD is not a number from 0 to 1000000000",
		},
		{"budget without a number", "budget", nil, "a budget of 0.00 USD is below the current cost (1.00)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			var answer *reply
			w.agent.will(call(2, 1), after(func() { answer = w.update(tt.verb, tt.m) }))
			w.done()
			require.ErrorContains(t, answer.refused, tt.text)
			var app *temporal.ApplicationError
			require.ErrorAs(t, answer.refused, &app)
			require.False(t, answer.accepted)
			require.Empty(t, w.story(run.KindDecisionRefused), "a refused Update leaves no trace")

			w = newHarness(t, twoPasses)
			w.agent.will(call(2, 1), after(func() { w.signal(tt.verb, tt.m) }))
			w.done()
			refused := payloads[run.DecisionRefused](w, run.KindDecisionRefused)
			require.Len(t, refused, 1, "a signal cannot be refused: it is written down")
			require.Equal(t, tt.verb, refused[0].Verb)
			require.Contains(t, refused[0].Reason, tt.text)
		})
	}
}

func TestResumeCancelsPendingPause(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() {
		w.signal("pause", nil)
		w.signal("resume", nil)
	}))
	w.done()
	require.Empty(t, w.story(run.KindRunPaused, run.KindDecisionRefused))
}

func TestPauseNowCancelsCallAndRepeatsPass(t *testing.T) {
	w := newHarness(t, twoPasses)
	ended := make(chan struct{})
	w.env.SetOnActivityCanceledListener(func(*activityInfo) { close(ended) })
	w.agent.will(call(1, 1), after(func() {
		w.signal("pause", message{"now": true})
		<-ended
	}))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids,
		"it was not answered, so it is the same call")
	require.Equal(t, []string{"pass.attempt 001", "run.paused", "run.resumed", "pass.end 001", "pass.end 002"},
		w.story(run.KindPassAttempt, run.KindRunPaused, run.KindRunResumed, run.KindPassEnd))
	require.Equal(t, run.CategoryCancelled, payloads[run.PassAttempt](w, run.KindPassAttempt)[0].Category)
}

func TestPauseEndsRetryWait(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), goes(transient))
	w.env.RegisterDelayedCallback(func() { w.env.SignalWorkflow("pause", nil) }, 3*time.Second)
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
		w.signal("pause", message{"note": strings.Repeat("x", 40<<10)})
	}))
	w.done()
	var output []string
	for _, r := range payloads[run.DecisionRefused](w, run.KindDecisionRefused) {
		output = append(output, r.Verb+": "+r.Reason)
	}
	require.Len(t, output, 3)
	require.Contains(
		t, output[0], "pause: decode the message: unable to decode: json: "+
			"cannot unmarshal string into Go value of type "+
			"workflows.Message; send JSON such as",
	)
	require.Contains(t, output[1], "budget: decode the message")
	require.Contains(t, output[2], "pause: the message has 40971 bytes; the maximum is 32768")
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
}

func TestSignalWithoutPayload(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.env.SignalWorkflow("pause", nil) }))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
}

func TestDetails(t *testing.T) {
	score := 2.5
	s := run.State{
		Pipeline: "page", Status: run.Paused, Reason: run.BudgetThreshold, Phase: "write", Set: "S2", Round: 1,
		Passes: run.PassCount{Total: 56, LastSettled: 31},
		Rounds: 1, Budget: run.Budget{CapUSD: 100}, Spent: run.Totals{USD: 100.4}, Score: &score,
		Checkpoint: &run.CheckpointRef{ID: "cp-S1", AtPass: 28},
	}
	in := workflows.Input{Target: contract.Target{RunID: "r1", Dir: "/runs/1"}}
	require.Equal(t, "### page: paused (budget-threshold)\n\n"+
		"| progress | cost | score | stage |\n|---|---|---|---|\n| pass 31 of 56; rounds finished: 1 | 100.40 of "+
		"100.00 USD "+
		"(100%) | 2.5 | write, S2 |\n\n"+
		"- continues from checkpoint cp-S1, pass 28\n"+
		"- available actions: fork, replay, resume, cancel, revert, budget, steer, amend\n- directory `/runs/1`\n\n"+
		run.Means(run.Paused, run.BudgetThreshold)+" "+run.Next(run.Paused, run.BudgetThreshold)+"\n\n```\n"+
		"starter budget /runs/1 --usd 200 && starter resume /runs/1\n"+
		"eval \"`starter server env`\"\n"+
		"temporal workflow update execute --workflow-id r1 --name budget --input '{\"usd\":200}'\n"+
		"temporal workflow update execute --workflow-id r1 --name resume --input '{}'\n```\n", workflows.Details(s, in))

	s = run.State{
		Wording: run.WordingStages, Pipeline: "fix", Status: run.Running, Phase: "review", Round: 2,
		Stages: []run.StageRef{{Name: "plan"}, {Name: "review", Rounds: 3}}, Spent: run.Totals{USD: 1.5, Unknown: 2},
	}
	require.Contains(t, workflows.Details(s, in), "| progress | cost |\n|---|---|\n"+
		"| stage 2 of 2 (review), round 2 of at most 3 | ≥ 1.50 USD, 2 calls not fully known |\n\n")
	require.NotContains(t, workflows.Details(s, in), "$", "it begins a formula in the Web UI")

	s = run.State{
		Pipeline: "page", Status: run.Running, Phase: "write",
		InFlight: []run.InFlightCall{{Step: "032", Role: "builder", Attempt: 2, StartedAt: "2026-01-02T03:04:05.000Z"}},
	}
	require.Contains(t, workflows.Details(s, in),
		"- running: **032** builder, attempt 2, since 2026-01-02T03:04:05.000Z\n")
	require.Contains(t, workflows.Details(s, in), run.Next(run.Running, ""))
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
