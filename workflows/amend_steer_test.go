package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
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
			require.Equal(t, []run.RunSteered{{Text: "Mind <hidden>.", By: "ann"}}, steered)
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
	ack, ended := &reply{}, make(chan struct{})
	w.env.SetOnActivityCanceledListener(func(*activity.Info) { close(ended) })
	w.agent.will(call(1, 1), after(func() { w.updateInto(ack, "steer", message{"text": "Stop.", "now": true}); <-ended }))
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

// given stores a plan of a definition, and a prompt with some text.
func (w *harness) given(src, prompt string) run.PlanRef {
	w.t.Helper()
	return run.PlanRef{Plan: stored(w.t, parse(w.t, src)), Inputs: stored(w.t, rundir.Inputs{Version: 1,
		Files: []rundir.InputFile{{Path: "prompt.md", Digest: string(store.DigestOf([]byte(prompt)))}}})}
}

// amendable is a harness whose run can be amended.
func amendable(t *testing.T, src string) *harness {
	t.Helper()
	w := newHarness(t, src)
	w.in.Start.Inputs = w.given(src, "first").Inputs
	return w
}

// plans are those that calls were composed with, in order.
func (w *harness) plans() (all []string) {
	for _, in := range w.agent.inputs {
		all = append(all, in.At.Plan)
	}
	return all
}

func TestAmendCountsFromTheNextStep(t *testing.T) {
	w := amendable(t, fourPasses)
	first := w.in.Start.Plan
	next := w.given(strings.Replace(strings.Replace(fourPasses, "usd: 3", "usd: 10", 1), "timeout: 10m",
		"timeout: 20m", 1), "second")
	var answer *reply
	w.onPause(func() {
		w.dir.when(run.KindRunAmended, func() { w.signal("resume", nil) })
		answer = w.update("amend", message{"plan": next, "by": "ada", "note": "more"})
	})
	w.done()
	require.NoError(t, answer.err)
	require.Equal(t, "amended; in force for the next step", answer.ack.Message)
	require.Equal(t, []string{first, first, first, next.Plan}, w.plans())
	require.Equal(t, w.agent.times[0]*2, w.agent.times[3], "the limit of the new plan")
	require.Equal(t, run.Budget{CapUSD: 10, WarnUSD: 5}, w.dir.state(t).Budget)
	ev := payloads[run.RunAmended](w, run.KindRunAmended)[0]
	require.Equal(t, []string{first, next.Plan, next.Inputs, "ada", "more"},
		[]string{ev.Old.Plan, ev.New.Plan, ev.New.Inputs, ev.By, ev.Note})
	require.Contains(t, ev.Differences, run.Amendable{Name: "budget.usd", Old: "3", New: "10"})
	require.Contains(t, ev.Differences, run.Amendable{Name: "roles.builder.limits.timeout", Old: "10m0s", New: "20m0s"})
	require.Equal(t, &run.Place{Round: 1, Step: 3}, w.dir.state(t).Plan.From)
}

// TestRunningPassKeepsItsPlan: also in its further attempts, until the step begins again.
func TestRunningPassKeepsItsPlan(t *testing.T) {
	w := amendable(t, twoPasses)
	first, next := w.in.Start.Plan, w.given(strings.Replace(twoPasses, "[scripted]", "[scripted, better]", 1), "second")
	w.agent.will(call(1, 1), func(contract.PassResult) (contract.PassResult, error) {
		w.journaled("amend", message{"plan": next}, run.KindRunAmended)
		return contract.PassResult{Reading: run.Reading{Outcome: "unknown", Message: "not today"}}, nil
	})
	w.agent.will(call(1, 2), goes(contract.PassResult{Reading: run.Reading{Outcome: "config-mismatch", Message: "never"}, Permanent: true}))
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.Equal(t, []string{first, first, next.Plan, next.Plan}, w.plans())
	require.Equal(t, &run.Place{Round: 1}, w.dir.state(t).Plan.From)
}

func TestAmendedMaximumDropsTheCachedRound(t *testing.T) {
	w := amendable(t, aLoop)
	next := w.given(strings.Replace(aLoop, "max: 3", "max: 1", 1), "first")
	w.agent.will("g0.polish/3.1.-.1", after(func() {
		w.journaled("amend", message{"plan": next}, run.KindRunAmended)
	}))
	w.done()
	require.Equal(t, 1, w.dir.state(t).Rounds)
}

func TestAmendmentsAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		old, new, want string
	}{
		"structure": {"{role: builder}, {role: builder}]", "{role: builder}]",
			"the run cannot adopt the definition: stages.build.steps: it changes what the plan consists of"},
		"budget that is spent": {"usd: 3", "usd: 1", "a budget of 1.00 USD is below the current cost (3.00)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := amendable(t, fourPasses)
			next := w.given(strings.Replace(fourPasses, row.old, row.new, 1), "first")
			w.onPause(func() {
				w.dir.when(run.KindDecisionRefused, func() {
					w.signal("budget", message{"usd": 10})
					w.signal("resume", nil)
				})
				w.signal("amend", message{"plan": next})
			})
			w.done()
			reason := payloads[run.DecisionRefused](w, run.KindDecisionRefused)[0].Reason
			require.Contains(t, reason, row.want)
			require.NotContains(t, reason, "retryable", "what Temporal adds to an error")
			require.Empty(t, w.story(run.KindRunAmended))
			require.EqualValues(t, 0, w.dir.state(t).Plan.Seq)
		})
	}
}

