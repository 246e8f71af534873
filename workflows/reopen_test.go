package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// reopened is a new epoch on what the directory of w holds.
func (w *harness) reopened(r contract.Reopen) {
	w.t.Helper()
	w.in.Reopen = &r
	w.in.Snapshot = &contract.Snapshot{State: w.dir.state(w.t), Tail: w.dir.tail()}
	w.fresh()
}

// cutOff cancels the run when its first pass has settled, before the next call.
func (w *harness) cutOff() {
	w.t.Helper()
	w.in.Options.Turns = false
	defer func() { w.in.Options.Turns = true }()
	w.dir.when(run.KindPassEnd, func() { w.env.CancelWorkflow() })
	w.executeCancelled()
}

func TestReopenCancelledRun(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	before := len(w.dir.lines)
	w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled, By: "ada", Note: "continue", Force: true,
		Reason: "fixed", Host: "there", Build: "v2", Cluster: "cluster", Embedded: true, Address: "localhost:1",
		Overruled: []string{"agents"}})
	w.done()
	opened := w.dir.opens[1]
	require.Equal(t, 2, opened.Epoch)
	require.Equal(t, "cluster", opened.Cluster)
	require.True(t, opened.Embedded)
	require.Equal(t, "localhost:1", opened.Address)
	require.Equal(t, int64(before), opened.Tail.Seq)
	require.Equal(t, w.in.Claim, opened.Claim)
	require.Zero(t, opened.Task)
	s := w.dir.state(t)
	require.Equal(t, 2, s.Epoch)
	require.Equal(t, 2, s.Starts)
	resumed := payloads[run.RunResumed](w, run.KindRunResumed)
	require.Len(t, resumed, 1)
	resumed[0].State = nil
	require.Equal(t, run.RunResumed{Epoch: 2, From: run.Cancelled, By: "ada", Note: "continue",
		Force: true, Why: "fixed", Host: "there", Build: "v2", Overruled: []string{"agents"}}, resumed[0])
	require.Empty(t, payloads[run.RunInterrupted](w, run.KindRunInterrupted),
		"a run that closed was not interrupted")
	require.Equal(t, run.KindRunResumed, w.dir.events(t)[before].Kind)
	require.Equal(t, 1, w.agent.calls[call(1, 1)], "a settled pass was called again")
	require.Len(t, payloads[run.RunEnd](w, run.KindRunEnd), 2, "one end for each epoch")
}

func TestReopenJournalsInterruptionFirst(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	torn := w.terminatedAfter(run.KindPassEnd)
	w.reopened(contract.Reopen{Epoch: 2, From: run.Interrupted, Interruption: "its workflow has been terminated"})
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
	w.reopened(contract.Reopen{Epoch: 2, From: run.Halted, Force: true, Reason: "all the same", Unended: true})
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
	w.reopened(contract.Reopen{
		Epoch: 2, From: run.Interrupted, Interruption: "its workflow has been terminated", Cancel: true,
	})
	w.executeCancelled()
	require.Equal(t, []run.Kind{run.KindRunInterrupted, run.KindRunResumed, run.KindRunEnd},
		fields(w.dir.events(t)[torn:], func(e run.Event) run.Kind { return e.Kind }))
	require.Equal(t, run.Cancelled, w.dir.state(t).Status)
	require.Equal(t, calls, w.agent.calls, "an agent was called")
}

func TestStaleReopenWritesNothing(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	before := len(w.dir.lines)
	w.dir.taken = temporal.NewNonRetryableApplicationError("it ends elsewhere", contract.ErrNewer, errors.New("stale"))
	w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled})
	w.executeCancelled()
	require.Len(t, w.dir.lines, before)
}

func TestReopenedRunContinuesAsNew(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.cutOff()
	w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled})
	w.in.Options.ContinueAfter = 1
	require.Greater(t, w.chain(func(next contract.Input) { require.Nil(t, next.Reopen) }), 1)
	require.Len(t, payloads[run.RunResumed](w, run.KindRunResumed), 1)
	require.Equal(t, run.Done, w.dir.state(t).Status)
}

