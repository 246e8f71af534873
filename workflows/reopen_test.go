package workflows_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// reopened is a new epoch on what the directory of w holds.
func (w *harness) reopened(r workflows.Reopen) {
	w.t.Helper()
	w.in.Reopen = &r
	w.in.Snapshot = &workflows.Snapshot{State: w.dir.state(w.t), Tail: w.dir.tail()}
	w.fresh()
}

// cutOff cancels the run when its first pass has settled, before the next call.
func (w *harness) cutOff() {
	w.t.Helper()
	w.in.Options.Turns = false
	defer func() { w.in.Options.Turns = true }()
	w.dir.when(run.KindPassEnd, func() { w.env.CancelWorkflow() })
	_, err := w.execute()
	var cancelled *temporal.CanceledError
	require.ErrorAs(w.t, err, &cancelled)
	require.Equal(w.t, run.Cancelled, w.dir.state(w.t).Status)
}

func TestReopenCancelledRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	before := len(w.dir.lines)
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Cancelled, By: "ada", Auth: "key ada", Note: "go on", Force: true,
		Reason: "fixed", Host: "there", Build: "v2", Cluster: "cluster", Embedded: true, Address: "localhost:1",
		Overruled: []string{"agents"}})
	w.done()
	opened := w.dir.opens[1]
	require.Equal(t, []any{2, "cluster", true, "localhost:1", int64(before), w.in.Claim, ""}, []any{opened.Epoch,
		opened.Cluster, opened.Embedded, opened.Address, opened.Tail.Seq, opened.Claim, opened.Task})
	s := w.dir.state(t)
	require.Equal(t, 2, s.Epoch)
	require.Equal(t, 2, s.Starts)
	resumed := payloads[run.RunResumed](w, run.KindRunResumed)
	require.Len(t, resumed, 1)
	got := resumed[0]
	require.Equal(t, []any{"key ada", "go on", true, "fixed", "there", "v2", []string{"agents"}}, []any{got.Auth, got.Note,
		got.Force, got.Why, got.Host, got.Build, got.Overruled})
	require.Equal(t, "ada", resumed[0].By)
	require.Equal(t, run.Cancelled, resumed[0].From)
	require.Empty(t, payloads[run.RunInterrupted](w, run.KindRunInterrupted),
		"a run that closed by itself was not interrupted")
	require.Equal(t, run.KindRunResumed, w.dir.events(t)[before].Kind)
	require.Equal(t, 1, w.agent.calls[call(1, 1)], "a settled pass was called again")
	require.Len(t, payloads[run.RunEnd](w, run.KindRunEnd), 2, "one end for each epoch")
}

func TestReopenJournalsInterruptionFirst(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	torn := w.terminatedAfter(run.KindPassEnd)
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Interrupted, Interruption: "its workflow has been terminated"})
	w.done()
	events := w.dir.events(t)
	require.Equal(t, run.KindRunInterrupted, events[torn].Kind)
	require.Equal(t, run.KindRunResumed, events[torn+1].Kind)
	output := payloads[run.RunInterrupted](w, run.KindRunInterrupted)[0]
	require.Equal(t, "its workflow has been terminated", output.Reason)
	require.NotEmpty(t, output.At)
	require.Equal(t, int64(1), w.dir.seals[0].First, "what the lost execution had not stored is stored first")
	require.EqualValues(t, torn, w.dir.seals[0].Tail.Seq)
	require.Equal(t, 1, w.agent.calls[call(1, 1)])
}

// A halt is its decision and one end: if the workflow was terminated between both, the next epoch writes the end.
func TestReopenEndsHaltFirst(t *testing.T) {
	w := newHarness(t, anAsk)
	w.answers(message{"action": "halt", "by": "ada"})
	w.ends(run.Halted, run.ReasonHandoffHalt)
	cut := w.terminatedAfter(run.KindHandoffDecided)
	require.Equal(t, run.Halted, w.dir.state(t).Status)
	w.agent.scores = []float64{3}
	w.answers(message{"action": "continue"})
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Halted, Force: true, Reason: "all the same", Unended: true})
	w.done()
	require.Equal(t, run.KindRunEnd, w.dir.events(t)[cut].Kind)
	require.Equal(t, run.KindRunResumed, w.dir.events(t)[cut+1].Kind)
	ends := payloads[run.RunEnd](w, run.KindRunEnd)
	require.Equal(t, []run.RunEnd{{Status: run.Halted, Reason: run.ReasonHandoffHalt}, {Status: run.Done}}, ends)
}

func TestReopenCancelsInterruptedRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	torn := w.terminatedAfter(run.KindPassEnd)
	calls := maps.Clone(w.agent.calls)
	w.reopened(workflows.Reopen{
		Epoch: 2, From: run.Interrupted, Interruption: "its workflow has been terminated", Cancel: true,
	})
	_, err := w.execute()
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, err, &cancelled)
	require.Equal(t, []run.Kind{run.KindRunInterrupted, run.KindRunResumed, run.KindRunEnd},
		fields(w.dir.events(t)[torn:], func(e run.Event) run.Kind { return e.Kind }))
	require.Equal(t, run.Cancelled, w.dir.state(t).Status)
	require.Equal(t, calls, w.agent.calls, "an agent was called")
}

func TestStaleReopenWritesNothing(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	before := len(w.dir.lines)
	w.dir.taken = temporal.NewNonRetryableApplicationError("it ends elsewhere", contract.ErrStale, errors.New("stale"))
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Cancelled})
	_, err := w.execute()
	require.ErrorContains(t, err, "it ends elsewhere")
	require.Len(t, w.dir.lines, before)
}

func TestReopenedRunContinuesAsNew(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Cancelled})
	w.in.Options.ContinueAfter = 1
	require.Greater(t, w.chain(func(next workflows.Input) { require.Nil(t, next.Reopen) }), 1)
	require.Len(t, payloads[run.RunResumed](w, run.KindRunResumed), 1)
	require.Equal(t, run.Done, w.dir.state(t).Status)
}

func TestSearchAttributesFollowTheState(t *testing.T) {
	w := newHarness(t, aLoop)
	w.in.Options.Attributes = true
	w.agent.scores = []float64{1, 4}
	published := w.attributes()
	w.done()
	var want []string
	var s run.State
	for _, e := range w.dir.events(t) {
		next := run.Apply(s, e)
		if next.Status != s.Status || next.Phase != s.Phase || e.Kind == run.KindScoreRecorded {
			want = append(want, publishedOf(string(next.Status), next.Phase, next.Total(), next.Score))
		}
		s = next
	}
	require.Greater(t, len(want), 3)
	require.Equal(t, want, *published)
}

func publishedOf(status, stage string, cost float64, score *float64) string {
	if score == nil {
		return fmt.Sprintf("%s %s %.2f", status, stage, cost)
	}
	return fmt.Sprintf("%s %s %.2f %.1f", status, stage, cost, *score)
}

// attributes collects status, stage, cost and score as they are published.
func (w *harness) attributes() *[]string {
	var all []string
	w.env.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(a temporal.SearchAttributes) bool {
		status, _ := a.GetKeyword(temporal.NewSearchAttributeKeyKeyword("PassbookStatus"))
		stage, _ := a.GetKeyword(temporal.NewSearchAttributeKeyKeyword("PassbookStage"))
		cost, _ := a.GetFloat64(temporal.NewSearchAttributeKeyFloat64("PassbookCostUSD"))
		var score *float64
		if s, ok := a.GetFloat64(temporal.NewSearchAttributeKeyFloat64("PassbookScore")); ok {
			score = &s
		}
		all = append(all, publishedOf(status, stage, cost, score))
		return true
	})).Return(nil)
	return &all
}

// terminatedAfter leaves the directory as a workflow does that is terminated after the first event of a kind, before it
// archives. It returns the number of events.
func (w *harness) terminatedAfter(kind run.Kind) int {
	w.t.Helper()
	n := 1 + slices.IndexFunc(w.dir.events(w.t), func(e run.Event) bool { return e.Kind == kind })
	w.dir.lines, w.dir.seals = w.dir.lines[:n], nil
	return n
}