// TestAmendmentSurvivesContinueAsNew: each execution of one step goes by the plan in force.
func TestAmendmentSurvivesContinueAsNew(t *testing.T) {
	w := amendable(t, fourPasses)
	w.in.Options.ContinueAfter = 1
	first, next := w.in.Start.Plan, w.given(strings.Replace(fourPasses, "usd: 3", "usd: 10", 1), "second")
	w.agent.will(call(2, 1), after(func() {
		w.journaled("amend", message{"plan": next}, run.KindRunAmended)
	}))
	w.chain(func(contract.Input) {})
	require.Equal(t, []string{first, first, next.Plan, next.Plan}, w.plans())
}

func TestReopenAmends(t *testing.T) {
	w := amendable(t, twoPasses)
	next := w.given(twoPasses, "second")
	w.cutOff()
	w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled, Amend: &contract.Message{By: "ada", Plan: &next}})
	w.done()
	require.Equal(t, []string{w.in.Start.Plan, next.Plan}, w.plans())
	require.Equal(t, "ada", payloads[run.RunAmended](w, run.KindRunAmended)[0].By)
}

func TestRevertKeepsTheAmendment(t *testing.T) {
	w := amendable(t, twoPasses)
	first, next := w.in.Start.Plan, w.given(twoPasses, "second")
	next.Definition = "another text"
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		w.dir.when(run.KindRunAmended, func() { w.signal("revert", message{"to": "cp-1"}) })
		w.signal("amend", message{"plan": next})
	})
	w.done()
	require.Equal(t, []string{"g0.001.1.-.1", "g1.001.1.-.1", "g1.002.1.-.1"}, w.agent.ids)
	require.Equal(t, []string{first, next.Plan, next.Plan}, w.plans())
	require.Equal(t, next, w.dir.state(t).Plan.PlanRef)
	require.Equal(t, &run.Place{Round: 1}, w.dir.state(t).Plan.From)
}

// TestReplayRepeatsAmendments puts the source's amendments in force at the places where they were there.
func TestReplayRepeatsAmendments(t *testing.T) {
	w := amendable(t, fourPasses)
	second := w.given(strings.Replace(fourPasses, "usd: 3", "usd: 10", 1), "second")
	third := w.given(strings.Replace(fourPasses, "usd: 3", "usd: 11", 1), "third")
	branched(w, run.ModeReplay, run.Reexecute)
	w.in.Start.Budget = run.Budget{CapUSD: 20, WarnUSD: 19}
	for i, ref := range []run.PlanRef{second, third} {
		w.in.Start.Amendments = append(w.in.Start.Amendments, run.Amendment{
			At: run.Place{Round: 1, Step: 1 + 2*i}, RunAmended: run.RunAmended{New: ref, Budget: &run.Budget{CapUSD: 1}},
		})
	}
	w.in.Options.ContinueAfter = 1
	w.chain(func(contract.Input) {})
	require.Equal(t, []string{second.Plan, second.Plan, third.Plan}, w.plans(), "it begins with the second step")
	require.Equal(t, run.Budget{CapUSD: 20, WarnUSD: 19}, w.dir.state(t).Budget, "a replay has its own budget")
	require.Equal(t, w.in.Start.Source.RunID, payloads[run.RunAmended](w, run.KindRunAmended)[1].Source)
}

// TestRefusedAmendmentOfAnEpochPauses: an epoch that was opened with a definition that it cannot adopt waits.
func TestRefusedAmendmentOfAnEpochPauses(t *testing.T) {
	w := amendable(t, twoPasses)
	next := w.given(strings.Replace(twoPasses, "{role: builder}, {role: builder}]", "{role: builder}]", 1), "second")
	w.cutOff()
	w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled, Amend: &contract.Message{By: "ada", Note: "less",
		Plan: &next}})
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	refused, paused := payloads[run.DecisionRefused](w, run.KindDecisionRefused), payloads[run.RunPaused](w,
		run.KindRunPaused)
	const why = "the run cannot adopt the definition: stages.build.steps: it changes what the plan consists of"
	require.Len(t, refused, 1)
	require.Contains(t, refused[0].Reason, why)
	refused[0].Reason = ""
	require.Equal(t, run.DecisionRefused{Verb: "amend", By: "ada"}, refused[0])
	require.Equal(t, []string{run.UserRequested, "ada"}, []string{paused[0].Reason, paused[0].By})
	require.Contains(t, paused[0].Detail, "the definition was not adopted: "+why)
}

// TestBudgetsThatAmendmentsRaise: a cap above the cost is adopted although its warning is below, and so is none.
func TestBudgetsThatAmendmentsRaise(t *testing.T) {
	for budget, want := range map[string]run.Budget{
		"usd: 4": {CapUSD: 4, WarnUSD: 2}, "tokens: 1000000": {Tokens: 1000000},
	} {
		w := amendable(t, fourPasses)
		next := w.given(strings.Replace(fourPasses, "usd: 3", budget, 1), "first")
		w.onPause(func() {
			w.dir.when(run.KindDecisionRefused, func() {
				w.signal("budget", message{"usd": 10})
				w.signal("resume", nil)
			})
			w.dir.when(run.KindRunAmended, func() { w.signal("resume", nil) })
			w.signal("amend", message{"plan": next})
		})
		w.done()
		require.Empty(t, w.story(run.KindDecisionRefused), budget)
		require.Equal(t, want, w.dir.state(t).Budget)
	}
}
