package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

const reviewed = `
pipeline: small
agent: {run: [scripted], reply: claude-json}
workspace: {git: worktree}
delivery: {to: branch, branch: result, fresh: false}
roles:
  implementer: {prompt: prompt.md, gives: changes}
  reviewer: {prompt: prompt.md, gives: report, verdict: {find: 'VERDICT: (\w+)'}}
stages:
  - name: work
    steps:
      - {role: implementer}
`

// gated has a command and a role that pause the run when they fail.
const gated = reviewed + `      - {run: make test, id: tests, if_failing: ask}
      - {role: reviewer, if_failing: ask}
`

// planning is a pipeline whose result is a plan.
var planning = strings.Replace(head, "pipeline: small\n", "pipeline: small\nkind: planning\n", 1) + `
stages:
  - name: plan
    steps: [{role: reader}]
`

// answering calls f with each question when the run has waited for an hour.
func (w *harness) answering(f func(n int, q run.Question)) {
	n := 0
	for _, spec := range run.QuestionKinds() {
		kind := spec.Requested
		var again func()
		again = func() {
			w.dir.when(kind, again)
			n++
			w.env.RegisterDelayedCallback(func() {
				if q, open := w.status().Asks(); open { // else the run was cancelled, or the question has expired
					f(n, q)
				}
			}, time.Hour)
		}
		w.dir.when(kind, again)
	}
}

// answers decides the questions with these messages, in turn.
func (w *harness) answers(all ...message) {
	w.answering(func(n int, _ run.Question) {
		require.LessOrEqual(w.t, n, len(all), "a question more than there are answers")
		w.signal("decide", all[n-1])
	})
}

// ends runs the workflow and wants that end.
func (w *harness) ends(status run.Status, reason string) run.State {
	w.t.Helper()
	r, err := w.execute()
	require.NoError(w.t, err)
	require.Equal(w.t, status, r.Status)
	require.Equal(w.t, reason, r.Reason)
	s := w.dir.state(w.t)
	require.Equal(w.t, status, s.Status)
	require.Empty(w.t, payloads[run.DecisionRefused](w, run.KindDecisionRefused))
	return s
}

// asked returns the ids of all questions of a kind.
func (w *harness) asked(kind run.Kind) []run.QuestionRequested {
	return payloads[run.QuestionRequested](w, kind)
}

// unsound is a reply whose check fails.
func unsound(ok contract.PassResult) (contract.PassResult, error) {
	ok.Validation = run.Validation{Checks: []run.Check{{Name: "non-empty", Passed: true}, {Name: "has a reason"}}}
	return ok, nil
}

// called are the roles and commands in the order in which they were called.
func (w *harness) called() string {
	var all []string
	for _, in := range w.agent.inputs {
		step, _ := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).At(in.At.Step)
		if all = append(all, step.Role); step.Kind == "run" {
			all[len(all)-1] = "run"
		}
	}
	return strings.Join(all, " ")
}

func TestRetriedStepHasNewCallID(t *testing.T) {
	w := newHarness(t, gated)
	w.agent.values = []string{"failed", "failed"}
	w.answers(message{"action": "retry"}, message{"action": "retry"})
	w.ends(run.Done, "")
	asked := w.asked(run.KindGateRequested)
	require.Len(t, asked, 2)
	require.NotEqual(t, asked[0].ID, asked[1].ID)
	var again []string
	for _, in := range w.agent.inputs {
		again = append(again, in.DecisionID)
	}
	require.Equal(t, []string{"", "", asked[0].ID, asked[1].ID, ""}, again)
}

// TestCommandThatCannotRunPauses: before anything else is paid, also where its failure would ask or end a round. Resume
// runs it again, as often as it takes.
func TestCommandThatCannotRunPauses(t *testing.T) {
	w := newHarness(t, gated)
	for try := 1; try <= 3; try++ {
		w.agent.will(fmt.Sprintf("g0.work/2.1.-.%d", try), goes(permanent))
	}
	w.onEachPause(func(int) { w.signal("resume", message{}) })
	w.ends(run.Done, "")
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 3)
	for _, p := range paused {
		require.Equal(t, run.GateFailed, p.Reason)
		require.Equal(t, "no such program", p.Detail)
	}
	require.Len(t, w.agent.ids, 6, "the implementer, four tries of the command, the reviewer")
	require.Empty(t, w.asked(run.KindGateRequested))
}

