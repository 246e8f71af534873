package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

const sixLanes = `
pipeline: lanes
agent: {run: [claude, -p], reply: claude-json}
workspace: {git: worktree}
roles:
  worker: {prompt: prompt.md, gives: changes}
stages:
  - name: work
    each: {in: '*.go', at_once: 3, if_failing: continue}
    steps: [{role: worker}]
`

// asking are the same lanes, about which an operator is asked.
var asking = strings.Replace(sixLanes, ", if_failing: continue", "", 1)

var errGone = temporal.NewNonRetryableApplicationError("the checkout is gone", "gone", nil)

// inLanes is a harness with six lanes, three at the same time.
func inLanes(t *testing.T, src string) *harness {
	t.Helper()
	w := newHarness(t, src)
	w.items, w.lanes = []string{"a", "b", "c", "d", "e", "f"}, newLanes()
	w.fresh()
	return w
}

// laneStory lists the events of lanes, one line for each.
func (w *harness) laneStory() (all []string) {
	for _, e := range w.dir.events(w.t) {
		var p run.ChildEnd
		if strings.HasPrefix(string(e.Kind), "child.") {
			e.Decode(&p)
			all = append(all, strings.TrimSpace(strings.TrimPrefix(string(e.Kind), "child.")+" "+p.Name+p.Suffix+" "+string(p.Outcome)))
		}
	}
	return all
}

func only(all []string, what string) (some []string) {
	for _, s := range all {
		if strings.HasPrefix(s, what) {
			some = append(some, s)
		}
	}
	return some
}

// TestLanesAreMergedInOrder: lanes that end in another order are merged in that of the list, as many work as the
// definition allows, and what they cost is a cost of the run.
func TestLanesAreMergedInOrder(t *testing.T) {
	w := inLanes(t, sixLanes)
	w.lanes.works["a"] = 10 * time.Hour
	w.lanes.leaves["c"] = []contract.ChildFound{{Status: run.Done, Closed: true, Tree: &run.Blob{Digest: "first tree"}}}
	w.done()
	require.Equal(t, []string{"first tree a", "first tree+a b", "first tree+a+b d", "first tree+a+b+d e",
		"first tree+a+b+d+e f"}, w.lanes.onto, "c changes nothing")
	require.Equal(t, 3, w.lanes.atOnce)
	s := w.dir.state(t)
	require.Equal(t, "first tree+a+b+d+e+f", s.Tree.Digest)
	require.Equal(t, "commit of first tree+a+b+d+e+f", s.Commit)
	require.Equal(t, &run.LaneTotals{Count: 6}, s.LaneTotals)
	require.InDelta(t, 6.0, s.Total(), 0)
	require.Equal(t, 6, s.Used.Calls)
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, w.lanes.started())
	for id, n := range w.lanes.reads {
		require.Equal(t, 1, n, "%s: who started it reads its record when it ends", id)
	}
	first := w.lanes.inputs[0]
	require.Equal(t, "run-1.1.a", first.Target.RunID)
	require.Equal(t, "/runs/1/lanes/work/a", first.Target.Dir)
	require.Equal(t, "run-1", first.Start.Lane.Calls)
	require.False(t, first.Start.Delivers)
	require.Equal(t, "first tree", first.Start.Workspace.Tree.Digest)
}

// TestFailedLanesAreLeftOut: with if_failing: continue only a conflict asks. What is left out is not in the tree.
func TestFailedLanesAreLeftOut(t *testing.T) {
	w := inLanes(t, sixLanes)
	w.lanes.leaves["b"] = []contract.ChildFound{{Status: run.Failed, Reason: "no answer", Closed: true}}
	w.lanes.conflicts["e"] = 1
	var asked []string
	w.answering(func(_ int, q run.Question) {
		asked = append(asked, q.Words(), q.Meaning("retry"), q.Meaning("continue_with_waiver"))
		w.signal("decide", message{"action": "continue_with_waiver", "feedback": "leave it out"})
	})
	w.done()
	require.Equal(t, []string{"Lane 5, e: Its changes conflict with those of earlier lanes in common.txt. retry does " +
		"the work again on top of theirs; continue_with_waiver leaves the lane out.",
		"do the work of the lane again, on the merged tree",
		"leave the lane out; your feedback is recorded and shown to later reviews"}, asked)
	require.Equal(t, []string{"skipped b", "skipped e"}, only(w.laneStory(), "skipped"))
	s := w.dir.state(t)
	require.Equal(t, "first tree+a+c+d+f", s.Tree.Digest)
	require.Equal(t, &run.LaneTotals{Count: 6, Failed: 2}, s.LaneTotals)
}

