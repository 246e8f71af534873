package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestReview takes plan, implement and review through what can become of them. All runs share one environment.
func TestReview(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_IDLE=1h") // a test that waits for its turn still finds the server
	h.starter("server", "start")
	for name, test := range map[string]func(*testing.T, *environment){
		"approved": testApproved, "rejected": testRejected, "dirty source": testDirtySource,
		"dirty target": testDirtyTarget, "conflict": testConflict,
		"gate": testFixedGate, "plan only": testPlanOnly, "follow-up": testFollowUp,
		"what was planned": testFromRunPlan, "lost at a gate": testLostAtAGate,
		"moved": testMovedWhileItWaits, "turns in a folder": testTurns, "written by init": testInit,
		"decided": testDecided, "by pages": testByPages,
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
	require.Equal(t, tr.git("rev-parse", "passbook/"+meta.RunID), meta.Workspace.Commit)
	require.Equal(t, "2", tr.git("rev-list", "--count", "main..passbook/"+meta.RunID),
		"a commit for each pass that changed something")
	require.Len(t, of[run.WorkspaceUpdated](events, run.KindWorkspaceUpdated), 2)
	done := of[run.DeliveryCompleted](events, run.KindDeliveryCompleted)
	require.Len(t, done, 1)
	require.Equal(t, []any{true, "branch", "result", tr.git("rev-parse", "result"), 1},
		[]any{done[0].Delivered, done[0].To, done[0].Target, done[0].Commit, done[0].Files})
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-1"))),
		"The plan: add a line to work.txt.")
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-2"))), "VERDICT: rejected")
	require.Contains(t, string(read(t, tr.dir+"/delivery.patch")), "+line 3")
}

// testRejected: after three rejections a person lets the loop end, and then decides what becomes of the changes.
func testRejected(t *testing.T, h *environment) {
	for action, row := range map[string]struct {
		args      []string
		end       run.Status
		delivered string // branch
		check     func(*testing.T, *trial)
	}{
		"approve": {nil, run.Done, "result", func(t *testing.T, tr *trial) {
			require.Equal(t, "approve", metaOf(t, tr.dir).DeliveryOverride.Action)
			require.Equal(t, "line 1\nline 2\nline 3\nline 4\nline 5", tr.git("show", "result:work.txt"))
		}},
		"apply": {nil, run.Done, "", func(t *testing.T, tr *trial) {
			require.Equal(t, "apply", metaOf(t, tr.dir).DeliveryOverride.Action)
			require.Equal(t, " M work.txt", tr.git("status", "--porcelain"), "in the checkout, and not committed")
			tr.git("checkout", "-q", "work.txt")
		}},
		"skip": {nil, run.Halted, "", func(t *testing.T, tr *trial) {
			meta := metaOf(t, tr.dir)
			require.Equal(t, []any{run.ReasonRejected, true}, []any{meta.Reason, meta.RejectedOutcome})
			require.Contains(t, string(read(t, tr.dir+"/delivery.patch")), "+line 5", "the changes are not lost")
		}},
		"halt": {nil, run.Halted, "", func(t *testing.T, tr *trial) {
			require.Equal(t, run.ReasonDeliveryHalted, metaOf(t, tr.dir).HaltReason)
		}},
		"fix": {[]string{"--feedback", "five is not enough"}, run.Done, "result", func(t *testing.T, tr *trial) {
			require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-implementer-5"))), "five is not enough")
			require.Equal(t, "planner implementer reviewer implementer reviewer implementer reviewer implementer "+
				"reviewer implementer reviewer", tr.calls())
			require.Nil(t, metaOf(t, tr.dir).DeliveryOverride)
		}},
	} {
		t.Run(action, func(t *testing.T) {
			h := h.within(t)
			tr := h.trial(t)
			tr.steerAgents("verdicts", "rejected\nrejected\nrejected\nrejected\n")
			tr.begin()
			q := tr.asked(run.QuestionHandoff)
			require.Contains(t, q.Text, "verdict == approved is not met after 3 rounds")
			tr.decide("continue")
			q = tr.asked(run.QuestionDelivery, q)
			require.Equal(t, []string{"fix", "approve", "apply", "skip", "halt"}, q.Actions)
			require.Equal(t, run.TriggerRejected, q.Trigger)
			require.Contains(t, h.starter("decide", "--show", tr.dir), "+line 5", "the person sees what it is about")
			tr.untouched()
			tr.decide(append([]string{action}, row.args...)...)
			tr.over(row.end)
			row.check(t, tr)
			if row.delivered == "" {
				tr.untouched()
			} else {
				tr.untouched(row.delivered)
			}
		})
	}
}

