package workflows_test

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

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
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Done})
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
			w.reopened(workflows.Reopen{Epoch: 2, From: run.Interrupted, Interruption: "terminated"})
			once := sync.OnceFunc(func() { w.env.CancelWorkflow() })
			w.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
				if info.ActivityType.Name == at {
					once()
				}
			})
			_, err := w.execute()
			var cancelled *temporal.CanceledError
			require.ErrorAs(t, err, &cancelled)
			require.Equal(t, run.Cancelled, w.dir.state(t).Status)
			require.Equal(t, calls, w.agent.calls, "an agent was called")
		})
	}
}

// A gate that halted the run, or at which it was cancelled, asks again: its answer is journaled already.
func TestReopenAsksAtTheGateAgain(t *testing.T) {
	for from, leave := range map[run.Status]func(w *harness){
		run.Halted: func(w *harness) {
			w.answers(message{"action": "halt", "by": "ada"})
			w.ends(run.Halted, "gate.decided")
		},
		run.Cancelled: func(w *harness) {
			w.dir.when(run.KindGateRequested, func() { w.env.CancelWorkflow() })
			_, err := w.execute()
			require.ErrorAs(w.t, err, new(*temporal.CanceledError))
		},
	} {
		for action, called := range map[string]string{"continue_with_waiver": "implementer run reviewer",
			"retry": "implementer run run reviewer"} {
			t.Run(string(from)+" "+action, func(t *testing.T) {
				w := newHarness(t, gated)
				w.agent.values = []string{"failed"}
				leave(w)
				first := payloads[run.QuestionRequested](w, run.KindGateRequested)[0]
				w.reopened(workflows.Reopen{Epoch: 2, From: from, Force: true, Reason: "try"})
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