// TestConflictIsRepeatedOnMergedTree: a lane that is done again begins with the merged tree, and is merged onto it.
func TestConflictIsRepeatedOnMergedTree(t *testing.T) {
	w := inLanes(t, sixLanes)
	w.lanes.conflicts["b"] = 1
	w.answers(message{"action": "retry"})
	w.done()
	require.Equal(t, "first tree+a+b+c+d+e+f", w.dir.state(t).Tree.Digest)
	require.Equal(t, []string{"first tree a", "first tree+a b", "first tree+a b~2"}, w.lanes.onto[:3])
	again := w.lanes.inputs[slices.Index(w.lanes.started(), "b~2")]
	require.Equal(t, "first tree+a", again.Start.Workspace.Tree.Digest)
	require.Equal(t, 1, again.Start.Lane.Redo)
}

// gate is a lane that asks whether its work is good.
func gate() contract.ChildFound {
	return contract.ChildFound{Status: run.AwaitingGateDecision, Question: &run.Question{
		Kind: run.QuestionGate, ID: "gate-1", Text: "make test failed. Continue?", Actions: []string{"retry", "halt"}}}
}

// TestQuestionsOfLanes: what a lane asks or cannot do is asked in its run while the others work; the answer is sent to
// the lane.
func TestQuestionsOfLanes(t *testing.T) {
	failed := contract.ChildFound{Status: run.Paused, Reason: run.PassFailed, Detail: "worker failed in 3 attempts"}
	for name, row := range map[string]struct {
		leaves []contract.ChildFound
		action string
		asks   string
		told   []string
		story  string
	}{
		"a check, done again": {[]contract.ChildFound{gate()}, "retry", "Lane 2, b: make test failed. Continue? retry " +
			"repeats the work; continue_with_waiver accepts it as it is.", []string{"b decide retry"}, "ended b done"},
		"a check, accepted": {[]contract.ChildFound{gate()}, "continue_with_waiver", "", []string{"b decide continue_with_waiver"},
			"ended b done"},
		"a failed pass, done again": {[]contract.ChildFound{failed}, "retry", "Lane 2, b: worker failed in 3 attempts. retry " +
			"repeats the step; continue_with_waiver leaves the lane out.", []string{"b resume "}, "ended b done"},
		"a failed pass, left out": {[]contract.ChildFound{failed}, "continue_with_waiver", "", nil, "skipped b"},
		"a cancelled lane, done again": {[]contract.ChildFound{{Status: run.Cancelled, Closed: true}}, "retry", "Lane 2, b: its run is " +
			"cancelled. retry does the work again; continue_with_waiver leaves the lane out.", nil, "ended b~2 done"},
	} {
		t.Run(name, func(t *testing.T) {
			w := inLanes(t, asking)
			w.lanes.leaves["b"] = row.leaves
			w.answering(func(_ int, q run.Question) {
				if row.asks != "" {
					require.Equal(t, row.asks, q.Words())
				}
				w.signal("decide", message{"action": row.action, "feedback": "known"})
			})
			w.done()
			require.Equal(t, row.told, w.lanes.sortedTold())
			require.Contains(t, w.laneStory(), row.story)
			require.Len(t, payloads[run.QuestionDecided](w, run.KindGateDecided), 1)
			require.InDelta(t, float64(len(w.lanes.started())), w.dir.state(t).Total(), 0, "each run of a lane costs one")
		})
	}
}

// TestLaneThatContinuesNeedsNoAnswer: an operator decides at the lane; the question of its run is closed.
func TestLaneThatContinuesNeedsNoAnswer(t *testing.T) {
	w := inLanes(t, asking)
	w.lanes.leaves["b"] = []contract.ChildFound{gate()}
	w.answering(func(_ int, q run.Question) {
		require.NoError(t, w.env.SignalWorkflowByID("run-1.1.b", "decide", message{"action": "retry"}))
	})
	w.done()
	decided := payloads[run.QuestionDecided](w, run.KindGateDecided)
	require.Len(t, decided, 1)
	require.Equal(t, "lane b", decided[0].DecidedBy)
}