func TestSearchAttributesFollowTheState(t *testing.T) {
	w := newHarness(t, aLoop)
	w.in.Options.Attributes, w.in.Options.RFCStatus = true, true
	w.agent.scores = []float64{1, 4}
	published := w.attributes()
	w.done()
	var want []string
	var s run.State
	for _, e := range w.dir.events(t) {
		next := run.Apply(s, e)
		if next.Status != s.Status || next.Phase != s.Phase || e.Kind == run.KindScoreRecorded {
			want = append(want, publishedOf(string(next.Status)+" "+next.Status.RFC(), next.Phase, next.Total(), next.Score))
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
		rfc, _ := a.GetKeyword(temporal.NewSearchAttributeKeyKeyword("PassbookRFCStatus"))
		stage, _ := a.GetKeyword(temporal.NewSearchAttributeKeyKeyword("PassbookStage"))
		cost, _ := a.GetFloat64(temporal.NewSearchAttributeKeyFloat64("PassbookCostUSD"))
		var score *float64
		if s, ok := a.GetFloat64(temporal.NewSearchAttributeKeyFloat64("PassbookScore")); ok {
			score = &s
		}
		all = append(all, publishedOf(status+" "+rfc, stage, cost, score))
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

// A review that approves completes the run: if its workflow was terminated before the end, the next epoch writes only
// that.
func TestReopenEndsApprovedRun(t *testing.T) {
	w := newHarness(t, planning)
	w.answers(message{"action": "approve", "by": "ada"})
	w.ends(run.Done, run.ReasonReviewApproved)
	events := w.dir.events(t)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
	w.dir.lines, w.dir.seals = w.dir.lines[:len(events)-1], nil
	require.Equal(t, run.Done, w.dir.state(t).Status)
	calls := maps.Clone(w.agent.calls)
	w.reopened(contract.Reopen{Epoch: 2, From: run.Done})
	res := w.done()
	require.Equal(t, run.Done, res.Status)
	require.Equal(t, run.ReasonReviewApproved, res.Reason)
	require.Equal(t, calls, w.agent.calls)
	again := w.dir.events(t)
	require.Len(t, again, len(events), "the end, and nothing else")
	require.Equal(t, events[len(events)-1].Payload, again[len(again)-1].Payload)
}

// A cancellation while an epoch opens: the epoch begins, and closes the run as cancelled.
func TestCancellationWhileAnEpochOpens(t *testing.T) {
	for name, at := range map[string]string{"acquires": contract.Open, "archives": contract.ArchiveSegment,
		"writes": contract.Project} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.cutOff()
			w.terminatedAfter(run.KindPassEnd)
			calls := maps.Clone(w.agent.calls)
			w.reopened(contract.Reopen{Epoch: 2, From: run.Interrupted, Interruption: "terminated"})
			once := sync.OnceFunc(func() { w.env.CancelWorkflow() })
			w.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
				if info.ActivityType.Name == at {
					once()
				}
			})
			w.executeCancelled()
			require.Equal(t, calls, w.agent.calls, "an agent was called")
		})
	}
}

// A gate that halted the run, or at which it was cancelled, asks again: its answer is journaled already.
func TestReopenAsksAtTheGateAgain(t *testing.T) {
	for from, leave := range map[run.Status]func(w *harness){
		run.Halted: func(w *harness) {
			w.answers(message{"action": "halt", "by": "ada"})
			w.ends(run.Halted, "gate_halt")
		},
		run.Cancelled: func(w *harness) {
			w.dir.when(run.KindGateRequested, func() { w.env.CancelWorkflow() })
			w.executeCancelled()
		},
	} {
		for action, called := range map[string]string{"continue_with_waiver": "implementer run reviewer",
			"retry": "implementer run run reviewer"} {
			t.Run(string(from)+" "+action, func(t *testing.T) {
				w := newHarness(t, gated)
				w.agent.values = []string{"failed"}
				leave(w)
				first := payloads[run.QuestionRequested](w, run.KindGateRequested)[0]
				w.reopened(contract.Reopen{Epoch: 2, From: from, Force: true, Reason: "try"})
				w.answers(message{"action": action, "by": "ada", "feedback": "more"})
				w.done()
				asked := payloads[run.QuestionRequested](w, run.KindGateRequested)
				require.Len(t, asked, 2)
				require.Equal(t, first.Question, asked[1].Question)
				require.Equal(t, first.Digest, asked[1].Digest)
				require.Equal(t, first.Actions, asked[1].Actions)
				seen := map[string]int{}
				for _, p := range payloads[run.PassEnd](w, run.KindPassEnd) {
					seen[p.Call]++
					require.Equal(t, 1, seen[p.Call], p.Call)
				}
				require.Equal(t, called, w.called())
				require.Nil(t, w.dir.state(t).Gate)
			})
		}
	}
}

// A resume that is forced answers no question: the next epoch asks it again, and calls no agent before.
func TestReopenAsksOpenQuestionAgain(t *testing.T) {
	for _, row := range decisionPlaces {
		t.Run(row.place+" "+row.trigger, func(t *testing.T) {
			w := row.harness(t)
			var first []run.Question
			asks := func(n int, q run.Question) {
				if n == 1 {
					first = append(first, q)
				}
				w.signal("decide", message{"action": q.Halts()})
			}
			w.answering(asks)
			_, err := w.execute()
			require.NoError(t, err)
			w.terminatedAfter(first[0].Kind.Spec().Requested)
			called := len(w.agent.ids)
			switch row.trigger { // the cause remains
			case run.TriggerDirtyTarget:
				w.trees.dirty = 1
			case run.TriggerUnrecorded:
				w.agent.will(call(2, 1), unrecorded)
				called++ // that asks for the record
			}
			w.reopened(contract.Reopen{Epoch: 2, From: run.Interrupted, Force: true, Reason: "the server is lost"})
			w.answering(asks)
			_, err = w.execute()
			require.NoError(t, err)
			require.Len(t, first, 2, "the question was lost")
			require.Len(t, w.agent.ids, called, "an agent was called")
			require.Equal(t, first[0].Text, first[1].Text)
			require.Equal(t, first[0].Actions, first[1].Actions)
			require.Equal(t, first[0].Digest, first[1].Digest)
		})
	}
}

func TestCancelledRunProjectsEnd(t *testing.T) {
	for name, cancel := range map[string]func(w *harness){
		"while a call runs": func(w *harness) {
			ended := make(chan struct{})
			w.env.SetOnActivityCanceledListener(func(*activity.Info) { close(ended) })
			w.agent.will(call(1, 1), after(func() { w.env.CancelWorkflow(); <-ended }))
		},
		"while it waits for another attempt": func(w *harness) {
			w.agent.will(call(1, 1), w.failsBefore(3*time.Second, w.env.CancelWorkflow))
		},
		"while it is paused": func(w *harness) {
			w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
			w.onPause(w.env.CancelWorkflow)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			cancel(w)
			w.cancelled()
		})
	}
}

func (w *harness) cancelled() {
	w.t.Helper()
	w.executeCancelled()
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
