package workflows_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestCallsGetTheStateOfTheRun: all that a call works on is in its input.
func TestCallsGetTheStateOfTheRun(t *testing.T) {
	w := newHarness(t, aLoop)
	w.agent.scores = []float64{1, 4}
	w.in.Start.Brief = &run.Blob{Digest: "the brief"}
	w.in.Start.Task = "Make a page"
	var composed []contract.ComposeInput
	w.composing = func(in contract.ComposeInput) { composed = append(composed, in) }
	w.done()
	judge, polisher := w.agent.inputs[3], w.agent.inputs[4]
	replies := []run.Reply{
		{Step: "polish/2", Member: "critic-A", Role: "critic-A", Phase: "polish",
			Reply: run.Blob{Digest: "reply of run-1/g0.polish/2.1.critic-A.1"}},
		{Step: "polish/2", Member: "critic-B", Role: "critic-B", Phase: "polish",
			Reply: run.Blob{Digest: "reply of run-1/g0.polish/2.1.critic-B.1"}},
	}
	page, pictures := &run.Blob{Digest: "page of run-1/g0.001.1.-.1"}, &run.Blob{Digest: "pictures"}
	given := contract.StepContext{Artifact: page, Replies: replies, Pictures: pictures, Task: "Make a page",
		Parent: w.in.Start.Brief}
	require.Equal(t, contract.PassInput{RunID: "run-1", Store: storeURL, Call: "run-1/g0.polish/3.1.-.1", Attempt: 1,
		At:      contract.StepRef{PlanUse: w.in.Plans[0], Stage: 1, Round: 1, Step: 2},
		Heading: "## Polish, round 1 (judge)", Prompt: run.Blob{Digest: "prompt", Chars: 8}, Context: nil,
		Artifact: page, Pictures: pictures, TimeoutMS: 600_000, HeartbeatMS: 10_000}, judge)
	require.Equal(t, given, composed[3].Context)
	require.Equal(t, []any{"run-1", storeURL, judge.At}, []any{composed[3].RunID, composed[3].Store, composed[3].At})
	require.Equal(t, "## Polish, round 1 (builder)", polisher.Heading)
	require.Empty(t, composed[0].Context.Replies)
	member := w.agent.inputs[1].At
	require.Equal(t, []any{1, 1, 1}, []any{member.Stage, member.Round, member.Step})
	require.Contains(t, []string{"critic-A", "critic-B"}, member.Member)
}

// TestRedactedPromptIsComposedAgain: the worker of a call gets the parts of a prompt in which secrets were hidden.
func TestRedactedPromptIsComposedAgain(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.prompt = run.Blob{Digest: "prompt", Raw: "with secrets"}
	w.done()
	require.Equal(t, &contract.StepContext{Artifact: &run.Blob{Digest: "seed"}}, w.agent.inputs[0].Context)
}

// TestQueriesAnswerTheState: of a run that asks, and has a budget and a plan.
func TestQueriesAnswerTheState(t *testing.T) {
	w := newHarness(t, withBudget(oneAsk, "{usd: 40, warn_at: 0.5, calls: 9}"))
	w.in.Start.ConfigHash, w.in.Start.MaxRounds = "hash", 7
	var plan workflows.PlanAnswer
	var cost workflows.CostAnswer
	var handoff, closed workflows.HandoffAnswer
	var dir workflows.DirectoryAnswer
	query := func(name string, to any) {
		v, err := w.env.QueryWorkflow(name)
		require.NoError(t, err)
		require.NoError(t, v.Get(to))
	}
	asked := run.Question{}
	w.answering(func(_ int, q run.Question) {
		asked = q
		query(workflows.QueryPlan, &plan)
		query(workflows.QueryCost, &cost)
		query(workflows.QueryHandoff, &handoff)
		query(workflows.QueryDirectory, &dir)
		w.signal("decide", message{"action": "continue", "note": "fine"})
	})
	w.done()
	query(workflows.QueryHandoff, &closed)
	require.Equal(t, workflows.PlanAnswer{Pipeline: "small", Plan: w.in.Start.Plan, ConfigHash: "hash", TotalPasses: 2,
		MaxRounds: 7, Stages: w.in.Start.Stages, Next: run.Place{Round: 1, Step: 1}}, plan)
	require.Equal(t, workflows.DirectoryAnswer{Dir: "/runs/1", Queue: "passbook-dir-here"}, dir)
	require.Equal(t, []any{1.0, 0.0, run.CostExact, run.Budget{CapUSD: 40, WarnUSD: 20, Calls: 9}},
		[]any{cost.TotalUSD, cost.SunkUSD, cost.CostKnown, cost.Budget})
	require.Equal(t, []any{"builder", "build", 2}, []any{cost.ByRole[0].Name, cost.ByStage[0].Name, len(cost.Budgets)})
	require.InDelta(t, 1, cost.Spent.USD, 1e-9)
	require.Equal(t, []any{true, &asked, run.HandoffFeedbackAlways, ""},
		[]any{handoff.Open, handoff.Question, handoff.Type, handoff.Verdict})
	require.Contains(t, handoff.Commands[0], "starter decide /runs/1")
	require.Equal(t, []any{false, "fine", 0}, []any{closed.Open, closed.Last.Note, len(closed.Commands)})
	require.Nil(t, closed.Question)
}

// TestNoticeDescribesTheRun: what a receiver is told of a pause.
func TestNoticeDescribesTheRun(t *testing.T) {
	w := newHarness(t, aLoop+twoReceivers)
	w.agent.scores = []float64{1, 4}
	w.in.Start.Task = "Make a page"
	w.agent.will("g0.polish/4.1.-.1", after(func() { w.signal("pause", message{"note": "for lunch"}) }))
	w.onPause(func() { w.env.RegisterDelayedCallback(func() { w.signal("resume", nil) }, 1) })
	w.done()
	got := contract.NotifyInput{}
	for _, in := range w.received.got {
		if in.Receiver == 1 {
			got = in
		}
	}
	require.Len(t, got.Notice.Next, 3)
	require.Contains(t, got.Notice.Next[0], "starter resume /runs/1")
	seq := got.Notice.Seq
	got.Notice.Next, got.Notice.Seq = nil, 0
	events := w.dir.events(t)
	require.Equal(t, run.KindRunPaused, events[seq-1].Kind)
	require.Equal(t, contract.Notice{ID: fmt.Sprintf("run-1/%d", seq), Run: "run-1", Pipeline: "small",
		Task:  "Make a page",
		Event: "pause", At: events[seq-1].TS, Status: run.Paused, Reason: run.UserRequested, Detail: "for lunch",
		Actions: []string{}, Directory: "/runs/1", USD: 5, Score: new(1.0)}, got.Notice)
	require.Equal(t, []any{w.in.Target, w.in.Plans[0]}, []any{got.Target, got.PlanUse})
}
