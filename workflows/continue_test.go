package workflows_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// chain runs executions until one of them ends the run, and says how many there were. between sees each input that
// is handed on.
func (w *harness) chain(between func(next workflows.Input)) int {
	w.t.Helper()
	for n := 1; ; n++ {
		_, err := w.execute()
		if err == nil {
			return n
		}
		var goOn *workflow.ContinueAsNewError
		require.ErrorAs(w.t, err, &goOn)
		require.Equal(w.t, workflows.Name, goOn.WorkflowType.Name)
		var next workflows.Input
		require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(goOn.Input, &next))
		between(next)
		w.in = next
		w.fresh()
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// bare is what happened, without times.
func (w *harness) bare() []string {
	var out []string
	for _, e := range w.dir.events(w.t) {
		out = append(out, string(e.Kind)+" "+about(e))
	}
	return out
}

func TestContinueAsNewKeepsJournal(t *testing.T) {
	whole := newHarness(t, aLoop)
	whole.agent.scores = []float64{1, 4}
	whole.done()

	w := newHarness(t, aLoop)
	w.agent.scores = []float64{1, 4}
	w.in.Options.ContinueAfter = 1
	executions := w.chain(func(next workflows.Input) {
		require.NotNil(t, next.Snapshot)
		require.Equal(t, w.dir.tail(), next.Snapshot.Tail)
		require.Equal(t, w.dir.tail().Seq, next.Snapshot.Archived)
		require.Equal(t, asJSON(t, w.dir.state(t)), asJSON(t, next.Snapshot.State))
		require.NotEmpty(t, next.Snapshot.Head)
	})
	require.Equal(t, 1+4+3+1, executions, "one for each step, and one that only closes")
	require.Equal(t, whole.bare(), w.bare())
	require.Equal(t, whole.agent.calls, w.agent.calls)
	require.Equal(t, run.Done, w.dir.state(t).Status)

	var last int64
	for _, s := range w.dir.seals {
		require.Equal(t, last+1, s.First, "segments follow one another without a gap")
		last = s.Tail.Seq
	}
	require.EqualValues(t, len(w.dir.lines), last)
}

func TestPauseRequestSurvivesContinueAsNew(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.in.Options.ContinueAfter = 1
	w.dir.sealing = func() { w.env.SignalWorkflow("pause", message{"by": "ada"}) }
	w.onPause(func() { w.signal("resume", nil) })
	w.chain(func(workflows.Input) {})
	require.Equal(t, "ada", payloads[run.RunPaused](w, run.KindRunPaused)[0].By)
}

func TestBudgetUpdateDuringArchivingIsKept(t *testing.T) {
	ways := map[string]func(w *harness){
		"with a workflow task": func(w *harness) { w.env.SignalWorkflow("budget", message{"usd": 9}) },
		"with the seal's own one": func(w *harness) {
			w.env.SignalWorkflowSkippingWorkflowTask("budget",
				message{"usd": 9})
		},
	}
	for name, send := range ways {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.in.Options.ContinueAfter = 1
			w.dir.sealing = func() { send(w) }
			w.chain(func(next workflows.Input) { require.Equal(t, w.dir.tail(), next.Snapshot.Tail) })
			require.Len(t, payloads[run.BudgetEvent](w, run.KindBudgetRaised), 1)
			require.InDelta(t, 9, w.dir.state(t).Budget.CapUSD, 1e-9)
		})
	}
}