// testDirtySource: a source with changes of its own is refused, or they are part of what the run begins with, or not,
// or committed first.
func testDirtySource(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.write("work.txt", "line 1\nmine\n")
	tr.write("new.txt", "new\n")
	dirty := tr.standing()
	output, code := tr.start()
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "it has changes that are not committed (new.txt, work.txt)")
	require.NoDirExists(t, filepath.Join(tr.dir, "workspace"))
	for how, row := range map[string]struct{ result, files string }{
		"exclude": {"line 1\nline 2", "work.txt"}, "include": {"line 1\nmine\nline 3", "work.txt"},
		"commit": {"line 1\nmine\nline 3", "work.txt"},
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
			require.Equal(t, row.result, tr.git("show", "result:work.txt"))
			require.Equal(t, row.files, tr.git("diff", "--name-only", "result^", "result"),
				"the run's changes and no others")
		})
	}
	require.Equal(t, dirty, tr.standing())
}

// toCheckout delivers into the source's checkout; a person is asked before the review, so that something can happen to
// it meanwhile.
var toCheckout = []string{"{to: branch, branch: result}", "{to: checkout}", "  - name: review\n",
	"  - name: pause\n    steps: [{ask: 'Go on?'}]\n  - name: review\n"}

// testDirtyTarget: the target was changed meanwhile, where the delivery would change it.
func testDirtyTarget(t *testing.T, h *environment) {
	for action, end := range map[string]run.Status{"retry": run.Done, "skip": run.Done, "halt": run.Halted} {
		t.Run(action, func(t *testing.T) {
			tr := h.within(t).trial(t, toCheckout...)
			tr.begin()
			first := tr.asked(run.QuestionHandoff)
			tr.write("work.txt", "line 1\nmine\n")
			tr.write("other.txt", "mine too\n")
			tr.decide("continue")
			q := tr.asked(run.QuestionDelivery, first)
			require.Equal(t, []string{"retry", "skip", "halt"}, q.Actions)
			require.Contains(t, q.Text, "work.txt")
			require.NotContains(t, q.Text, "other.txt", "that one is not in the way")
			if action == "retry" {
				tr.decide("retry")
				tr.asked(run.QuestionDelivery, q)
				tr.git("checkout", "-q", "work.txt")
			}
			tr.decide(action)
			tr.over(end)
			if action != "retry" {
				require.Equal(t, " M other.txt\n M work.txt", tr.git("status", "--porcelain"))
				require.Equal(t, "Begin", tr.git("log", "-1", "--format=%s"))
				require.Contains(t, string(read(t, tr.dir+"/delivery.patch")), "+line 2")
				return
			}
			require.Equal(t, " M other.txt", tr.git("status", "--porcelain"),
				"what else was changed there stays, uncommitted")
			require.Equal(t, "line 1\nline 2", tr.git("show", "main:work.txt"))
			require.Equal(t, "other", tr.git("show", "main:other.txt"))
			require.Equal(t, tr.git("rev-parse", "feature"), tr.git("rev-parse", "main^"))
		})
	}
}

// testConflict: the branch that is to get the changes went another way meanwhile.
func testConflict(t *testing.T, h *environment) {
	tr := h.trial(t, append([]string{"branch: result}", "branch: feature}"}, toCheckout[2:]...)...)
	tr.begin()
	first := tr.asked(run.QuestionHandoff)
	tr.git("checkout", "-q", "feature")
	tr.write("work.txt", "another line 1\n")
	tr.git("commit", "-q", "-a", "-m", "Theirs")
	theirs := tr.git("rev-parse", "feature")
	tr.git("checkout", "-q", "main")
	tr.decide("continue")
	q := tr.asked(run.QuestionDelivery, first)
	require.Contains(t, q.Text, "the changes no longer apply")
	require.Equal(t, theirs, tr.git("rev-parse", "feature"))
	tr.git("branch", "-f", "feature", "main")
	tr.decide("retry")
	tr.over(run.Done)
	require.Equal(t, "line 1\nline 2", tr.git("show", "feature:work.txt"))
	tr.git("branch", "-f", "feature", "main")
	tr.untouched()
}

