package workflows_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/work"
)

var there = message{"dir": "/new", "queue": "passbook-dir-there", "by": "ada"}

// TestRehome moves the directory of a run that rests to another host: from then on it is written there, and nowhere else.
func TestRehome(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.in.Target.Store = "FILE" + strings.TrimPrefix(w.in.Target.Store, "file") // a store that is no folder, as far as the workflow can see
	var early, nowhere, relative *reply
	var at []string
	w.env.SetOnActivityStartedListener(func(info *activityInfo, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == work.Project {
			at = append(at, info.TaskQueue)
		}
	})
	rest := 0
	w.agent.will(call(1, 1), after(func() {
		early = w.update("rehome", there)
		w.signal("pause", nil)
	}))
	w.onPause(func() {
		rest = len(w.dir.batches)
		nowhere = w.update("rehome", message{"queue": "passbook-dir-there"})
		relative = w.update("rehome", message{"dir": "new"})
		w.signal("rehome", there)
		w.dir.when(run.KindRunRehomed, func() { w.signal("resume", message{"dir": "/new"}) })
	})
	w.done()
	require.ErrorContains(t, early.refused, "Pause it first")
	require.ErrorContains(t, nowhere.refused, "say where the directory is now")
	require.ErrorContains(t, relative.refused, "new is not an absolute path")
	require.Greater(t, len(w.dir.batches), rest)
	for i, b := range w.dir.batches {
		if i < rest {
			require.Equal(t, []string{"/runs/1", "passbook-dir-here"}, []string{b.Dir, at[i]})
		} else {
			require.Equal(t, []string{"/new", "passbook-dir-there"}, []string{b.Dir, at[i]})
		}
	}
	require.Equal(t, []run.RunRehomed{{From: "/runs/1", To: "/new", FromQueue: "passbook-dir-here", ToQueue: "passbook-dir-there", By: "ada"}},
		payloads[run.RunRehomed](w, run.KindRunRehomed))
	require.Len(t, w.dir.moves, 1, "where it is already, nobody looks")
	require.Empty(t, w.dir.moves[0].From, "another host's folders are not compared with it")

	w = newWorld(t, twoPasses)
	var bound *reply
	w.agent.will(call(1, 1), after(func() { w.signal("pause", nil) }))
	w.onPause(func() {
		bound = w.update("rehome", there)
		w.update("resume", message{"dir": "/new/"})
	})
	w.done()
	require.ErrorContains(t, bound.refused, "is a folder of its host")
	require.Equal(t, "/new", w.dir.batches[len(w.dir.batches)-1].Dir)
	require.Equal(t, []string{"run.paused", "run.rehomed", "run.resumed"}, w.story(run.KindRunPaused, run.KindRunRehomed, run.KindRunResumed))
	require.Equal(t, []string{"/runs/1", "/new"}, []string{w.dir.moves[0].From, w.dir.moves[0].Dir})
}

// TestOnlyRehomeAndResumeMoveARun: a directory in any other message is refused, and so is what no run is found in.
func TestOnlyRehomeAndResumeMoveARun(t *testing.T) {
	for _, row := range []struct {
		verb string
		m    message
		says string
	}{
		{"decide", message{"action": "continue", "dir": "/other"}, "a message decide does not move the run. Send rehome"},
		{"budget", message{"usd": 9, "dir": "/other"}, "a message budget does not move the run. Send rehome"},
		{"pause", message{"dir": "/other"}, "a message pause does not move the run. Send rehome"},
		{"revert", message{"to": "cp-1", "dir": "/other"}, "a message revert does not move the run. Send rehome"},
		{"resume", message{"queue": "passbook-dir-there"}, "a message resume does not move the run. Send rehome"},
		{"rehome", message{"dir": "/etc"}, "the run stays in /runs/1: /etc holds no run"},
	} {
		t.Run(row.verb, func(t *testing.T) {
			w := newWorld(t, anAsk)
			w.agent.scores = []float64{3}
			w.dir.notHere = temporal.NewNonRetryableApplicationError("/etc holds no run", work.ErrNotThere, nil)
			var answer *reply
			w.dir.when(run.KindHandoffRequested, func() {
				answer = w.update(row.verb, row.m)
				w.signal(row.verb, row.m)
			})
			w.dir.when(run.KindDecisionRefused, func() { w.signal("decide", message{"action": "continue"}) })
			w.done()
			if answer.refused == nil {
				answer.refused = answer.err
			}
			require.ErrorContains(t, answer.refused, row.says)
			require.Contains(t, payloads[run.DecisionRefused](w, run.KindDecisionRefused)[0].Reason, row.says)
			require.Empty(t, payloads[run.RunRehomed](w, run.KindRunRehomed))
			require.False(t, slices.ContainsFunc(w.dir.batches, func(b work.ProjectInput) bool { return b.Dir != "/runs/1" }))
		})
	}
}

// TestNothingIsWrittenWhileAMoveIsChecked: what the run goes on with meanwhile waits, and a run that goes on stays where it is.
func TestNothingIsWrittenWhileAMoveIsChecked(t *testing.T) {
	for name, goesOn := range map[string]bool{"a budget": false, "a resume": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoPasses)
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
				require.ErrorContains(t, moved.err, "its directory can be moved while it rests")
				require.Empty(t, payloads[run.RunRehomed](w, run.KindRunRehomed))
				return
			}
			require.Equal(t, "its directory is /new", moved.ack.Said)
			events := w.story(run.KindRunPaused, run.KindBudgetRaised, run.KindRunRehomed, run.KindRunResumed)
			require.Equal(t, []string{"run.paused", "budget.raised", "budget.raised", "run.rehomed", "run.resumed"}, events)
		})
	}
}

// TestAnUpdateIsAnsweredWhileTheHostIsAway: nobody opens the directory. What needs it is refused with what to do, a pause is accepted.
func TestAnUpdateIsAnsweredWhileTheHostIsAway(t *testing.T) {
	w := newWorld(t, twoPasses)
	w.env.OnActivity(work.Open, mock.Anything, mock.Anything).After(time.Minute).Return(w.dir.Open)
	send := func(after time.Duration, verb string, m message) *reply {
		r := &reply{}
		w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(verb, "", r, m) }, after)
		return r
	}
	budget, again, pause := send(time.Second, "budget", message{"usd": 9}), send(30*time.Second, "budget", message{"usd": 9}), send(31*time.Second, "pause", nil)
	var answered bool
	w.env.RegisterDelayedCallback(func() { answered = budget.err != nil && again.err != nil && pause.ack.Said != "" }, 32*time.Second)
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	require.True(t, answered, "long before the host is there")
	require.ErrorContains(t, budget.err, "the run directory /runs/1 is not open. No worker takes task queue passbook-dir-here: start one on that host")
	require.Equal(t, budget.err.Error(), again.err.Error())
	require.Equal(t, "pausing after the running pass", pause.ack.Said)
	require.Empty(t, payloads[run.BudgetEvent](w, run.KindBudgetRaised))
}
