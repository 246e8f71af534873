package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestInvalidInputFailsWithoutWriting(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(in *contract.Input)
		want   string
	}{
		{"empty", func(in *contract.Input) {
			*in = contract.Input{}
		}, "target.run_id is missing, target.dir is missing, target.store is missing, " +
			"claim.run_id is missing, start.run_id is missing, start.plan is missing, start.stages is missing, " +
			"dir_queue is " +
			"missing, calls is missing; "},
		{"one field", func(in *contract.Input) { in.Target.Store = "" }, "invalid input: target.store is missing; "},
		{
			"two fields", func(in *contract.Input) { in.Start.Plan, in.DirQueue = "", "" },
			"invalid input: start.plan is missing, dir_queue is missing; ",
		},
		{
			"relative directory", func(in *contract.Input) { in.Target.Dir = "runs/1" },
			`invalid input: target.dir "runs/1" is not absolute; `,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			row.change(&w.in)
			_, err := w.execute()
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, contract.ErrBadInput, app.Type())
			require.True(t, app.NonRetryable())
			require.ErrorContains(t, err, row.want+"start runs with the starter binary")
			require.Empty(t, w.trace, "an activity was called")
		})
	}
}

// TestOneRunUnderOneID: workflow, target, claim and start name one run. A second workflow with the input of an open run
// would take its directory and its decisions.
func TestOneRunUnderOneID(t *testing.T) {
	for name, row := range map[string]struct {
		change func(w *harness)
		want   string
	}{
		"workflow": {func(w *harness) { w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "by-hand"}) },
			`target.run_id "run-1" is not the workflow id, claim.run_id "run-1" is not the workflow id, ` +
				`start.run_id "run-1" is not the workflow id; `},
		"target": {func(w *harness) { w.in.Target.RunID = "run-2" }, `target.run_id "run-2" is not the workflow id; `},
		"claim":  {func(w *harness) { w.in.Claim.RunID = "run-2" }, `claim.run_id "run-2" is not the workflow id; `},
		"start":  {func(w *harness) { w.in.Start.RunID = "run-2" }, `start.run_id "run-2" is not the workflow id; `},
	} {
		w := newHarness(t, twoPasses)
		row.change(w)
		_, err := w.execute()
		require.ErrorContains(t, err, row.want, name)
		require.Empty(t, w.trace, name)
	}
}

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
		At:      contract.StepRef{PlanUse: w.planUse(), Stage: 1, Round: 1, Step: 2},
		Heading: "## Polish, round 1 (judge)", Prompt: run.Blob{Digest: "prompt", Chars: 8}, Context: nil,
		Artifact: page, Pictures: pictures, TimeoutMS: 600_000, HeartbeatMS: 10_000}, judge)
	require.Equal(t, given, composed[3].Context)
	require.Equal(t, "run-1", composed[3].RunID)
	require.Equal(t, storeURL, composed[3].Store)
	require.Equal(t, judge.At, composed[3].At)
	require.Equal(t, "## Polish, round 1 (builder)", polisher.Heading)
	require.Empty(t, composed[0].Context.Replies)
	member := w.agent.inputs[1].At
	require.Equal(t, 1, member.Stage)
	require.Equal(t, 1, member.Round)
	require.Equal(t, 1, member.Step)
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
	var status contract.StatusAnswer
	var handoff contract.HandoffAnswer
	var dir contract.DirectoryAnswer
	asked := run.Question{}
	w.answering(func(_ int, q run.Question) {
		asked = q
		status = query[contract.StatusAnswer](w, contract.QueryStatus)
		handoff = query[contract.HandoffAnswer](w, contract.QueryHandoff)
		dir = query[contract.DirectoryAnswer](w, contract.QueryDirectory)
		w.signal("decide", message{"action": "continue", "note": "fine"})
	})
	w.done()
	closed := query[contract.HandoffAnswer](w, contract.QueryHandoff)
	require.Equal(t, run.Place{Round: 1, Step: 1}, status.Next)
	require.Equal(t, contract.DirectoryAnswer{Dir: "/runs/1", Queue: "passbook-dir-here"}, dir)
	require.Equal(t, run.Budget{CapUSD: 40, WarnUSD: 20, Calls: 9}, status.Budget)
	require.Equal(t, "builder", status.ByRole[0].Name)
	require.Equal(t, "build", status.ByStage[0].Name)
	require.InDelta(t, 1, status.Spent.USD, 1e-9)
	require.True(t, handoff.Open)
	require.Equal(t, &asked, handoff.Question)
	require.Equal(t, run.HandoffFeedbackAlways, handoff.Type)
	require.Zero(t, handoff.Verdict)
	require.Contains(t, handoff.Commands[0], "starter decide /runs/1")
	require.False(t, closed.Open)
	require.Equal(t, "fine", closed.Last.Note)
	require.Zero(t, len(closed.Commands))
	require.Nil(t, closed.Question)
}

// TestNoticeDescribesTheRun: what a receiver gets about a pause.
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
	require.Equal(t, w.in.Target, got.Target)
	require.Equal(t, w.planUse(), got.PlanUse)
}

// TestListsOfQueriesAreNeverNull: clients in other languages read lists, of a run at its start and at its end.
func TestListsOfQueriesAreNeverNull(t *testing.T) {
	check := func(w *harness, at string) {
		for _, name := range []string{contract.QueryStatus, contract.QueryHandoff, contract.QueryHeld, contract.QueryDirectory} {
			answer := strings.ReplaceAll(string(query[json.RawMessage](w, name)), `"score":null`, "") // it is no list
			require.NotContains(t, answer, "null", "%s, %s", name, at)
		}
	}
	w := newHarness(t, twoPasses)
	w.dir.when(run.KindRunStart, func() { check(w, "at the start") })
	w.done()
	check(w, "at the end")
}

// An input with the state of an earlier execution counts only in one that Temporal continued.
func TestInputWithStateNeedsEarlierExecution(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	w.in.Snapshot = &contract.Snapshot{State: w.dir.state(t), Tail: w.dir.tail()}
	w.fresh()
	w.env.SetContinuedExecutionRunID("")
	_, err := w.execute()
	require.ErrorContains(t, err, "carry is only for an execution that continues another one")
}