// testFixedGate: a command fails; a person mends the file in the run's own checkout, and the command is run again
// there.
func testFixedGate(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("breaks", "")
	tr.begin()
	q := tr.asked(run.QuestionGate)
	require.Equal(t, []string{"retry", "continue_with_waiver", "halt"}, q.Actions)
	require.Equal(t, "test ! -e broken.txt failed with exit code 1. Continue?", q.Text)
	workspace := filepath.Join(tr.dir, "workspace")
	require.NoError(t, os.Remove(filepath.Join(workspace, "broken.txt")))
	require.NoError(t, os.WriteFile(filepath.Join(workspace, "mended.txt"), []byte("by hand\n"), 0o600))
	tr.decide("retry", "--note", "mended")
	events := tr.over(run.Done)
	tr.untouched("result")
	require.Equal(t, "mended.txt work.txt", strings.Join(strings.Fields(tr.git("diff", "--name-only", "main",
		"result")), " "))
	require.Equal(t, "by hand", tr.git("show", "result:mended.txt"))
	require.Equal(t, "planner implementer reviewer", tr.calls(), "nothing was paid for again")
	var causes []string
	for _, u := range of[run.WorkspaceUpdated](events, run.KindWorkspaceUpdated) {
		causes = append(causes, u.Cause)
	}
	require.Equal(t, []string{"", "edited"}, causes)
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

// testPlanOnly: a person reviews a plan; it is done once more with their words, and then it is good.
func testPlanOnly(t *testing.T, h *environment) {
	tr := h.planned(t)
	tr.begin()
	q := tr.asked(run.QuestionReview)
	require.Equal(t, []string{"approve", "retry_feedback", "halt"}, q.Actions)
	require.Equal(t, string(run.AwaitingHumanReview), metaOf(t, tr.dir).Status)
	require.Contains(t, h.starter("decide", "--show", tr.dir), "The plan: add a line to work.txt.")
	tr.decide("retry_feedback", "--feedback", "say where")
	tr.asked(run.QuestionReview, q)
	repeated := string(read(t, filepath.Join(tr.steer, "prompt-planner-2")))
	for _, part := range []string{"Do you approve its result?", "The plan: add a line to work.txt.", "say where"} {
		require.Contains(t, repeated, part)
	}
	tr.decide("approve")
	tr.over(run.Done)
	require.Equal(t, "planner planner", tr.calls())
	first := string(read(t, filepath.Join(tr.dir, "_orchestrator/passes/pass-001/prompt.md")))
	again := string(read(t, filepath.Join(tr.dir, "_orchestrator/passes/pass-001-redo-1/prompt.md")))
	require.NotContains(t, first, "say where", "the evidence of the first call stays as it was")
	require.Contains(t, again, "say where")
	require.FileExists(t, filepath.Join(tr.dir, "_orchestrator/passes/pass-001/raw-output.txt"))
	require.FileExists(t, filepath.Join(tr.dir, "_orchestrator/passes/pass-001-redo-1/raw-output.txt"))
	h.sound(tr.dir)
	require.Equal(t, run.ReasonReviewApproved, metaOf(t, tr.dir).Reason)
	tr.untouched()
}

// testFollowUp: a run with a new task begins where the earlier one ended, and says so.
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
	next.begin("--from-run-plan", parent.RunID)
	next.over(run.Done)
	require.Equal(t, "planner implementer reviewer", next.calls(), "the plan was made once")
	for _, prompt := range []string{"prompt-implementer-1", "prompt-reviewer-1"} {
		require.Contains(t, string(read(t, filepath.Join(next.steer, prompt))), "The plan: add a line to work.txt.")
	}
	require.Equal(t, parent.RunID, metaOf(t, next.dir).Parent.RunID)
	require.Equal(t, "line 1\nline 2", next.git("show", "result:work.txt"))
	next.untouched("result")
}

