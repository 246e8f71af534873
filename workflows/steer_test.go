package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// TestInstructionIsInNextPrompt steers a run by signal and by Update while a call runs: that call keeps its prompt.
func TestInstructionIsInNextPrompt(t *testing.T) {
	var answer *reply
	for name, send := range map[string]func(w *harness, m message){
		"signal": func(w *harness, m message) { w.signal("steer", m) },
		"update": func(w *harness, m message) { answer = w.update("steer", m) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.secret = "hunter2"
			var prompts [][]string
			w.composing = func(in contract.ComposeInput) { prompts = append(prompts, in.Context.Steering) }
			w.agent.will(call(1, 1), after(func() { send(w, message{"text": " Mind hunter2. ", "by": "ann"}) }))
			w.done()
			require.Equal(t, [][]string{nil, {"Mind <hidden>."}}, prompts)
			steered := payloads[run.RunSteered](w, run.KindRunSteered)
			require.Equal(t, []run.RunSteered{{Text: "Mind <hidden>.", By: "ann", Auth: "none"}}, steered)
			ends := payloads[run.PassEnd](w, run.KindPassEnd)
			require.Empty(t, ends[0].Instructions)
			require.Len(t, ends[1].Instructions, 1)
			require.Empty(t, w.agent.inputs[1].Steering, "no call was interrupted for it")
		})
	}
	require.Equal(t, "the next prompt contains the instruction", answer.ack.Message)
}

// TestInstructionInterruptsCall ends the running call and makes it again with the instruction, without an attempt and
// without a pause.
func TestInstructionInterruptsCall(t *testing.T) {
	w := newHarness(t, twoPasses)
	var prompts [][]string
	w.composing = func(in contract.ComposeInput) { prompts = append(prompts, in.Context.Steering) }
	ended := make(chan struct{})
	w.env.SetOnActivityCanceledListener(func(*activity.Info) { close(ended) })
	var ack *reply
	w.agent.will(call(1, 1), after(func() { ack = w.update("steer", message{"text": "Stop.", "now": true}); <-ended }))
	w.done()
	require.Equal(t, "interrupting the running call, which continues with the instruction", ack.ack.Message)
	require.Equal(t, [][]string{nil, {"Stop."}, nil}, prompts, "the role has used it")
	require.Equal(t, []string{call(1, 1), call(1, 1), call(2, 1)}, w.agent.ids, "nothing was judged: the same call")
	require.Equal(t, []string{"Stop."}, w.agent.inputs[1].Steering)
	require.Equal(t, []string{"pass.end 001", "pass.end 002"}, w.story(run.KindPassEnd, run.KindRunPaused))
	require.True(t, payloads[run.RunSteered](w, run.KindRunSteered)[0].Now)
}

// TestInstructionInterruptsCallThatBegins sends an instruction while the prompt of a call is composed: the call is not
// made without it.
func TestInstructionInterruptsCallThatBegins(t *testing.T) {
	w := newHarness(t, twoPasses)
	var prompts [][]string
	var ack *reply
	w.composing = func(in contract.ComposeInput) {
		if prompts = append(prompts, in.Context.Steering); ack == nil {
			recorded := make(chan struct{})
			w.dir.when(run.KindRunSteered, func() { close(recorded) })
			ack = w.update("steer", message{"text": "Stop.", "now": true})
			<-recorded
		}
	}
	w.done()
	require.Equal(t, "interrupting the running call, which continues with the instruction", ack.ack.Message)
	require.Equal(t, [][]string{nil, {"Stop."}, nil}, prompts)
	require.Equal(t, []string{call(1, 1), call(2, 1)}, w.agent.ids, "no call is made with the first prompt")
	require.Equal(t, []string{"pass.end 001", "pass.end 002"}, w.story(run.KindPassEnd, run.KindRunPaused))
}

// TestInstructionInterruptsNoCommand sends an instruction while a command runs: a command has no prompt.
func TestInstructionInterruptsNoCommand(t *testing.T) {
	w := newHarness(t, gated)
	var ack *reply
	w.agent.will("g0.work/2.1.-.1", after(func() {
		recorded := make(chan struct{})
		w.dir.when(run.KindRunSteered, func() { close(recorded) })
		ack = w.update("steer", message{"text": "Stop.", "now": true})
		<-recorded
	}))
	w.done()
	require.Equal(t, "no call is running; the next prompt contains the instruction", ack.ack.Message)
	require.False(t, payloads[run.RunSteered](w, run.KindRunSteered)[0].Now)
	require.Equal(t, []string{call(1, 1), "g0.work/2.1.-.1", call(2, 1)}, w.agent.ids, "no step is repeated")
}

func TestInvalidInstructionsAreRefused(t *testing.T) {
	w := newHarness(t, twoPasses)
	for i := range w.in.Start.Stages {
		w.in.Start.Stages[i].Roles = w.plan.Stages[i].RoleNames()
	}
	refused := map[string]*reply{}
	w.agent.will(call(1, 1), after(func() {
		for text, m := range map[string]message{
			"the instruction is empty":                                    {"text": " \n"},
			"the instruction has 4099 bytes as JSON; the maximum is 4096": {"text": strings.Repeat("x", 4097)},
			`the pipeline has no role "nobody" from here on`:              {"text": "x", "role": "nobody"},
		} {
			refused[text] = w.update("steer", m)
		}
	}))
	w.done()
	require.Len(t, refused, 3)
	for text, r := range refused {
		require.ErrorContains(t, r.refused, text, "%+v", r)
	}
	require.Empty(t, payloads[run.RunSteered](w, run.KindRunSteered))
}
