package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestReview takes plan, implement and review through their outcomes in real repositories.
func TestReview(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	for name, test := range map[string]func(*testing.T, *environment){
		"approved": testApproved, "rejected": testRejected, "dirty source": testDirtySource,
		"dirty target": testDirtyTarget, "follow-up": testFollowUp, "what was planned": testFromRunPlan,
		"written by init": testInit,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h.within(t))
		})
	}
}

// testApproved: the changes of all passes become one commit on a branch, and nothing else of the source is touched.
func testApproved(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("verdicts", "rejected\n")
	tr.begin()
	events := tr.over(run.Done)
	tr.untouched("result")
	require.Equal(t, "planner implementer reviewer implementer reviewer", tr.calls())
	require.Equal(t, "line 1\nline 2\nline 3", tr.git("show", "result:work.txt"))
	require.Equal(t, "work.txt", tr.git("diff", "--name-only", "main", "result"))
	require.Equal(t, tr.git("rev-parse", "main"), tr.git("rev-parse", "result^"))
	meta := metaOf(t, tr.dir)
	message := strings.Split(strings.TrimSpace(tr.git("log", "-1", "--format=%B", "result")),
		"\nPassbook-Delivery: "+meta.RunID+" ")
	require.Len(t, message, 2)
	require.Equal(t, tr.task()+"\n\nPassbook-Run: "+meta.RunID, message[0])
	require.Equal(t, tr.git("rev-parse", meta.Workspace.Branch), meta.Workspace.Commit)
	require.Equal(t, "2", tr.git("rev-list", "--count", "main.."+meta.Workspace.Branch),
		"a commit for each pass that changed something")
	require.Len(t, of[run.WorkspaceUpdated](events, run.KindWorkspaceUpdated), 2)
	done := of[run.DeliveryCompleted](events, run.KindDeliveryCompleted)
	require.Len(t, done, 1)
	require.True(t, done[0].Delivered)
	require.Equal(t, "branch", done[0].To)
	require.Equal(t, "result", done[0].Target)
	require.Equal(t, tr.git("rev-parse", "result"), done[0].Commit)
	require.Equal(t, 1, done[0].Files)
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-1"))),
		"The plan: add a line to work.txt.")
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-2"))), "VERDICT: rejected")
	require.Contains(t, string(read(t, tr.dir+"/delivery.patch")), "+line 3")
}

// testRejected: after three rejections an operator ends the loop, and then has the work fixed.
func testRejected(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("verdicts", "rejected\nrejected\nrejected\nrejected\n")
	tr.begin()
	first := tr.asked(run.QuestionHandoff)
	tr.decide("continue")
	q := tr.asked(run.QuestionDelivery, first)
	require.Equal(t, []string{"fix", "approve", "apply", "skip", "halt"}, q.Actions)
	require.Equal(t, run.TriggerRejected, q.Trigger)
	require.Contains(t, h.starter("decide", "--show", tr.dir), "+line 5", "the question shows the changes")
	tr.untouched()
	tr.decide("fix", "--feedback", "five is not enough")
	tr.over(run.Done)
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-5"))), "five is not enough")
	require.Equal(t, "planner implementer reviewer implementer reviewer implementer reviewer implementer "+
		"reviewer implementer reviewer", tr.calls())
	tr.untouched("result")
}

// testDirtySource: a source with uncommitted changes is refused. On request they are excluded, included or committed.
func testDirtySource(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.write("work.txt", "line 1\nmine\n")
	tr.write("new.txt", "new\n")
	dirty := tr.standing()
	output, code := tr.start()
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "it has changes that are not committed (new.txt, work.txt)")
	require.NoDirExists(t, filepath.Join(tr.dir, "workspace"))
	for how, result := range map[string]string{
		"exclude": "line 1\nline 2", "include": "line 1\nmine\nline 3", "commit": "line 1\nmine\nline 3",
	} {
		t.Run(how, func(t *testing.T) {
			tr := h.within(t).trial(t)
			tr.write("work.txt", "line 1\nmine\n")
			tr.write("new.txt", "new\n")
			dirty := tr.standing()
			tr.begin("--dirty", how)
			if how != "commit" {
				tr.before = dirty
				tr.over(run.Done)
				tr.untouched("result")
			} else {
				tr.over(run.Done)
				require.Empty(t, tr.git("status", "--porcelain"))
				require.Equal(t, "new.txt work.txt",
					strings.Join(strings.Fields(tr.git("diff", "--name-only", "feature", "main")), " "))
			}
			require.Equal(t, result, tr.git("show", "result:work.txt"))
			require.Equal(t, "work.txt", tr.git("diff", "--name-only", "result^", "result"),
				"the run's changes and no others")
		})
	}
	require.Equal(t, dirty, tr.standing())
}

// toCheckout delivers into the source's checkout; a question before the review leaves time to
// change it.
var toCheckout = []string{"{to: branch, branch: result}", "{to: checkout}", "  - name: review\n",
	"  - name: pause\n    steps: [{ask: 'Continue?'}]\n  - name: review\n"}