// testLostAtAGate: the workflow is gone while a gate waits. Deciding it lets the run go on in the next epoch, from
// there.
func testLostAtAGate(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.steerAgents("breaks", "")
	tr.begin()
	q := tr.asked(run.QuestionGate)
	c := h.dial()
	require.NoError(t, c.TerminateWorkflow(t.Context(), metaOf(t, tr.dir).RunID, "", "test"))
	until(t, "it is seen", func() bool { return h.status(tr.dir).EffectiveStatus.Status == run.Interrupted })
	for verb, names := range map[string]string{"check": q.ID, "repair-state": q.ID, "status": "decide " + tr.dir,
		"resume": q.ID} {
		output, code := h.try(verb, tr.dir)
		require.Equal(t, 4, code, "%s: %s", verb, output)
		require.Contains(t, output, names, verb)
	}

	moved := filepath.Join(tr.folder, "moved")
	require.NoError(t, os.Rename(tr.dir, moved))
	tr.dir = moved
	tr.decide("continue_with_waiver", "--feedback", "broken is fine")
	events := tr.over(run.Done)
	require.Equal(t, 2, metaOf(t, tr.dir).Epoch)
	decided := of[run.QuestionDecided](events, run.KindGateDecided)
	require.Len(t, decided, 1)
	require.Equal(t, q.ID, decided[0].ID)
	require.Contains(t, string(read(t, filepath.Join(tr.steer, "prompt-reviewer-1"))), "broken is fine")
	require.Equal(t, "planner implementer reviewer", tr.calls())
	require.Equal(t, "broken", tr.git("show", "result:broken.txt"))
	tr.untouched("result")
}

// testMovedWhileItWaits: the run's folder is moved while a question is open. Whoever answers says where it is now.
func testMovedWhileItWaits(t *testing.T, h *environment) {
	tr := h.trial(t, toCheckout...)
	tr.begin()
	tr.asked(run.QuestionHandoff)
	moved := filepath.Join(tr.folder, "moved")
	require.NoError(t, os.Rename(tr.dir, moved))
	tr.dir = moved
	tr.decide("continue")
	tr.over(run.Done)
	require.NoDirExists(t, filepath.Join(tr.folder, "run"))
	require.Equal(t, "line 1\nline 2", tr.git("show", "main:work.txt"))
	require.Equal(t, "line 1\nline 2\n", string(read(t, filepath.Join(moved, "workspace", "work.txt"))))
}

// testTurns: on a folder without git, implementer and reviewer take turns until the review approves and the tests pass.
func testTurns(t *testing.T, h *environment) {
	tr := h.trial(t)
	raw := string(read(t, tr.config()))
	at := strings.Index(raw, "stages:\n")
	require.Positive(t, at)
	raw = raw[:at] + `stages:
  - name: turns
    repeat: {max: 5, until: verdict == approved and tests == ok}
    steps:
      - {role: implementer, see: last}
      - {run: 'test "$(wc -l <work.txt)" -ge 4', as: tests}
      - {role: reviewer, see: last}
`
	raw = strings.Replace(raw, "workspace: {git: worktree}\ndelivery: {to: branch, branch: result}\n",
		"workspace: {dir: .}\n", 1)
	require.NoError(t, os.WriteFile(tr.config(), []byte(raw), 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(tr.source, ".git")))
	before := tree(t, tr.source)
	tr.steerAgents("verdicts", "approved\nrejected\napproved\n")
	tr.begin()
	events := tr.over(run.Done)
	require.Equal(t, "implementer reviewer implementer reviewer implementer reviewer", tr.calls(),
		"approved alone is not enough")
	require.Equal(t, "line 1\nline 2\nline 3\nline 4\n",
		string(read(t, filepath.Join(tr.dir, "workspace", "work.txt"))))
	require.Equal(t, before, tree(t, tr.source), "the run works on a copy")
	var values []string
	for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
		if p.As == "tests" {
			values = append(values, p.Value)
		}
	}
	require.Equal(t, []string{"failed", "failed", "ok"}, values)
	require.Nil(t, metaOf(t, tr.dir).State.Delivery)
}
