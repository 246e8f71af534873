package workflows_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// changingLanes are lanes of two steps that change files.
var changingLanes = strings.NewReplacer("gives: report", "gives: changes", "steps: [{role: worker}]",
	"steps: [{role: worker}, {run: make test, if_failing: ask}]", "attempts: 3", "attempts: 1").Replace(threeLanes)

// fakeMerges merges trees by their names: "first tree" and lanes a and b become "first tree+a+b".
type fakeMerges struct {
	mu        sync.Mutex
	conflicts map[string]int    // of the lanes of these items, so often
	onto      []string          // the tree before each merge, and the item
	broken    bool              // none can be made
	merging   map[string]func() // called before the merge of an item, once
}

func (f *fakeMerges) merge(_ context.Context, in contract.MergeInput) (contract.MergeResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	item := strings.Split(in.Lane.Digest, ".")[3] // tree of run-1/g0.work/1.1.a.1
	f.onto = append(f.onto, in.Tree.Tree.Digest+" "+item)
	if before := f.merging[item]; before != nil {
		delete(f.merging, item)
		before()
	}
	if f.broken {
		return contract.MergeResult{}, temporal.NewNonRetryableApplicationError("the checkout is gone", "gone", nil)
	}
	if f.conflicts[item] > 0 {
		f.conflicts[item]--
		return contract.MergeResult{Conflicts: []string{"common.txt"}, Count: 1}, nil
	}
	tree := run.Blob{Digest: in.Tree.Tree.Digest + "+" + item}
	return contract.MergeResult{Changes: &run.WorkspaceUpdated{Tree: tree, Commit: "commit of " + tree.Digest,
		Changed: 1}}, nil
}

// merging is a harness with six lanes that change files.
func merging(t *testing.T, src string) *harness {
	t.Helper()
	w := inLanes(t, src)
	w.merges = &fakeMerges{conflicts: map[string]int{}, merging: map[string]func(){}}
	w.fresh()
	return w
}

// TestFailedLanesAreLeftOut mixes lanes that are done, fail, fail their check and conflict. With if_failing: continue
// only a conflict asks. What is left out is not in the tree, and the others are merged in the order of the list.
func TestFailedLanesAreLeftOut(t *testing.T) {
	w := merging(t, changingLanes)
	w.agent.will(laneCall("b", "1"), goes(transient))
	w.agent.will("g0.work/2.1.d.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Value, ok.Validation.Passed, ok.ExitCode = "failed", false, 2
		return ok, nil
	})
	w.merges.conflicts["e"] = 1
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
	require.Equal(t, []string{"a done", "b failed", "c done", "d failed", "e done", "e failed", "f done"}, w.ended())
	s := w.dir.state(t)
	require.Equal(t, "first tree+a+c+f", s.Tree.Digest)
	require.Equal(t, "commit of first tree+a+c+f", s.Commit)
	require.Equal(t, &run.LaneTotals{Count: 6, Failed: 3}, s.LaneTotals)
	require.Len(t, payloads[run.LaneMerged](w, run.KindLaneMerged), 3)
}

