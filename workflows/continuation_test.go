package workflows_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// crowd lets the execution have enough history.
func (w *harness) crowd() {
	w.env.SetContinueAsNewSuggested(true)
	w.env.SignalWorkflow("nudge", nil) // the next workflow task has the suggestion
}

func TestQuestionWaitSurvivesContinueAsNew(t *testing.T) {
	type row struct {
		name, src string
		hurt      func(*harness)
		answers   []message
	}
	rows := []row{
		{"loop", anAsk, func(w *harness) { w.agent.scores = []float64{1, 1, 1, 1, 3} }, []message{
			{"action": "continue"}, {"action": "retry_feedback", "feedback": "more"},
		}},
		{"gate at the end of a set", strings.NewReplacer("{role: builder, order: A}",
			"{role: builder, order: A, if_failing: ask}", "    pause_after: true\n", "").Replace(twoSets),
			func(w *harness) { w.agent.will(call(1, 1), unsound) },
			[]message{{"action": "continue_with_waiver", "feedback": "it is known"}}},
		{
			"permission", twoPasses, func(w *harness) { branched(w, run.ModeReplay, run.RequireHuman) },
			[]message{{"action": "apply"}},
		},
	}
	for _, q := range questions {
		rows = append(rows, row{q.name, q.src, q.hurt, []message{q.again, {"action": q.other}}})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			whole := newHarness(t, row.src)
			row.hurt(whole)
			whole.answers(row.answers...)
			r, err := whole.execute()
			require.NoError(t, err)

			t.Run("an execution for each step", func(t *testing.T) {
				w := newHarness(t, row.src)
				row.hurt(w)
				w.in.Options.ContinueAfter = 1
				w.answers(row.answers...)
				require.Greater(t, w.chain(func(contract.Input) {}), 1)
				require.Equal(t, whole.bare(), w.bare())
			})
			for _, when := range []string{"answered later", "answered while it is handed over"} {
				t.Run(when, func(t *testing.T) {
					w := newHarness(t, row.src)
					row.hurt(w)
					var cut func()
					given := 0
					cut = func() {
						for _, spec := range run.QuestionKinds() {
							kind := spec.Requested
							w.dir.when(kind, func() { cut(); w.env.RegisterDelayedCallback(w.crowd, time.Hour) })
						}
						if when != "answered later" {
							w.dir.sealing = func() { given++; w.signal("decide", row.answers[given-1]) }
						}
					}
					cut()
					again := w.handedOver(0, func(n int) {
						if when != "answered later" {
							return
						}
						if n%2 == 1 { // twice for each question
							w.env.RegisterDelayedCallback(w.crowd, time.Minute)
							return
						}
						given++
						w.env.RegisterDelayedCallback(func() { w.signal("decide", row.answers[given-1]) }, time.Hour)
					})
					require.Equal(t, len(row.answers), given)
					require.Equal(t, r.Status, again.Status)
					require.Equal(t, r.Reason, again.Reason)
					require.Equal(t, whole.bare(), w.bare())
					require.Equal(t, whole.agent.calls, w.agent.calls)
				})
			}
		})
	}
}

func TestRemindersSurviveContinueAsNew(t *testing.T) {
	for name, row := range map[string]struct {
		cut, later time.Duration
		reminders  []string
	}{
		"before": {7 * time.Hour, time.Minute, []string{"1 after 8h0m0s", "2 after 16h0m0s",
			"3 expired after 20h0m0s"}},
		"at it": {
			7*time.Hour + 59*time.Minute, 2 * time.Minute,
			[]string{"1 after 8h1m0s", "2 after 16h0m0s", "3 expired after 20h0m0s"},
		},
		"the last": {
			19*time.Hour + 59*time.Minute, 2 * time.Minute,
			[]string{"1 after 8h0m0s", "2 after 16h0m0s", "3 expired after 20h1m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, questions[0].src)
			w.in.Start.Waits = run.Waits{
				RemindMS: (8 * time.Hour).Milliseconds(), ExpiresMS: (20 * time.Hour).Milliseconds(), OnExpiry: "halt",
			}
			w.waitsInPlan()
			w.dir.when(run.KindHandoffRequested, func() { w.env.RegisterDelayedCallback(w.crowd, row.cut) })
			r := w.handedOver(row.later, func(int) {})
			require.Equal(t, run.Halted, r.Status)
			require.Equal(t, row.reminders, w.reminders(run.KindHandoffRequested))
		})
	}
}