// TestAnswerIsForTheQuestionThatWasShown: a lane that asks again, before its run has read that, does not get the answer
// to its first question.
func TestAnswerIsForTheQuestionThatWasShown(t *testing.T) {
	for name, answersFirst := range map[string]bool{"open": false, "answered meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			w := inLanes(t, asking)
			w.lanes.leaves["b"] = []contract.ChildFound{gate()}
			w.answering(func(n int, q run.Question) {
				if n > 1 {
					w.signal("decide", message{"action": "continue_with_waiver", "feedback": "known"})
					return
				}
				again := gate()
				again.Question.ID = "gate-2"
				w.lanes.set("run-1.1.b", w.lanes.inputs[1], again)
				if answersFirst {
					w.lanes.reading = map[string]func(){"run-1.1.b": func() { w.signal("decide", message{"action": "retry", "id": q.ID}) }}
				}
				w.signal(contract.ChildChanged, message{"child_run_id": "run-1.1.b"})
			})
			w.done()
			require.Equal(t, []string{"b decide continue_with_waiver"}, w.lanes.sortedTold())
			require.Len(t, payloads[run.QuestionDecided](w, run.KindGateDecided), 2)
		})
	}
}

// TestHaltEndsRunWithLanes: nothing else starts, and the lanes that work are stopped.
func TestHaltEndsRunWithLanes(t *testing.T) {
	w := inLanes(t, asking)
	w.lanes.works["c"] = 5 * time.Hour
	w.lanes.leaves["b"] = []contract.ChildFound{gate()}
	w.answers(message{"action": "halt"})
	w.executeHalted()
	require.Contains(t, w.laneStory(), "ended c stopped")
	require.NotContains(t, w.lanes.started(), "f")
}

// TestPauseAndResumeReachLanes: a pause of the run is one of its lanes, and so is a resume.
func TestPauseAndResumeReachLanes(t *testing.T) {
	w := inLanes(t, sixLanes)
	rests := contract.ChildFound{Status: run.Paused, Reason: run.UserRequested}
	for _, item := range w.items[:3] {
		w.lanes.leaves[item] = []contract.ChildFound{rests}
	}
	w.at(30*time.Minute, func() { w.signal("pause", nil) })
	w.onPause(func() { w.at(3*time.Hour, func() { w.signal("resume", nil) }) })
	w.done()
	require.Equal(t, []string{"a pause ", "a resume ", "b pause ", "b resume ", "c pause ", "c resume "}, w.lanes.sortedTold())
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, w.lanes.started())
}

// TestCancelStopsLanes: what they have cost is counted, and they begin again with their run.
func TestCancelStopsLanes(t *testing.T) {
	w := inLanes(t, sixLanes)
	w.at(30*time.Minute, w.env.CancelWorkflow)
	_, err := w.execute()
	require.Error(t, err)
	require.ElementsMatch(t, []string{"ended a stopped", "ended b stopped", "ended c stopped"}, only(w.laneStory(), "ended"))
	s := w.dir.state(t)
	require.Equal(t, run.Cancelled, s.Status)
	require.InDelta(t, 3.0, s.Total(), 0)
	require.Len(t, s.Lanes.Again, 3)
	require.Equal(t, "~2", s.NextLane("", "").Suffix)
}

// TestBudgetStopsLanes: all lanes together keep to the budget. After it is raised, each item has one lane.
func TestBudgetStopsLanes(t *testing.T) {
	w := inLanes(t, withBudget(sixLanes, "{usd: 4}"))
	var paused run.State
	var before []string
	w.onPause(func() {
		paused, before = w.dir.state(t), w.lanes.started()
		w.signal("budget", message{"usd": 20})
		w.signal("resume", nil)
	})
	w.done()
	require.Equal(t, run.BudgetThreshold, paused.Reason)
	require.LessOrEqual(t, paused.Total(), 4.0)
	require.Len(t, before, 4)
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, w.lanes.started())
	shares := 0.0
	for _, in := range w.lanes.inputs[:3] {
		shares += in.Start.Budget.CapUSD
	}
	require.LessOrEqual(t, shares, 4.0)
}

