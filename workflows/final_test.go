package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// afterReset makes the execution one that follows a reset; since reports whether the history that the reset has left is
// replayed.
func (w *harness) afterReset(since func() bool) {
	w.observed().server.original = "the execution that was reset"
	w.env.OnGetVersion(mock.Anything, workflow.DefaultVersion,
		workflow.Version(1)).Return(func(string, workflow.Version, workflow.Version) workflow.Version {
		if since() {
			return 1
		}
		return workflow.DefaultVersion
	})
}

// doneOnce runs a pipeline to its end, and makes another execution, an hour later, on the directory. It returns
// the result of the first, and its lines.
func doneOnce(t *testing.T, definition string) (*harness, workflows.Result, []string) {
	t.Helper()
	w := newHarness(t, definition)
	first := w.done()
	lines := slices.Clone(w.dir.lines)
	w.start = startTime.Add(time.Hour)
	w.agent.ids, w.trees.carries, w.trace = nil, nil, nil
	w.fresh()
	w.env.OnUpsertMemo(mock.Anything).Run(func(args mock.Arguments) {
		w.memo,
			_ = args.Get(0).(map[string]any)
	}).Return(
		nil,
	).Maybe()
	return w, first, lines
}

// wantsFinal executes and wants the first execution's result, and the directory as it was.
func (w *harness) wantsFinal(first workflows.Result, lines []string) {
	w.t.Helper()
	second, err := w.execute()
	require.NoError(w.t, err)
	require.Equal(w.t, first, second)
	require.Equal(w.t, lines, w.dir.lines, "a directory that is done was written to")
	require.NotEmpty(w.t, w.memo[workflows.MemoFinal])
	require.Equal(w.t, run.Done, w.status().Status, "queries answer what the directory holds")
}

func TestDoneRunIsFinal(t *testing.T) {
	always := func() bool { return true }
	t.Run("from the beginning", func(t *testing.T) {
		w, first, lines := doneOnce(t, twoPasses)
		w.wantsFinal(first, lines)
		require.Empty(t, w.agent.ids)
	})
	t.Run("reset to the beginning", func(t *testing.T) {
		w, first, lines := doneOnce(t, twoPasses)
		w.afterReset(always)
		w.wantsFinal(first, lines)
		require.Empty(t, w.agent.ids)
	})
	t.Run("when a pass has answered", func(t *testing.T) {
		w, first, lines := doneOnce(t, twoPasses)
		w.dir.become(nil)
		w.agent.will(call(2, 1), after(func() { w.dir.become(lines) }))
		w.wantsFinal(first, lines)
	})
	t.Run("reset to before a call", func(t *testing.T) {
		w, first, lines := doneOnce(t, twoPasses)
		w.in.Options.Turns = false
		w.dir.become(nil)
		since := false
		w.afterReset(func() bool { return since })
		w.dir.when(run.KindPassEnd, func() {
			w.dir.when(run.KindPassStart, func() { since = true; w.dir.become(lines) })
		})
		w.wantsFinal(first, lines)
		require.Equal(t, []string{call(1, 1)}, w.agent.ids, "a call was made after the reset")
	})
	t.Run("reset to before the checkout is changed", func(t *testing.T) {
		w, first, lines := doneOnce(t, reviewed)
		w.dir.become(nil)
		since := false
		w.afterReset(func() bool { return since })
		w.agent.will(call(1, 1), after(func() { since = true; w.dir.become(lines) }))
		w.wantsFinal(first, lines)
		require.Empty(t, w.trees.carries)
	})
	t.Run("reset to where it was paused", func(t *testing.T) {
		w, first, lines := doneOnce(t, twoPasses)
		w.dir.become(nil)
		since := false
		w.afterReset(func() bool { return since })
		w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
		w.onPause(func() {
			since = true
			w.dir.become(lines)
			w.env.SignalWorkflow("any task", nil)
		})
		w.wantsFinal(first, lines)
	})
	t.Run("cancelled", func(t *testing.T) {
		w, first, lines := doneOnce(t, twoPasses)
		w.dir.become(nil)
		w.agent.will(call(2, 1), after(func() { w.dir.become(lines); w.env.CancelWorkflow() }))
		w.wantsFinal(first, lines)
	})
}

// The check after a reset may find the end that this execution writes, before it knows that it is written.
func TestCheckAfterResetFindsOwnEnd(t *testing.T) {
	w := newHarness(t, twoPasses)
	since, looked := false, make(chan struct{})
	w.afterReset(func() bool { return since })
	w.env.SetOnActivityCompletedListener(func(_ *activity.Info, result converter.EncodedValue, _ error) {
		var res contract.ProjectResult
		if result.HasValue() && result.Get(&res) == nil && res.Outcome == run.ProjectionFinal {
			close(looked)
		}
	})
	w.dir.when(run.KindRunEnd, func() {
		since = true
		w.env.SignalWorkflow("any task", nil)
		<-looked
	})
	r := w.done()
	require.Equal(t, w.dir.tail(), r.Tail)
	require.Equal(t, []run.RunEnd{{Status: run.Done}}, payloads[run.RunEnd](w, run.KindRunEnd))
}

// A reset to a wait journals at once that the run went back: until then the directory shows what the reset abandoned.
func TestResetToAWaitShowsTheWait(t *testing.T) {
	w, _, lines := doneOnce(t, twoPasses)
	lines = lines[:len(lines)-1] // without its end
	w.dir.become(nil)
	since, status := false, run.Unknown
	w.afterReset(func() bool { return since })
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		since = true
		w.dir.become(lines)
		w.env.SignalWorkflow("any task", nil)
		w.env.RegisterDelayedCallback(func() {
			status = w.dir.state(t).Status
			w.signal("resume", message{})
		}, time.Hour)
	})
	w.done()
	require.Equal(t, run.Paused, status)
	require.Equal(t, lines, w.dir.lines[:len(lines)])
	require.Equal(t, []string{"run.reverted", "run.resumed"},
		w.story(run.KindRunReverted, run.KindRunPaused, run.KindRunResumed))
}

func TestResetCancelledRunContinues(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	lines := slices.Clone(w.dir.lines)
	w.start = startTime.Add(time.Hour)
	w.fresh()
	w.afterReset(func() bool { return true })
	w.done()
	require.Equal(t, lines, w.dir.lines[:len(lines)])
	require.Len(t, payloads[run.RunReverted](w, run.KindRunReverted), 1)
}

// TestMessageAfterEndOfResetRun: after a reset, a message that comes with the end is not journaled behind it.
func TestMessageAfterEndOfResetRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.afterReset(func() bool { return true })
	w.dir.when(run.KindRunEnd, func() { w.signal("pause", nil) })
	r := w.done()
	events := w.dir.events(t)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
	require.Equal(t, w.dir.tail(), r.Tail)
	require.Equal(t, w.dir.head, r.Head, "the journal is in the store")
}
