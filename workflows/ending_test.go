package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
)

func TestCancelledRunProjectsEnd(t *testing.T) {
	t.Run("while a call runs", func(t *testing.T) {
		w := newHarness(t, twoPasses)
		ended := make(chan struct{})
		w.env.SetOnActivityCanceledListener(func(*activity.Info) { close(ended) })
		w.agent.will(call(1, 1), after(func() { w.env.CancelWorkflow(); <-ended }))
		w.cancelled()
	})
	t.Run("while it waits for another attempt", func(t *testing.T) {
		w := newHarness(t, twoPasses)
		w.agent.will(call(1, 1), goes(transient))
		w.env.RegisterDelayedCallback(w.env.CancelWorkflow, 3*time.Second)
		w.cancelled()
	})
	t.Run("while it rests", func(t *testing.T) {
		w := newHarness(t, twoPasses)
		w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
		w.onPause(func() { w.env.CancelWorkflow() })
		w.cancelled()
	})
}

func (w *harness) cancelled() {
	w.t.Helper()
	_, err := w.execute()
	var cancelled *temporal.CanceledError
	require.ErrorAs(w.t, err, &cancelled)
	require.Equal(w.t, []run.RunEnd{{Status: run.Cancelled}}, payloads[run.RunEnd](w, run.KindRunEnd))
	require.Equal(w.t, run.Cancelled, w.dir.state(w.t).Status)
	require.Equal(w.t, w.dir.tail(), w.dir.seals[len(w.dir.seals)-1].Tail, "all of it is in the store")
	require.Equal(w.t, []string{call(1, 1)}, w.agent.ids)
}

func TestLateSignalsAreJournaled(t *testing.T) {
	late := func(w *harness) { w.env.SignalWorkflow("pause", message{"by": "ada"}) }
	tests := []struct {
		name string
		send func(w *harness)
	}{
		{"while the end is written", func(w *harness) { w.dir.before = map[int]func(){3: func() { late(w) }} }},
		{"while it is sealed", func(w *harness) { w.dir.sealing = func() { late(w) } }},
		{"in the last workflow task", func(w *harness) {
			w.dir.sealing = func() { w.env.SignalWorkflowSkippingWorkflowTask("pause", message{"by": "ada"}) }
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			tt.send(w)
			r := w.done()
			refused := payloads[run.DecisionRefused](w, run.KindDecisionRefused)
			require.Len(t, refused, 1)
			require.Equal(t, "ada", refused[0].By)
			require.Equal(t, w.dir.tail(), r.Tail)
			require.Equal(t, w.dir.tail(), w.dir.seals[len(w.dir.seals)-1].Tail)
		})
	}
}

// A cancellation that arrives while the end is written comes too late: the journal has the end.
func TestLateCancellationKeepsTheEnd(t *testing.T) {
	for name, hook := range map[string]func(w *harness){
		"while the end is written": func(w *harness) { w.dir.before = map[int]func(){3: w.env.CancelWorkflow} },
		"while it is sealed":       func(w *harness) { w.dir.sealing = w.env.CancelWorkflow },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			hook(w)
			r := w.done()
			require.Equal(t, []run.RunEnd{{Status: run.Done}}, payloads[run.RunEnd](w, run.KindRunEnd))
			require.Equal(t, w.dir.tail(), r.Tail)
			require.Equal(t, w.dir.tail(), w.dir.seals[len(w.dir.seals)-1].Tail)
		})
	}
}

func TestCancellationBetweenExecutionsEndsTheRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.in.Options.ContinueAfter = 1
	w.dir.sealing = w.env.CancelWorkflow
	w.cancelled()
}
