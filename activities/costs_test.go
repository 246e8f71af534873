package activities

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/run"
)

// counting is a harness whose worker has a state directory, so that it counts costs.
func counting(t *testing.T, play string) *harness {
	t.Helper()
	h := newHarness(t, play)
	h.acts.cfg.StateDir = h.dir
	h.acts.costs = h.acts.newCosts(diskOf(h.acts.cfg))
	return h
}

// spent is what another program reads since yesterday.
func (h *harness) spent() costs.Day {
	h.t.Helper()
	return must(costs.Open(h.dir, "here", costs.Options{Now: func() time.Time { return time.Now().Add(-24 * time.Hour) }}).
		Today())(h.t)
}

func TestCallIsRecordedInTheLedgerOfTheHost(t *testing.T) {
	h := counting(t, "wait")
	done := h.begin(context.Background(), h.acts)
	h.awaitStart(1)
	require.Equal(t, 1, h.spent().Reserved.Calls, "it is reserved before it is claimed")
	h.letGo()
	require.NoError(t, (<-done).err)
	for range 2 { // a repeated delivery finds the answer
		sum := h.spent()
		require.Zero(t, sum.Reserved)
		require.Equal(t, 1, sum.Known.Calls)
		require.Equal(t, run.CostExact, sum.Known.Known)
		require.InDelta(t, 0.25, sum.Known.USD, 1e-9)
		h.result()
	}
	require.Equal(t, "small", h.claims()[0].Pipeline)
	require.Equal(t, "reader", h.claims()[0].Role)
	require.Len(t, h.claims()[0].Account, 16)
}

// TestNextDeliverySettlesTheCallOfADeadWorker: what was reserved by a worker that was killed is settled by the worker
// that reads the answer.
func TestNextDeliverySettlesTheCallOfADeadWorker(t *testing.T) {
	h := counting(t, "answer")
	dead := gone(t)
	_, _, err := h.acts.costs.Reserve(t.Context(), costs.Call{ID: callID(h.in), Delivery: 1, Run: "run-1", Worker: dead,
		Store: h.in.Store}, costs.Terms{})
	require.NoError(t, err)
	h.leave(dead, dead, envelopeOf("From beyond.")+"\n")
	h.result()
	require.Zero(t, h.spent().Reserved)
	require.InDelta(t, 0.25, h.spent().Known.USD, 1e-9)
}

// TestUnclaimedCallIsReleased: the claim fails, and so nothing was spent.
func TestUnclaimedCallIsReleased(t *testing.T) {
	h := counting(t, "answer")
	h.acts.cfg.Supervisor = []string{filepath.Join(h.dir, "missing")}
	_, err := h.pass(t.Context())
	require.Error(t, err)
	require.Zero(t, h.spent().Reserved)
	require.Zero(t, h.spent().Known.Calls)
}

// TestCallOverTheBudgetOfTheDayIsNotMade: the run waits for the next day, and no agent starts.
func TestCallOverTheBudgetOfTheDayIsNotMade(t *testing.T) {
	h := counting(t, "answer")
	h.acts.cfg.PerDay = config.PerDay{Calls: 1}
	h.result()
	h.in.Call = "run-1/g0.002.1.-.2"
	res := h.result()
	now := time.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.Local)
	require.Equal(t, &run.Limit{Kind: run.LimitBudgetDay, Reset: run.Time(midnight)}, res.Limit)
	require.True(t, res.Uncalled)
	require.Equal(t, 1, h.started())
	require.Empty(t, h.claims())
	h.in.Call = "run-1/g0.002.1.-.1"
	res = h.result()
	require.Nil(t, res.Limit, "an answer that exists costs nothing")
}

// TestSecondCallOfARoleWaitsForTheFirst: until that ends, it is not known what a call of the role needs.
func TestSecondCallOfARoleWaitsForTheFirst(t *testing.T) {
	h := counting(t, "wait")
	h.acts.cfg.PerDay = config.PerDay{USD: 0.25}
	first, other := h.begin(t.Context(), h.acts), *h
	h.awaitStart(1)
	other.in.Call = "run-2/g0.002.1.-.1"
	second := other.begin(t.Context(), h.acts)
	h.letGo()
	require.Nil(t, (<-first).Limit)
	res := <-second
	require.NoError(t, res.err)
	require.NotNil(t, res.Limit, "the first one cost all")
	require.Equal(t, 1, h.started())
}