// TestCommandOfALaneThatCannotRun pauses the run: it would not run in another lane either. Resume runs it again.
func TestCommandOfALaneThatCannotRun(t *testing.T) {
	w := merging(t, changingLanes)
	w.agent.will("g0.work/2.1.b.1", goes(permanent))
	w.onEachPause(func(int) { w.signal("resume", message{}) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1)
	require.Equal(t, run.GateFailed, paused[0].Reason)
	require.Equal(t, []string{"a done", "b done", "c done", "d done", "e done", "f done"}, w.ended())
	require.Equal(t, 1, w.agent.calls[laneCall("b", "1")], "what was answered is not asked again")
}

// TestConflictIsRepeatedOnMergedTree: a retried lane begins with the merged tree, and is merged onto it.
func TestConflictIsRepeatedOnMergedTree(t *testing.T) {
	w := merging(t, changingLanes)
	w.merges.conflicts["b"] = 1
	w.answers(message{"action": "retry"})
	w.done()
	s := w.dir.state(t)
	require.Equal(t, "first tree+a+b+c+d+e+f", s.Tree.Digest)
	require.Equal(t, []string{"first tree a", "first tree+a b", "first tree+a b"}, w.merges.onto[:3])
	for i, id := range w.agent.ids {
		if id == laneCall("b", "r1-1") {
			require.Equal(t, "first tree+a", w.agent.inputs[i].Tree.Tree.Digest)
		}
	}
	require.Contains(t, w.agent.ids, laneCall("b", "r1-1"))
}

// TestRevertToMergedLane: a run that is reverted to the merge of a lane has the tree that was merged by then, merges
// the other lanes onto it, and repeats no lane that had ended by then.
func TestRevertToMergedLane(t *testing.T) {
	w := merging(t, changingLanes)
	w.merges.merging["c"] = func() { w.signal("pause", nil) }
	var then run.State
	var repeated []string
	w.onPause(func() {
		var s run.State
		for _, e := range w.dir.events(t) {
			s = run.Apply(s, e)
			if e.Kind == run.KindLaneMerged && s.Lanes.Merged == 2 {
				then = s
			}
		}
		repeated = slices.DeleteFunc(slices.Clone(w.items), func(item string) bool {
			_, active := then.Lane(item)
			return !active && slices.Index(w.items, item) < then.Lanes.Begun
		})
		w.signal("revert", message{"to": run.UnnamedID(then.Seq)})
	})
	w.done()
	require.Equal(t, "first tree+a+b", then.Tree.Digest)
	s := w.dir.state(t)
	require.Equal(t, "first tree+a+b+c+d+e+f", s.Tree.Digest)
	require.Equal(t, &run.LaneTotals{Count: 6}, s.LaneTotals)
	require.Len(t, payloads[run.RunReverted](w, run.KindRunReverted), 1)
	var again []string
	for _, id := range w.agent.ids {
		if item := strings.Split(id, ".")[3]; strings.HasPrefix(id, "g1.") && !slices.Contains(again, item) {
			again = append(again, item)
		}
	}
	require.Subset(t, repeated, again)
	first := slices.Index(w.merges.onto, "first tree+a+b c")
	require.Contains(t, w.merges.onto[first+1:], "first tree+a+b c", "lane c is merged again, onto the same tree")
}

// TestFailedMergePausesAfterTheLanes: a merge that fails pauses the run. The lanes beside it end their steps before the
// run waits: a revert abandons them all, and a resume merges again.
func TestFailedMergePausesAfterTheLanes(t *testing.T) {
	for _, then := range []string{"resume", "revert"} {
		t.Run(then, func(t *testing.T) {
			w := merging(t, changingLanes).observed()
			w.merges.broken = true
			decided := make(chan struct{})
			w.agent.will(laneCall("b", "1"), after(func() { <-decided }))
			w.onPause(func() {
				w.merges.broken = false
				w.signal(then, message{"to": "cp-1"})
				w.whenQuiet(1, func() { close(decided) }) // a revert beside the call is made by then
			})
			w.done()
			s := w.dir.state(t)
			require.Empty(t, s.InvalidTransition)
			require.Equal(t, "first tree+a+b+c+d+e+f", s.Tree.Digest)
			paused := payloads[run.RunPaused](w, run.KindRunPaused)
			require.Len(t, paused, 1)
			require.Contains(t, paused[0].Detail, "merge the changes of a: the checkout is gone")
			require.Len(t, payloads[run.LaneMerged](w, run.KindLaneMerged), 6)
			reverted := false
			for _, e := range w.dir.events(t) {
				reverted = reverted || e.Kind == run.KindRunReverted
				if reverted && e.Kind == run.KindPassEnd {
					require.Contains(t, run.PayloadOf[run.PassEnd](e).Call, "/g1.", "of no lane that was abandoned")
				}
			}
			require.Equal(t, then == "revert", reverted)
		})
	}
}

// TestEndsAreWrittenDuringLongLane: the ends of the last lanes are in the directory while another one works.
func TestEndsAreWrittenDuringLongLane(t *testing.T) {
	w := merging(t, changingLanes)
	ended, left := make(chan struct{}), len(w.items)-1
	var count func()
	count = func() {
		if left--; left == 0 {
			close(ended)
			return
		}
		w.dir.when(run.KindLaneEnded, count)
	}
	w.dir.when(run.KindLaneEnded, count)
	w.agent.will(laneCall("d", "1"), after(func() { <-ended }))
	w.done()
	require.Len(t, w.ended(), len(w.items))
}