func TestGateAdoptsWorkspaceEdits(t *testing.T) {
	w := newHarness(t, gated)
	w.agent.values = []string{"failed"}
	w.dir.mended = &run.WorkspaceUpdated{Tree: run.Blob{Digest: "mended"}, Commit: "by hand", Cause: "edited",
		Changed: 1}
	w.answers(message{"action": "retry"})
	w.ends(run.Done, "")
	var trees []string
	for _, in := range w.agent.inputs {
		trees = append(trees, in.Tree.Tree.Digest)
	}
	require.Equal(t, []string{"first tree", "tree of run-1/g0.001.1.-.1", "mended", "mended"}, trees)
	require.Equal(t, "by hand", w.trees.delivers[0].Commit)
}

func TestWaiversArePassedInOrder(t *testing.T) {
	w := newHarness(
		t, strings.Replace(gated, "id: tests, if_failing: ask}\n",
			"if_failing: ask}\n      - {run: make lint, if_failing: ask}\n      - {run: make docs, if_failing: ask}\n",
			1),
	)
	w.agent.values = []string{"failed", "failed", "failed"}
	received := map[int][]string{}
	w.composing = func(in contract.ComposeInput) {
		for _, older := range in.Context.Waivers {
			received[in.At.Step] = append(received[in.At.Step], older.Feedback)
		}
		if in.Context.Waiver != nil {
			received[in.At.Step] = append(received[in.At.Step], in.Context.Waiver.Feedback)
		}
	}
	waive := func(words string) message { return message{"action": "continue_with_waiver", "feedback": words} }
	w.answers(waive("one"), waive("two"), waive("three"))
	w.ends(run.Done, "")
	require.Equal(t, map[int][]string{2: {"one"}, 3: {"one", "two"}, 4: {"one", "two", "three"}}, received)
}

// TestApprovedWorkIsNotAsked: two types of ask steps are skipped if the last verdict approves the work.
func TestApprovedWorkIsNotAsked(t *testing.T) {
	for _, kind := range []string{run.HandoffFeedbackOnReject, run.HandoffBypass} {
		w := newHarness(t, askAfter(kind))
		w.agent.words = []string{"Approved"}
		w.ends(run.Done, "")
		require.Empty(t, w.asked(run.KindHandoffRequested))
		require.Len(t, payloads[run.StepSkipped](w, run.KindStepSkipped), 1, kind)
	}
}

func TestFirstStepAskOffersNoRetry(t *testing.T) {
	w := newHarness(
		t, strings.Replace(reviewed, "      - {role: implementer}\n",
			"      - ask: Shall it begin?\n      - {role: implementer}\n", 1),
	)
	w.answers(message{"action": "continue"})
	w.ends(run.Done, "")
	require.Equal(t, []string{"continue", "halt"},
		payloads[run.QuestionRequested](w, run.KindHandoffRequested)[0].Actions)
}

// questions are the ways to come to a question of each kind, and what it ends with when it expires. Its first
// answer leads to the same kind of question once more.
var questions = []struct {
	name, src  string
	requested  run.Kind
	again      message // asks once more
	other      string  // another action that is offered
	onContinue run.Status
	hurt       func(*harness)
}{
	{
		"hand-off", reviewed + "      - ask: 'Good?'\n", run.KindHandoffRequested, message{
			"action": "retry_feedback", "feedback": "more",
		}, "continue",
		run.Done, func(*harness) {},
	},
	{
		"gate", gated, run.KindGateRequested, message{"action": "retry"}, "halt", run.Done,
		func(w *harness) { w.agent.values = []string{"failed", "failed"} },
	},
	{
		"review", planning, run.KindReviewRequested, message{"action": "retry_feedback", "feedback": "more"}, "approve",
		run.Done, func(*harness) {},
	},
	{
		"rejected delivery", reviewed + "      - role: reviewer\n", run.KindDeliveryRequested, message{
			"action": "fix", "feedback": "more",
		}, "skip",
		run.Halted, func(w *harness) { w.agent.words = []string{"rejected", "rejected"} },
	},
	{
		"dirty target", reviewed, run.KindDeliveryRequested, message{"action": "retry"}, "skip", run.Done,
		func(w *harness) { w.trees.dirty = 2 },
	},
}