// testDirtyTarget: the target was changed meanwhile, where the delivery would change it.
func testDirtyTarget(t *testing.T, h *environment) {
	tr := h.trial(t, toCheckout...)
	tr.begin()
	first := tr.asked(run.QuestionHandoff)
	tr.write("work.txt", "line 1\nmine\n")
	tr.write("other.txt", "mine too\n")
	tr.decide("continue")
	q := tr.asked(run.QuestionDelivery, first)
	require.Equal(t, []string{"retry", "skip", "halt"}, q.Actions)
	require.Contains(t, q.Text, "work.txt")
	require.NotContains(t, q.Text, "other.txt", "that file does not block the delivery")
	tr.decide("retry")
	tr.asked(run.QuestionDelivery, q)
	require.Equal(t, " M other.txt\n M work.txt", tr.git("status", "--porcelain"))
	tr.git("checkout", "-q", "work.txt")
	tr.decide("retry")
	tr.over(run.Done)
	require.Equal(t, " M other.txt", tr.git("status", "--porcelain"), "the other change stays, uncommitted")
	require.Equal(t, "line 1\nline 2", tr.git("show", "main:work.txt"))
	require.Equal(t, "other", tr.git("show", "main:other.txt"))
	require.Equal(t, tr.git("rev-parse", "feature"), tr.git("rev-parse", "main^"))
}

// planned is the pipeline as far as the plan.
func (h *environment) planned(t *testing.T) *trial {
	t.Helper()
	tr := h.trial(t, "delivery: {to: branch, branch: result}\n", "kind: planning\n")
	whole := string(read(t, tr.config()))
	at := strings.Index(whole, "  - name: implement\n")
	require.Positive(t, at)
	require.NoError(t, os.WriteFile(tr.config(), []byte(whole[:at]), 0o600))
	return tr
}

// testFollowUp: a run with a new task begins where the earlier one ended, and names it.
func testFollowUp(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.begin()
	tr.over(run.Done)
	parent := metaOf(t, tr.dir)
	tr.dir = filepath.Join(tr.folder, "next")
	output, code := h.try("run", "--follow-up", parent.RunID, "--output-dir", tr.dir, "--task",
		"One more, steer="+tr.steer, "--detach")
	require.Zero(t, code, output)
	tr.over(run.Done)
	meta := metaOf(t, tr.dir)
	require.Equal(t, parent.RunID, meta.Parent.RunID)
	for _, role := range []string{"planner", "implementer", "reviewer"} {
		prompt := string(read(t, filepath.Join(tr.steer, "prompt-"+role+"-2")))
		for _, part := range []string{"Run " + parent.RunID + " of review ended: done.", "> Add a line, steer=",
			"Its plan, by planner", "> The plan: add a line to work.txt.", "Its last verdict: approved by reviewer",
			"> work.txt has 2 lines."} {
			require.Contains(t, prompt, part)
		}
		require.Less(t, strings.Index(prompt, "# The run that this one continues"), strings.Index(prompt, "# The task"))
	}
	require.Equal(t, parent.ThreadID, meta.ThreadID)
	require.NotEqual(t, parent.RunID, meta.RunID)
	require.Equal(t, parent.Workspace.Tree, meta.Workspace.Start)
	require.Equal(t, parent.Workspace.Commit, meta.Workspace.Base)
	require.Equal(t, "line 1\nline 2\nline 3", tr.git("show", "result:work.txt"))
	require.Equal(t, "2", tr.git("rev-list", "--count", "main..result"), "each run has delivered its own")
	require.Equal(t, "One more, steer="+tr.steer, tr.git("log", "-1", "--format=%s", "result"))
	tr.untouched("result")

	output, code = h.try("run", "--follow-up", parent.RunID, "--detach")
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "name the task of the follow-up with --task\n")
}

// testFromRunPlan: what an earlier run planned is done; the plan is not made again.
func testFromRunPlan(t *testing.T, h *environment) {
	tr := h.planned(t)
	tr.begin()
	tr.asked(run.QuestionReview)
	tr.decide("approve")
	tr.over(run.Done)
	parent := metaOf(t, tr.dir)

	next := h.trial(t)
	next.source, next.steer, next.before = tr.source, tr.steer, tr.before
	next.begin("--from-run-plan", parent.RunID, "--task", "")
	next.over(run.Done)
	require.Equal(t, "planner implementer reviewer", next.calls(), "the plan was made once")
	for _, prompt := range []string{"prompt-implementer-1", "prompt-reviewer-1"} {
		require.Contains(t, string(read(t, filepath.Join(next.steer, prompt))), "The plan: add a line to work.txt.")
	}
	require.Equal(t, parent.RunID, metaOf(t, next.dir).Parent.RunID)
	require.Equal(t, parent.State.Task, metaOf(t, next.dir).State.Task)
	require.Equal(t, "line 1\nline 2", next.git("show", "result:work.txt"))
	next.untouched("result")
}
