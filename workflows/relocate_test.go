package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

var there = message{"dir": "/new", "queue": "passbook-dir-there", "by": "ada"}

func TestRehome(t *testing.T) {
	w := newHarness(t, twoPasses)
	// a store that is not a folder, as far as the workflow can see
	w.in.Target.Store = "FILE" + strings.TrimPrefix(w.in.Target.Store, "file")
	var at []string
	w.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == contract.Project {
			at = append(at, info.TaskQueue)
		}
	})
	rest := 0
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		rest = len(w.dir.batches)
		w.signal("rehome", there)
		w.dir.when(run.KindRunRehomed, func() { w.signal("resume", message{"dir": "/new"}) })
	})
	w.done()
	require.Greater(t, len(w.dir.batches), rest)
	for i, b := range w.dir.batches {
		if i < rest {
			require.Equal(t, []string{"/runs/1", "passbook-dir-here"}, []string{b.Dir, at[i]})
		} else {
			require.Equal(t, []string{"/new", "passbook-dir-there"}, []string{b.Dir, at[i]})
		}
	}
	require.Equal(t, []run.RunRehomed{{
		From: "/runs/1", To: "/new", FromQueue: "passbook-dir-here", ToQueue: "passbook-dir-there", By: "ada",
	}},
		payloads[run.RunRehomed](w, run.KindRunRehomed))
	require.Len(t, w.dir.moves, 1, "a move to the same directory checks nothing")
	require.Empty(t, w.dir.moves[0].From, "another host's folders are not compared with it")

	w = newHarness(t, twoPasses)
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() { w.update("resume", message{"dir": "/new/"}) })
	w.done()
	require.Equal(t, "/new", w.dir.batches[len(w.dir.batches)-1].Dir)
	require.Equal(t, []string{"run.paused", "run.rehomed", "run.resumed"},
		w.story(run.KindRunPaused, run.KindRunRehomed, run.KindRunResumed))
	require.Equal(t, []string{"/runs/1", "/new"}, []string{w.dir.moves[0].From, w.dir.moves[0].To})
}

// TestMoveToAnotherDirectoryIsRefused: the run stays where it is, if the new directory does not hold it.
func TestMoveToAnotherDirectoryIsRefused(t *testing.T) {
	w := newHarness(t, anAsk)
	w.agent.scores = []float64{3}
	w.dir.notHere = temporal.NewNonRetryableApplicationError("/etc holds no run", contract.ErrDirNotFound, nil)
	var answer *reply
	w.dir.when(run.KindHandoffRequested, func() {
		answer = w.update("rehome", message{"dir": "/etc"})
		w.signal("rehome", message{"dir": "/etc"})
	})
	w.dir.when(run.KindDecisionRefused, func() { w.signal("decide", message{"action": "continue"}) })
	w.done()
	const text = "the run stays in /runs/1: /etc holds no run"
	require.ErrorContains(t, answer.err, text)
	require.Contains(t, payloads[run.DecisionRefused](w, run.KindDecisionRefused)[0].Reason, text)
	require.Empty(t, payloads[run.RunRehomed](w, run.KindRunRehomed))
	require.False(t, slices.ContainsFunc(w.dir.batches, func(b contract.ProjectInput) bool { return b.Dir != "/runs/1" }))
}

func TestRelocationBlocksWrites(t *testing.T) {
	for name, goesOn := range map[string]bool{"a budget": false, "a resume": true} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
			var moved *reply
			w.dir.looked = func() {
				before := len(w.dir.batches)
				if w.update("budget", message{"usd": 9}); goesOn {
					w.update("resume", nil)
				}
				w.update("budget", message{"usd": 8})
				require.Len(t, w.dir.batches, before)
			}
			w.onPause(func() {
				moved = w.update("rehome", message{"dir": "/new"})
				w.dir.when(run.KindRunRehomed, func() { w.signal("resume", nil) })
			})
			w.done()
			if goesOn {
				var refused *temporal.ApplicationError
				require.ErrorAs(t, moved.err, &refused)
				require.Equal(t, workflows.FailedPrecondition, refused.Type())
				require.Empty(t, payloads[run.RunRehomed](w, run.KindRunRehomed))
				return
			}
			require.Equal(t, "the run directory is /new", moved.ack.Message)
			events := w.story(run.KindRunPaused, run.KindBudgetRaised, run.KindRunRehomed, run.KindRunResumed)
			require.Equal(t, []string{"run.paused", "budget.raised", "budget.raised", "run.rehomed", "run.resumed"},
				events)
		})
	}
}

func TestUpdateIsRefusedWithoutWorker(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.env.OnActivity(contract.Open, mock.Anything, mock.Anything).After(time.Minute).Return(w.dir.Open)
	send := func(after time.Duration, verb string, m message) *reply {
		r := &reply{}
		w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(verb, "", r, m) }, after)
		return r
	}
	budget, again, pause := send(time.Second, "budget", message{"usd": 9}),
		send(30*time.Second, "budget", message{"usd": 9}), send(31*time.Second, "pause", nil)
	var answered bool
	w.env.RegisterDelayedCallback(func() {
		answered = budget.err != nil && again.err != nil && pause.ack.Message != ""
	}, 32*time.Second)
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.True(t, answered, "long before the host is there")
	require.ErrorContains(t, budget.err,
		"the run directory /runs/1 is not open. No worker polls task queue passbook-dir-here: start one on that host")
	require.Equal(t, budget.err.Error(), again.err.Error())
	require.Equal(t, "pausing after the running pass", pause.ack.Message)
	require.Empty(t, payloads[run.BudgetEvent](w, run.KindBudgetRaised))
}
