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

const reviewed = `
pipeline: small
agent: {run: [scripted], reply: claude-json}
workspace: {git: worktree}
delivery: {to: branch, branch: result}
roles:
  implementer: {prompt: prompt.md, gives: changes}
  reviewer: {prompt: prompt.md, gives: report, verdict: {find: 'VERDICT: (\w+)'}}
stages:
  - name: work
    steps:
      - {role: implementer}
`

// gated has a command and a role that rest the run when they fail.
const gated = reviewed + `      - {run: make test, as: tests, if_failing: ask}
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
	require.Equal(w.t, []any{status, reason}, []any{r.Status, r.Reason})
	s := w.dir.state(w.t)
	require.Equal(w.t, status, s.Status)
	require.Empty(w.t, payloads[run.DecisionRefused](w, run.KindDecisionRefused))
	return s
}

// asked returns the ids of all questions of a kind.
func (w *harness) asked(kind run.Kind) []run.QuestionRequested {
	return payloads[run.QuestionRequested](w, kind)
}

func TestGatePausesAtStep(t *testing.T) {
	const command, reply = "make test failed with exit code 2. Continue?", "The reply of reviewer failed its " +
		"checks: says " +
		"why. Continue?"
	for _, cause := range []struct {
		name, text string
		step       int // of the gate, from 1
		hurt       func(*harness)
	}{
		{"command", command, 2, func(w *harness) { w.agent.values = []string{"failed"} }},
		{"check", reply, 3, func(w *harness) { w.agent.will("g0.002.1.-.1", unsound) }},
	} {
		for _, row := range []struct {
			action string
			end    run.Status
			reason string
			steps  map[int]string // what is called, by the step of the gate
		}{
			{"retry", run.Done, "", map[int]string{2: "implementer run run reviewer",
				3: "implementer run reviewer reviewer"}},
			{"continue_with_waiver", run.Done, "",
				map[int]string{2: "implementer run reviewer", 3: "implementer run reviewer"}},
			{"halt", run.Halted, "gate.decided", map[int]string{2: "implementer run", 3: "implementer run reviewer"}},
		} {
			t.Run(cause.name+" "+row.action, func(t *testing.T) {
				w := newHarness(t, gated)
				cause.hurt(w)
				w.answers(message{"action": row.action, "feedback": "it is known", "by": "ada"})
				w.ends(row.end, row.reason)
				require.Equal(t, row.steps[cause.step], w.called())
				asked := w.asked(run.KindGateRequested)
				require.Len(t, asked, 1)
				require.Equal(t, cause.text, asked[0].Question)
				require.Equal(t, []string{"retry", "continue_with_waiver", "halt"}, asked[0].Actions)
				require.NotEmpty(t, asked[0].Digest)
				decided := payloads[run.QuestionDecided](w, run.KindGateDecided)
				require.Equal(t, []any{asked[0].ID, row.action, "ada", true},
					[]any{decided[0].ID, decided[0].Action, decided[0].DecidedBy, decided[0].Implicit})
				require.Equal(t, row.action == "continue_with_waiver", w.dir.state(t).Markers.Waiver != nil)
			})
		}
	}
}

// unsound is a reply whose check fails.
func unsound(ok contract.PassResult) (contract.PassResult, error) {
	ok.Validation = run.Validation{Checks: []run.Check{{Name: "non-empty", Passed: true}, {Name: "says why"}}}
	return ok, nil
}

// called are the roles and commands in the order in which they were called.
func (w *harness) called() string {
	var all []string
	for _, in := range w.agent.inputs {
		step := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).Steps[in.At.Step]
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
		t, strings.Replace(gated, "as: tests, if_failing: ask}\n",
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

func TestAskActions(t *testing.T) {
	const always, onReject, bypass = "human_feedback_always", "human_feedback_on_reject", "human_bypass"
	for _, row := range []struct {
		kind, verdict, offers string // no offers: it is not asked
		trigger               string
	}{
		{always, "approved", "continue retry_feedback halt", "approved"},
		{always, "Approved", "continue retry_feedback halt", "approved"},
		{always, "rejected", "continue retry_feedback halt continue_with_waiver", "rejected"},
		{always, "incomplete", "retry_feedback continue_with_waiver halt", "incomplete"},
		{always, "scope_expansion", "continue halt continue_with_waiver", "scope_expansion"},
		{always, "Scope-Expansion", "continue halt continue_with_waiver", "scope_expansion"},
		{onReject, "approved", "", ""},
		{onReject, "rejected", "continue retry_feedback halt continue_with_waiver", "rejected"},
		{onReject, "incomplete", "retry_feedback continue_with_waiver halt", "incomplete"},
		{bypass, "approved", "", ""},
		{bypass, "rejected", "continue continue_with_waiver halt", "bypass"},
		{bypass, "incomplete", "continue continue_with_waiver halt", "bypass"},
	} {
		t.Run(row.kind+" "+row.verdict, func(t *testing.T) {
			w := newHarness(t, reviewed+"      - role: reviewer\n      - ask: {question: 'Good?', type: "+row.kind+
				"}\n")
			w.agent.words = []string{row.verdict}
			w.answers(message{"action": "halt"})
			asked := payloads[run.QuestionRequested]
			if row.offers == "" {
				w.ends(run.Done, "")
				require.Empty(t, asked(w, run.KindHandoffRequested))
				require.Equal(t, "the last verdict approves the work",
					payloads[run.StepSkipped](w, run.KindStepSkipped)[0].Why)
				return
			}
			w.ends(run.Halted, run.ReasonHandoffHalt)
			h := asked(w, run.KindHandoffRequested)
			require.Len(t, h, 1)
			require.Equal(t, []string{row.offers, row.trigger, row.kind},
				[]string{strings.Join(h[0].Actions, " "), h[0].Trigger, h[0].Type})
		})
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
	again      message // noteQuestion once more
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
				w.env.RegisterDelayedCallback(func() { w.signal("decide", message{"action": "halt", "id": q.ID}) },
					time.Minute)
			})
			r, err := w.execute()
			require.NoError(t, err)
			require.Equal(t, run.Halted, r.Status)
			require.ErrorContains(t, stale.refused,
				", not work:1:2:12345678; the decision was meant for another round, lane or artifact")
			require.NoError(t, same.refused)
			require.Equal(t, "already decided", same.ack.Message)
			require.ErrorContains(t, other.refused,
				first.ID+" was already decided with "+row.again["action"].(string)+": the first decision wins")
			require.ErrorContains(t, pause.refused, "there is nothing to pause")
			require.ErrorContains(t, resume.refused, "only a paused run can be resumed")
			var verbs []string
			for _, d := range payloads[run.DecisionRefused](w, run.KindDecisionRefused) {
				verbs = append(verbs, d.Verb)
			}
			require.Equal(t, []string{"decide", "decide", "pause", "resume"}, verbs,
				"signals that were refused are written down; the same answer again is not one")
			require.Len(t, w.ids(row.requested), 2)
			require.NotEqual(t, w.ids(row.requested)[0], w.ids(row.requested)[1])
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

// ids are those of all questions of a kind.
func (w *harness) ids(kind run.Kind) []string {
	var out []string
	for _, e := range w.dir.events(w.t) {
		if e.Kind != kind {
			continue
		}
		var q run.QuestionRequested
		e.Decode(&q)
		out = append(out, q.ID)
	}
	return out
}

func TestDecisionByUpdate(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			answer := &reply{}
			w.answering(func(_ int, q run.Question) {
				w.env.UpdateWorkflow("decide", "", answer, message{"action": "halt", "id": q.ID, "by": "ada"})
			})
			r, err := w.execute()
			require.NoError(t, err)
			require.Equal(t, run.Halted, r.Status)
			require.True(t, answer.accepted)
			require.Equal(t, "decided: halt", answer.ack.Message)
			require.Equal(t, "ada", w.decidedBy())
		})
	}
}

func TestQuestionAcrossExecutions(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			whole := newHarness(t, row.src)
			row.hurt(whole)
			whole.answers(row.again, message{"action": "halt"})
			_, err := whole.execute()
			require.NoError(t, err)

			w := newHarness(t, row.src)
			row.hurt(w)
			w.in.Options.ContinueAfter = 1
			w.answers(row.again, message{"action": "halt"})
			require.Greater(t, w.chain(func(workflows.Input) {}), 1)
			require.Equal(t, whole.bare(), w.bare())
			require.Equal(t, run.Halted, w.dir.state(t).Status)
		})
	}
}

func TestCancelDuringQuestion(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			w.dir.when(row.requested, func() { w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour) })
			_, err := w.execute()
			var cancelled *temporal.CanceledError
			require.ErrorAs(t, err, &cancelled)
			s := w.dir.state(t)
			require.Equal(t, run.Cancelled, s.Status)
			_, open := s.Asks()
			require.False(t, open)
			require.Empty(t, w.trees.delivers[min(len(w.trees.delivers), len(w.ids(run.KindDeliveryRequested))):],
				"nothing is delivered afterwards")
		})
	}
}

func TestNextEpochDecidesOpenQuestion(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			w.dir.when(row.requested, func() { w.env.RegisterDelayedCallback(w.env.CancelWorkflow, time.Hour) })
			_, err := w.execute()
			require.Error(t, err)
			for i, e := range w.dir.events(t) { // as a terminated workflow leaves it
				if e.Kind == row.requested {
					w.dir.lines = w.dir.lines[:i+1]
					break
				}
			}
			q, open := w.dir.state(t).Asks()
			require.True(t, open)
			before := len(w.agent.ids)
			again := workflows.Message{Action: row.again["action"].(string), By: "ada"}
			again.Feedback, _ = row.again["feedback"].(string)
			w.reopened(workflows.Reopen{Epoch: 2, From: run.Interrupted, Interruption: "terminated", Decision: &again})
			w.answering(func(int, run.Question) { w.signal("decide", message{"action": "halt"}) })
			r, err := w.execute()
			require.NoError(t, err)
			require.Equal(t, run.Halted, r.Status)
			ids := w.ids(row.requested)
			require.Len(t, ids, 2, "it is asked again only because the answer leads there")
			require.Equal(t, q.ID, ids[0])
			require.Equal(t, row.name == "dirty target", len(w.agent.ids) == before,
				"a step is done once more, but where only the target is looked at")
			require.Equal(t, 2, w.dir.state(t).Epoch)
		})
	}
}
