package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestMessageDoesNotMoveRunToForeignDirectory names other directories in messages: nothing is written there, and the
// run stays open where it is. Its own directory is then moved, and the decision finds it there.
func TestMessageDoesNotMoveRunToForeignDirectory(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.asksAboutThePlan("run")
	c, id, other := h.dial(), metaOf(t, dir).RunID, h.dir("other")
	require.NoError(t, os.MkdirAll(filepath.Join(other, "_orchestrator"), 0o700))
	for _, name := range []string{"events.jsonl", "meta.json", "_orchestrator/summary.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(other, name), []byte("mine\n"), 0o600))
	}
	before := tree(t, other)
	for _, m := range []struct {
		verb string
		workflows.Message
		message string
	}{
		{workflows.VerbDecide, workflows.Message{Action: run.ActionContinue, Dir: other},
			"a decide message cannot move the run: send rehome"},
		{workflows.VerbRehome, workflows.Message{Dir: other}, "the run stays in " + dir + ": write to " + other + ": "},
		{workflows.VerbRehome, workflows.Message{Dir: "/etc"}, "the run stays in " + dir + ": write to /etc: "},
		{workflows.VerbRehome, workflows.Message{Dir: h.dir("nowhere")},
			"Name the directory that the run was moved to"},
	} {
		_, err := send(t, c, id, m.verb, m.Message)
		require.ErrorContains(t, err, m.message)
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", m.verb, m.Message))
	}
	until(t, "each signal is refused", func() bool {
		return len(of[run.DecisionRefused](eventsOf(t, dir),
			run.KindDecisionRefused)) == 4
	})
	require.True(t, statusIs(dir, run.AwaitingPhaseHandoff))
	until(t, "all refusals are folded", func() bool { // a directory that moves while it is written is rebuilt there
		return metaOf(t, dir).Events.Seq == int64(len(eventsOf(t, dir)))
	})
	sameTree(t, before, tree(t, other))
	require.NoDirExists(t, h.dir("nowhere"))

	moved := h.dir("moved")
	require.NoError(t, os.Rename(dir, moved))
	h.starter("decide", moved, "--action", "continue")
	until(t, "the run is done", func() bool { return statusIs(moved, run.Done) })
	require.NoDirExists(t, dir)
	var kinds []string
	for _, e := range eventsOf(t, moved) {
		if e.Kind == "run.rehomed" {
			kinds = append(kinds, string(e.Kind))
			require.Contains(t, string(e.Payload), `"from":"`+dir+`","to":"`+moved+`"`)
		}
	}
	require.Len(t, kinds, 1)
	h.sound(moved)
}

// TestRunTakesMoreSignalsThanOneExecution: the server refuses the ten-thousandth signal of one execution. A run that
// waits takes more, and can still be decided.
func TestRunTakesMoreSignalsThanOneExecution(t *testing.T) {
	t.Parallel()
	const signals, senders = 12_000, 16
	h := newEnv(t)
	dir := h.asksAboutThePlan("run")
	c, id := h.dial(), metaOf(t, dir).RunID
	first := describe(t, c, id)
	began := time.Now()
	var all sync.WaitGroup
	errs := make([]error, senders)
	for i := range senders {
		all.Go(func() {
			for range signals / senders {
				if err := c.SignalWorkflow(t.Context(), id, "", workflows.VerbBudget, "not an object"); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	t.Logf("%d signals took %v", signals, time.Since(began))
	until(t, "all are counted", func() bool {
		v, err := c.QueryWorkflow(t.Context(), id, "", workflows.QueryStatus)
		var s run.State
		return err == nil && v.Get(&s) == nil && s.Refused == signals
	})
	require.NotEqual(t, first, describe(t, c, id), "it waits in a later execution")
	h.starter("decide", dir, "--action", "continue")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	t.Logf("until the end %v", time.Since(began))
	refused := of[run.DecisionRefused](eventsOf(t, dir), run.KindDecisionRefused)
	require.Less(t, len(refused), 200)
	n := 0
	for _, r := range refused {
		n += max(1, r.Count)
	}
	require.Equal(t, signals, n)
	require.Contains(t, h.starter("status", dir), "12000 messages that were not accepted")
	h.sound(dir)
}

// TestUpdateIsAnsweredWithoutHost has no worker for the run; then one for its workflow, and none for its
// directory.
func TestUpdateIsAnsweredWithoutHost(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	c := h.dial()
	o := h.operator(c)
	o.Settings.TaskQueue, o.Settings.Store = "away", fakes3.Start(t)
	l := h.subject(t, o).start()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	budget := workflows.Message{USD: 100}
	_, err := l.o.Send(ctx, l.id, workflows.VerbBudget, budget)
	queue := contract.StoreQueue("away", o.Settings.Store)
	require.ErrorContains(t, err, "no worker takes task queue "+queue+", so the message cannot be processed. Start one")

	w := worker.New(c, queue, worker.Options{})
	workflows.Register(w, nil, nil)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	for range 2 {
		_, err := send(t, c, l.id, workflows.VerbBudget, budget)
		require.ErrorContains(t, err, "is not open. No worker polls task queue "+
			contract.HostQueues("away", o.Host).Dir+": start one on that host")
	}
	ack, err := l.o.Send(ctx, l.id, workflows.VerbPause, workflows.Message{})
	require.NoError(t, err)
	require.Equal(t, "pausing after the running pass", ack.Message)
}

// describe is the id of a run's open execution.
func describe(t *testing.T, c client.Client, id string) string {
	t.Helper()
	d, err := c.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	return d.WorkflowExecution.RunID
}
