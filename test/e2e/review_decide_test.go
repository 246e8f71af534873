package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// testDecided follows a run from an unjudged plan over a rejection, feedback, another change and its verdict to the
// delivery: each step has its prompt, its tree and its row of the journal.
func testDecided(t *testing.T, h *environment) {
	tr := h.trial(t, "steps: [{role: planner}]", "steps: [{role: planner}, {ask: 'Is this the plan?'}]",
		"repeat: {max: 3,", "repeat: {max: 1,")
	tr.steerAgents("verdicts", "rejected\nrejected\n")
	tr.begin()
	prompt := func(name string) string { return string(read(t, filepath.Join(tr.steer, "prompt-"+name))) }

	plan := tr.asked(run.QuestionHandoff)
	require.Equal(t, []any{run.TriggerAsked, []string{"continue", "retry_feedback", "halt"}, "planner"},
		[]any{plan.Trigger, plan.Actions, plan.Work.Role})
	require.Nil(t, plan.Judged)
	output, code := tr.try("decide", tr.dir, "--action", "continue_with_waiver", "--feedback", "x")
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "continue_with_waiver is not offered here")
	tr.decide("retry_feedback", "--feedback", "say where")
	plan = tr.asked(run.QuestionHandoff, plan)
	for _, part := range []string{"Is this the plan?", "The plan: add a line to work.txt.", "say where"} {
		require.Contains(t, prompt("planner-2"), part)
	}
	tr.decide("continue")

	q := tr.asked(run.QuestionHandoff, plan)
	state := metaOf(t, tr.dir).State
	require.Equal(t, "Review: verdict == approved is not met after 1 round", q.Text)
	require.Equal(t, "planner planner implementer reviewer implementer reviewer", tr.calls(), "the last change is judged")
	require.Equal(t, []any{run.TriggerRejected, "rejected by reviewer", 2, state.Tree.Digest, []string{"work.txt"}},
		[]any{q.Trigger, q.Judged.Text(), q.Judged.Round, q.Change.Tree, q.Change.Files})
	review := read(t, filepath.Join(tr.dir, "_orchestrator/steps/review-1-round-2/reviewer-synthesis.md"))
	require.Equal(t, layout.Digest(review), q.Judged.Reply)
	require.Contains(t, string(review), "work.txt has 3 lines.")
	shown := h.starter("decide", "--show", tr.dir)
	for _, part := range []string{
		"Verdict:     rejected by reviewer", "Changed:     work.txt", "work.txt has 3 lines.", "I added a line.",
		"1 file changed, 2 insertions(+)", "Earlier:     retry_feedback of hand-off plan by ada: say where",
	} {
		require.Contains(t, shown, part)
	}
	tr.decide("retry_feedback", "--feedback", "one more line")

	events := tr.over(run.Done)
	require.Equal(t, "planner planner implementer reviewer implementer reviewer implementer reviewer", tr.calls())
	for _, part := range []string{q.Text, "(verdict: rejected)", "work.txt has 3 lines.", "I added a line.",
		"one more line"} {
		require.Contains(t, prompt("implementer-3"), part)
	}
	require.NotContains(t, prompt("implementer-3"), " of 1\nProduce", "no round 2 of 1")
	require.Contains(t, prompt("reviewer-3"), "one more line", "the change is judged by what was asked for")
	require.Equal(t, "line 1\nline 2\nline 3\nline 4", tr.git("show", "result:work.txt"))
	decided := of[run.QuestionDecided](events, run.KindHandoffDecided)
	require.Len(t, decided, 3)
	require.Equal(t, []any{q.ID, "retry_feedback", "one more line", "ada", &run.Place{Stage: 2, Round: 2, Step: 1}},
		[]any{decided[2].ID, decided[2].Action, decided[2].Feedback, decided[2].DecidedBy, decided[2].Next})
	ends := of[run.PassEnd](events, run.KindPassEnd)
	last := ends[len(ends)-2:]
	require.Equal(t, []string{"implementer", "reviewer", "approved"},
		[]string{last[0].Role, last[1].Role, last[1].Verdict})
	require.NotEqual(t, q.Change.Tree, last[0].Tree.Digest)
	require.Equal(t, last[0].Tree.Digest, metaOf(t, tr.dir).State.Tree.Digest)
	require.True(t, of[run.DeliveryCompleted](events, run.KindDeliveryCompleted)[0].Delivered)
	_, err := os.Stat(filepath.Join(tr.dir, layout.DeliveryPatch))
	require.NoError(t, err)
	tr.untouched("result")
}
