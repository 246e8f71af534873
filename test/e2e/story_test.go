package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// teller gives one answer of a story in its own way.
type teller func(t *testing.T, tr *trial, q run.Question, m workflows.Message)

func (m answerOf) json(t *testing.T) string {
	t.Helper()
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	return string(raw)
}

type answerOf workflows.Message

// TestScenarioByEveryClient takes a run through its whole story: the plan is sent back once, what the review rejects is
// let pass, and delivered over the rejection. Each way to answer leads to the same end.
func TestScenarioByEveryClient(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	tellers := map[string]teller{
		"starter": func(_ *testing.T, tr *trial, _ run.Question, m workflows.Message) {
			args := []string{"decide", tr.dir, "--action", m.Action, "--by", m.By}
			if m.Feedback != "" {
				args = append(args, "--feedback", m.Feedback)
			}
			tr.starter(args...)
		},
		"Update": func(t *testing.T, tr *trial, q run.Question, m workflows.Message) {
			m.ID = q.ID
			_, err := send(t, tr.dial(), metaOf(t, tr.dir).RunID, workflows.VerbDecide, m)
			require.NoError(t, err)
		},
		"temporal, Update": func(t *testing.T, tr *trial, _ run.Question, m workflows.Message) {
			tr.cli(tr.dir).do("workflow", "update", "execute", "--name", "decide", "--input", answerOf(m).json(t))
		},
		"temporal, signal": func(t *testing.T, tr *trial, _ run.Question, m workflows.Message) {
			require.Contains(t, tr.cli(tr.dir).do("workflow", "query", "--type", "handoff"), m.Action,
				"the query tells what may be said")
			tr.cli(tr.dir).do("workflow", "signal", "--name", "decide", "--input", answerOf(m).json(t))
		},
	}
	if *tctl != "" {
		tellers["tctl"] = func(t *testing.T, tr *trial, _ run.Question, m workflows.Message) {
			cmd := exec.CommandContext(t.Context(), *tctl, "wf", "signal",
				"-w", metaOf(t, tr.dir).RunID, "-n", "decide",
				"-i", answerOf(m).json(t))
			cmd.Env = append(os.Environ(), tr.running().Server.SetEnv()...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
		}
	}
	for name, send := range tellers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, h.within(t), send)
		})
	}
}

func story(t *testing.T, h *environment, send teller) {
	t.Helper()
	tr := h.trial(t, "steps: [{role: planner}]", "steps: [{role: planner}, {ask: 'Is this the right plan?'}]", "max: 3",
		"max: 1")
	tr.steerAgents("verdicts", "rejected\nrejected\n") // of the first change, and of the last one
	tr.begin()
	var q run.Question
	for _, step := range []struct {
		kind run.QuestionKind
		m    workflows.Message
	}{
		{run.QuestionHandoff, workflows.Message{Action: run.ActionRetryFeedback, Feedback: "shorter"}},
		{run.QuestionHandoff, workflows.Message{Action: run.ActionContinue}},
		{run.QuestionHandoff, workflows.Message{Action: run.ActionContinueWithWaiver, Feedback: "the line is long"}},
		{run.QuestionDelivery, workflows.Message{Action: run.ActionApprove}},
	} {
		q = tr.asked(step.kind, q)
		step.m.By = "ada"
		send(t, tr, q, step.m)
	}
	events := tr.over(run.Done)
	var decided []string
	for _, e := range events {
		if e.Kind == run.KindHandoffDecided || e.Kind == run.KindDeliveryDecided {
			var a run.QuestionDecided
			e.Decode(&a)
			decided = append(decided, a.DecidedBy+" "+a.Action)
		}
	}
	require.Equal(t, []string{"ada retry_feedback", "ada continue", "ada continue_with_waiver", "ada approve"}, decided)
	require.Equal(t, "planner planner implementer reviewer implementer reviewer", tr.calls())
	require.Equal(t, "line 1\nline 2\nline 3", tr.git("show", "result:work.txt"))
	meta := metaOf(t, tr.dir)
	require.Equal(t, "the line is long", meta.Waiver.Feedback)
	require.Equal(t, "approve", meta.DeliveryOverride.Action)
	tr.untouched("result")
}
