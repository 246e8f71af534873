package workflows_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// again makes an execution from the beginning, an hour later, on the directory as it is: so does one that was reset, or
// whose database was restored.
func (w *harness) again() {
	w.start = startTime.Add(time.Hour)
	w.agent.ids, w.trees.carries, w.trace = nil, nil, nil
	w.fresh()
}

// until keeps the lines of the directory up to the first event of a kind, and what follows it at once.
func (w *harness) until(kind run.Kind, more int) {
	w.t.Helper()
	i := slices.IndexFunc(w.dir.events(w.t), func(e run.Event) bool { return e.Kind == kind })
	require.GreaterOrEqual(w.t, i, 0)
	w.dir.become(w.dir.lines[:i+1+more])
}

// TestNewerDirectoryContinues: an execution that knows less than the directory continues from it, and repeats no call that
// the directory has.
func TestNewerDirectoryContinues(t *testing.T) {
	for name, turns := range map[string]bool{"with turns": true, "without turns": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.in.Options.Turns = turns
			w.done()
			w.until(run.KindPassEnd, 1)
			had := slices.Clone(w.dir.lines)
			w.again()
			var next contract.Input
			require.Equal(t, 2, w.chain(func(in contract.Input) { next = in }))
			require.Equal(t, 2, next.Reopen.Epoch)
			require.False(t, next.Reopen.Waits)
			require.Equal(t, had, w.dir.lines[:len(had)])
			require.Equal(t, []string{"run.interrupted", "run.resumed", "pass.start 002"}, w.bare()[len(had):len(had)+3])
			require.Equal(t, []string{call(2, 1)}, w.agent.ids)
			s := w.dir.state(t)
			require.Equal(t, run.Done, s.Status)
			require.Equal(t, 2, s.Epoch)
			require.Equal(t, "its workflow had 0 of the 5 events of this directory, as after a reset, or after Temporal's "+
				"database was restored from a backup", payloads[run.RunInterrupted](w, run.KindRunInterrupted)[0].Reason)
		})
	}
}

// TestNewerDirectoryThatEnded: the execution ends as the directory records, and changes nothing.
func TestNewerDirectoryThatEnded(t *testing.T) {
	t.Run("done", func(t *testing.T) {
		w := newHarness(t, twoPasses)
		first := w.done()
		lines := slices.Clone(w.dir.lines)
		w.again()
		second := w.done()
		require.Equal(t, first, second)
		require.Equal(t, lines, w.dir.lines)
		require.Empty(t, w.agent.ids)
		require.Equal(t, run.Done, w.status().Status, "queries answer what the directory holds")
	})
	t.Run("failed", func(t *testing.T) {
		w := newHarness(t, twoPasses)
		w.agent.will(call(1, 1), breaks(temporal.NewNonRetryableApplicationError("no such plan", contract.ErrBadInput, nil)))
		_, err := w.execute()
		require.Error(t, err)
		lines := slices.Clone(w.dir.lines)
		w.again()
		_, second := w.execute()
		var failed *temporal.ApplicationError
		require.ErrorAs(t, second, &failed)
		require.Equal(t, w.dir.state(t).Reason, failed.Message())
		require.Equal(t, lines, w.dir.lines)
	})
	t.Run("cancelled", func(t *testing.T) {
		w := newHarness(t, twoPasses)
		w.cutOff()
		lines := slices.Clone(w.dir.lines)
		w.again()
		w.executeCancelled()
		require.Equal(t, lines, w.dir.lines)
	})
}

// TestNewerDirectoryOfAnotherCluster: the run continues there.
func TestNewerDirectoryOfAnotherCluster(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.done()
	w.until(run.KindPassEnd, 1)
	lines := slices.Clone(w.dir.lines)
	w.dir.cluster = "the other one"
	w.again()
	_, err := w.execute()
	require.ErrorContains(t, err, "run run-1 continues on the Temporal cluster the other one")
	require.Equal(t, lines, w.dir.lines)
	require.Empty(t, w.agent.ids)
}