func TestPauseWaitSurvivesContinueAsNew(t *testing.T) {
	for _, early := range []bool{false, true} {
		w := newHarness(t, twoPasses)
		w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
		resume := func() { w.signal("resume", message{"by": "ada"}) }
		w.onPause(func() {
			if early {
				w.dir.sealing = resume
			}
			w.env.RegisterDelayedCallback(w.crowd, time.Hour)
		})
		executions := 1
		w.handedOver(0, func(n int) {
			if executions++; early {
				return
			}
			w.env.RegisterDelayedCallback(map[bool]func(){true: w.crowd, false: resume}[n < 3], time.Hour)
		})
		require.Equal(t, map[bool]int{true: 2, false: 4}[early], executions)
		require.Equal(t, []string{"pass.end 001", "run.paused", "run.resumed", "pass.end 002"},
			w.story(run.KindPassEnd, run.KindRunPaused, run.KindRunResumed))
		require.Equal(t, "ada", payloads[run.RunResumed](w, run.KindRunResumed)[0].By)
	}
}

func TestRefusedSignalsAreCountedAfterLimit(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	var shown int
	bad := func(n int) {
		for range n {
			w.env.SignalWorkflow("decide", "not an object")
		}
	}
	w.onPause(func() {
		bad(1150)
		w.env.RegisterDelayedCallback(w.crowd, time.Hour)
	})
	w.handedOver(0, func(int) {
		w.env.RegisterDelayedCallback(func() { bad(250) }, time.Minute)
		w.env.RegisterDelayedCallback(func() { shown = w.status().Refused; w.signal("resume", nil) }, time.Hour)
	})
	require.Equal(t, 1400, shown)
	var counts []int
	for i, r := range payloads[run.DecisionRefused](w, run.KindDecisionRefused) {
		if i < 100 {
			require.Zero(t, r.Count)
			continue
		}
		require.Equal(t, "decide", r.Verb)
		require.Contains(t, r.Reason, "decode the message")
		counts = append(counts, r.Count)
	}
	require.Equal(t, []int{1000, 50, 250}, counts)
	require.Equal(t, 1400, w.dir.state(t).Refused)
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
		out = append(out, strings.TrimSpace(string(e.Kind)+" "+about(e)))
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
	executions := w.chain(func(next contract.Input) {
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
	w.chain(func(contract.Input) {})
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
			w.chain(func(contract.Input) {})
			require.Len(t, payloads[run.BudgetEvent](w, run.KindBudgetRaised), 1)
			require.InDelta(t, 9, w.dir.state(t).Budget.CapUSD, 1e-9)
		})
	}
}

// executions runs executions until one of them ends the run, and returns how many there were. before gets each input of
// the next one, after its number.
func (w *harness) executions(before func(next contract.Input), after func(n int)) (contract.Result, int) {
	w.t.Helper()
	for n := 1; ; n++ {
		r, err := w.execute()
		if err == nil {
			return r, n
		}
		in := nextOf(w.t, err)
		require.Equal(w.t, w.dir.tail(), in.Snapshot.Tail)
		before(in)
		w.in = in
		w.fresh()
		after(n)
	}
}

// nextOf is the input of the execution that continues as new.
func nextOf(t *testing.T, err error) (in contract.Input) {
	t.Helper()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, err, &next)
	require.Equal(t, contract.PipelineWorkflow, next.WorkflowType.Name)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	return in
}

// chain is executions without a step after each.
func (w *harness) chain(before func(next contract.Input)) int {
	_, n := w.executions(before, func(int) {})
	return n
}

// handedOver is executions where each begins some time after the last one.
func (w *harness) handedOver(later time.Duration, after func(n int)) contract.Result {
	r, _ := w.executions(func(contract.Input) { w.start = w.env.Now().Add(later) }, after)
	return r
}