// TestShortLaneGetsMore: a lane whose share is used up continues with what others have left, or pauses its run.
func TestShortLaneGetsMore(t *testing.T) {
	w := inLanes(t, withBudget(sixLanes, "{usd: 30}"))
	w.lanes.leaves["a"] = []contract.ChildFound{{Status: run.Paused, Reason: run.BudgetThreshold,
		Need: &run.Need{Role: "worker", USD: 2}}}
	w.done()
	require.Contains(t, w.lanes.sortedTold(), "a resume ")
	require.Empty(t, payloads[run.RunPaused](w, run.KindRunPaused))
}

// TestRevertStopsLanes: lanes that had not ended begin again under another name; those that had are merged as they are.
func TestRevertStopsLanes(t *testing.T) {
	w := inLanes(t, sixLanes)
	w.lanes.merging["c"] = func() { w.signal("pause", nil) }
	var then run.State
	w.onPause(func() {
		var s run.State
		for _, e := range w.dir.events(t) {
			s = run.Apply(s, e)
			if e.Kind == run.KindChildMerged && s.Lanes.Merged == 2 {
				then = s
			}
		}
		w.signal("revert", message{"to": run.UnnamedID(then.Seq)})
	})
	w.done()
	require.Equal(t, "first tree+a+b", then.Tree.Digest)
	s := w.dir.state(t)
	require.Equal(t, "first tree+a+b+c+d+e+f", s.Tree.Digest)
	require.Equal(t, &run.LaneTotals{Count: 6}, s.LaneTotals)
	for _, l := range then.Lanes.Active {
		require.Contains(t, w.lanes.started(), l.Key+"~g1")
	}
	require.Contains(t, w.lanes.onto, "first tree+a+b c", "c had ended")
}

// TestFailedMergePauses: a resume merges again.
func TestFailedMergePauses(t *testing.T) {
	w := inLanes(t, sixLanes)
	w.lanes.broken = true
	w.onPause(func() {
		w.lanes.broken = false
		w.signal("resume", nil)
	})
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Contains(t, paused[0].Detail, "merge lane 1: the checkout is gone")
	require.Equal(t, "first tree+a+b+c+d+e+f", w.dir.state(t).Tree.Digest)
}

// TestMissingListPausesAtItsStep: without a valid list the run pauses at the step with the list, which a resume repeats.
func TestMissingListPausesAtItsStep(t *testing.T) {
	w := inLanes(t, strings.NewReplacer("roles:\n", "roles:\n  planner: {prompt: prompt.md, gives: report, schema: plan}\n", "stages:\n",
		"stages:\n  - name: planning\n    steps: [{role: planner, id: plan}]\n", "'*.go'", "plan.files").Replace(sixLanes))
	w.agent.will("g0.001.1.-.1", goes(noSections))
	w.agent.will("g0.001.1.-.2", goes(noSections))
	w.onPause(func() {
		s := w.dir.state(t)
		require.Equal(t, run.PassFailed, s.Reason)
		require.Zero(t, s.Next.Stage)
		w.signal("resume", message{})
	})
	w.done()
	require.Len(t, payloads[run.RunPaused](w, run.KindRunPaused), 1)
}

// TestTokensBoundEachLane: where no tokens are left, no lane begins, and the run pauses. A share of 0 would be no limit.
func TestTokensBoundEachLane(t *testing.T) {
	w := inLanes(t, withBudget(asking, "{tokens: 30}")) // each lane uses 10
	w.lanes.leaves["b"] = []contract.ChildFound{gate()}
	w.answers(message{"action": "continue_with_waiver", "feedback": "known"})
	w.onPause(func() {
		require.Equal(t, run.BudgetThreshold, w.dir.state(t).Reason)
		w.signal("budget", message{"tokens": 90})
		w.signal("resume", nil)
	})
	w.done()
	require.NotEmpty(t, payloads[run.RunPaused](w, run.KindRunPaused))
	for _, in := range w.lanes.inputs {
		require.Positive(t, in.Start.Budget.Tokens, in.Start.Lane.Name)
	}
}