// TestNewerDirectoryWaits: a question that the directory asks stays open, with its id, and the next answer counts.
func TestNewerDirectoryWaits(t *testing.T) {
	for _, row := range questions {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, row.src)
			row.hurt(w)
			var asked run.Question
			w.answering(func(n int, q run.Question) {
				if asked = q; n == 1 {
					w.env.CancelWorkflow()
				}
			})
			_, err := w.execute()
			require.Error(t, err)
			w.until(row.requested, 0)
			had := len(w.dir.lines)
			w.again()
			answered := ""
			require.Equal(t, 3, 1+w.chain(func(in contract.Input) {
				require.True(t, in.Reopen.Waits)
				require.Equal(t, asked.ID, in.Snapshot.Pending.ID)
				w.dir.when(run.KindRunResumed, func() {
					w.at(time.Minute, func() {
						q, open := w.status().Asks()
						require.True(t, open)
						answered = q.ID
						w.signal("decide", message{"action": run.ActionHalt})
					})
				})
			}))
			require.Equal(t, asked.ID, answered)
			require.Equal(t, run.KindRunResumed, w.dir.events(t)[had].Kind)
			s := w.dir.state(t)
			require.Equal(t, run.Halted, s.Status)
			require.Equal(t, 2, s.Epoch)
			require.Len(t, w.asked(row.requested), 1, "it was not asked again")
		})
	}
}

// TestMessagesToANewerDirectory: an Update to a run that stands still is refused before it is answered, and sent once more
// it counts; a signal is journaled as refused.
func TestMessagesToANewerDirectory(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	budget := &reply{}
	var again, look *reply
	w.onPause(func() {
		w.at(time.Minute, func() {
			w.dir.intrude(otherLine(w))
			w.signal("steer", message{"text": "Be brief.", "by": "ada"})
			w.env.UpdateWorkflow("budget", "", budget, message{"usd": 50})
		})
	})
	require.Equal(t, 2, w.chain(func(in contract.Input) {
		require.True(t, in.Reopen.Waits)
		w.dir.when(run.KindRunResumed, func() {
			again = w.update("budget", message{"usd": 60})
			look = w.update(contract.VerbLook, nil)
			w.signal("resume", nil)
		})
	}))
	var refused *temporal.ApplicationError
	require.True(t, errors.As(budget.err, &refused) || errors.As(budget.refused, &refused))
	require.Equal(t, contract.Superseded, refused.Type())
	require.NoError(t, errors.Join(again.err, again.refused, look.err, look.refused))
	require.Equal(t, []run.DecisionRefused{{Verb: "steer", Reason: "the run directory had later events", By: "ada"}},
		payloads[run.DecisionRefused](w, run.KindDecisionRefused))
	s := w.dir.state(t)
	require.Equal(t, run.Done, s.Status)
	require.InDelta(t, 60, s.Budget.CapUSD, 1e-9)
	require.Empty(t, payloads[run.RunSteered](w, run.KindRunSteered))
	require.Len(t, payloads[run.RunResumed](w, run.KindRunResumed), 2)
}

// TestLookFindsANewerDirectory of a run that waits, without any other message.
func TestLookFindsANewerDirectory(t *testing.T) {
	for _, how := range []string{"signal", "Update"} {
		w := newHarness(t, twoPasses)
		w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
		w.onPause(func() {
			w.at(time.Minute, func() {
				w.dir.intrude(otherLine(w))
				if how == "signal" {
					w.signal(contract.VerbLook, nil)
				} else {
					w.env.UpdateWorkflow(contract.VerbLook, "", &reply{}, message{})
				}
			})
		})
		require.Equal(t, 2, w.chain(func(contract.Input) {
			w.dir.when(run.KindRunResumed, func() { w.signal("resume", nil) })
		}), how)
		require.Equal(t, run.Done, w.dir.state(t).Status)
	}
}

// TestCancelOfANewerDirectory ends the run as cancelled, in its next epoch.
func TestCancelOfANewerDirectory(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		w.at(time.Minute, func() {
			w.dir.intrude(otherLine(w))
			w.env.CancelWorkflow()
		})
	})
	var next contract.Input
	_, err := w.execute()
	next = nextOf(t, err)
	require.True(t, next.Reopen.Cancel)
	w.in = next
	w.fresh()
	w.executeCancelled()
	require.Equal(t, 2, w.dir.state(t).Epoch)
}

// TestStaleExecutionDeliversNothing: as many events as the directory has are not enough, if they are others. The execution
// has not written its own yet.
func TestStaleExecutionDeliversNothing(t *testing.T) {
	w := newHarness(t, judged)
	w.agent.will(call(2, 1), func(ok contract.PassResult) (contract.PassResult, error) {
		w.dir.add(t, run.KindErrorNoted, run.ErrorNoted{Category: run.CategoryUnknown, Message: "of another execution"})
		return ok, nil
	})
	require.Equal(t, 2, w.chain(func(contract.Input) {
		require.Empty(t, w.trees.delivers)
		require.Empty(t, w.trees.looks)
	}))
	require.Len(t, w.trees.delivers, 1)
	require.Equal(t, 2, w.trees.delivers[0].Epoch)
	require.Equal(t, run.Done, w.dir.state(t).Status)
}