func TestStaleAndConflictingDecisions(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			var first run.Question
			var stale, same, other, pause, resume *reply
			decided := &reply{}
			w.answering(func(n int, q run.Question) {
				if n == 1 {
					first = q
					w.signal("decide", with(row.again, "id", q.ID))
					return
				}
				send := func(verb string, m message) *reply {
					r := &reply{}
					w.env.UpdateWorkflow(verb, "", r, m)
					w.signal(verb, m)
					return r
				}
				stale = send("decide", message{"action": "halt", "id": "work:1:2:12345678"})
				same = send("decide", with(row.again, "id", first.ID))
				other = send("decide", message{"action": row.other, "id": first.ID})
				pause, resume = send("pause", nil), send("resume", nil)
				w.env.RegisterDelayedCallback(func() {
					w.env.UpdateWorkflow("decide", "", decided, message{"action": "halt", "id": q.ID, "by": "ada"})
				}, time.Minute)
			})
			w.executeHalted()
			require.True(t, decided.accepted)
			require.Equal(t, "decided: halt", decided.ack.Message)
			require.ErrorContains(t, stale.refused,
				", not work:1:2:12345678; the decision was meant for another round, lane or artifact")
			require.NoError(t, same.refused)
			require.Equal(t, "already decided", same.ack.Message)
			require.ErrorContains(t, other.refused,
				first.ID+" was already decided with "+row.again["action"].(string)+": the first decision wins")
			for op, r := range map[run.Operation]*reply{run.Pause: pause, run.Resume: resume} {
				conflict := workflows.ConflictFrom(r.refused)
				require.NotNil(t, conflict, op)
				require.Equal(t, op, conflict.Operation)
			}
			require.Equal(t, []string{"decide", "decide", "pause", "resume"},
				fields(payloads[run.DecisionRefused](w, run.KindDecisionRefused),
					func(d run.DecisionRefused) string { return d.Verb }),
				"refused signals are journaled; the same answer again is not refused")
			asked := w.asked(row.requested)
			require.Len(t, asked, 2)
			require.NotEqual(t, asked[0].ID, asked[1].ID)
		})
	}
}

func with(m message, key, value string) message {
	out := message{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestCancelDuringQuestion(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			w.dir.when(row.requested, func() { w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour) })
			w.executeCancelled()
			s := w.dir.state(t)
			require.Equal(t, run.Cancelled, s.Status)
			_, open := s.Asks()
			require.False(t, open)
			require.Empty(t, w.trees.delivers[min(len(w.trees.delivers), len(w.asked(run.KindDeliveryRequested))):],
				"nothing is delivered afterwards")
		})
	}
}

// TestNextEpochDecidesOpenQuestion: the workflow was terminated while it asked; the next epoch has the answer. It asks
// again only where the answer leads there.
func TestNextEpochDecidesOpenQuestion(t *testing.T) {
	for _, row := range questions {
		for action, asked := range map[string]int{row.again["action"].(string): 2, row.other: 1} {
			t.Run(row.name+" "+action, func(t *testing.T) {
				w := newHarness(t, row.src)
				row.hurt(w)
				w.dir.when(row.requested, func() { w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour) })
				_, err := w.execute()
				require.Error(t, err)
				w.terminatedAfter(row.requested)
				q, open := w.dir.state(t).Asks()
				require.True(t, open)
				before := len(w.agent.ids)
				w.reopened(contract.Reopen{Epoch: 2, From: run.Interrupted, Interruption: "terminated",
					Decision: &contract.Message{Action: action, Feedback: "more", By: "ada"}})
				w.answers(message{"action": "halt"})
				_, err = w.execute()
				require.NoError(t, err)
				requested := w.asked(row.requested)
				require.Len(t, requested, asked)
				require.Equal(t, q.ID, requested[0].ID)
				decided := payloads[run.QuestionDecided](w, q.Kind.Spec().Decided)[0]
				require.Equal(t, q.ID, decided.ID)
				require.Equal(t, "ada", decided.DecidedBy)
				require.Equal(t, asked == 2 && row.name != "dirty target", len(w.agent.ids) > before,
					"a step is repeated, except where only the target is inspected")
				require.Equal(t, 2, w.dir.state(t).Epoch)
			})
		}
	}
}
