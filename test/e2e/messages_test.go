package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/workflows"
)

// TestUpdateIsAnsweredWithoutHost has no worker for the run; then one for its workflow, and none for its
// directory.
func TestUpdateIsAnsweredWithoutHost(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
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
