package costs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// asks reserves a call, and returns why it waits.
func (h *host) asks(c Call, m AtOnce) *Full {
	h.t.Helper()
	h.now = h.now.Add(time.Millisecond)
	full, _, err := h.Reserve(h.t.Context(), c, Terms{AtOnce: m})
	require.NoError(h.t, err)
	return full
}

// by is a call of an account and a pipeline.
func (h *host) by(id, account, pipeline string) Call {
	c := h.call(id)
	c.Account.ID, c.Pipeline = account, pipeline
	return c
}

// runs reserves and claims a call that fits.
func (h *host) runs(c Call, m AtOnce) {
	h.t.Helper()
	require.Nil(h.t, h.asks(c, m), c.ID)
	h.claim(c.ID, 1, true)
}

// ends stores the answer of a call, and settles it.
func (h *host) ends(id string) {
	h.t.Helper()
	h.answer(id, 1, exact(1))
	h.settled(id)
}

// next are the calls whose turn it is.
func (h *host) next() (ids []string) {
	h.t.Helper()
	offered, err := h.program().Next(h.t.Context(), "", func(w Waiting) AtOnce { return w.AtOnce })
	require.NoError(h.t, err)
	for _, w := range offered {
		ids = append(ids, w.Call)
	}
	return ids
}

func (h *host) queued() (ids []string) {
	h.t.Helper()
	q, err := h.program().Queue()
	require.NoError(h.t, err)
	for _, w := range q {
		ids = append(ids, w.Call)
	}
	return ids
}

func TestCallsBeyondTheBoundHaveTheirTurnInOrder(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	last := int64(0)
	for i, id := range []string{"b/1", "c/1", "d/1"} {
		full := h.asks(h.call(id), one)
		last = full.Number
		require.NotNil(t, full, id)
		require.Equal(t, run.AtOnceHost, full.Bound)
		require.Equal(t, 1, full.Most)
		require.Equal(t, i+1, full.Place)
		require.Equal(t, i+1, full.Of)
	}
	require.Nil(t, h.next(), "a runs")
	again := h.asks(h.call("c/1"), one)
	require.Equal(t, 2, again.Place, "who asks again keeps the place")
	require.Greater(t, again.Number, last, "under another number")
	h.ends("a/1")
	require.Equal(t, []string{"b/1"}, h.next())
	require.NotNil(t, h.asks(h.call("e/1"), one), "the place is offered to b")
	h.runs(h.call("b/1"), one)
	require.Equal(t, []string{"c/1", "d/1", "e/1"}, h.queued())
	h.ends("b/1")
	h.runs(h.call("c/1"), one)
	require.Nil(t, h.next())
}

func TestEachBoundCounts(t *testing.T) {
	for name, row := range map[string]struct {
		most  AtOnce
		first string // id of a call of account x and pipeline p that runs
		asks  []string
		fits  []bool
		bound run.AtOnceBound
	}{
		"host": {AtOnce{Host: 1}, "r/1", []string{"x p", "x q", "y p", "y q"}, []bool{false, false, false, false},
			run.AtOnceHost},
		"account": {AtOnce{Account: 1}, "r/1", []string{"x p", "x q", "y p"}, []bool{false, false, true},
			run.AtOnceAccount},
		"pipeline": {AtOnce{Pipeline: 1}, "r/1", []string{"x p", "y p", "x q"}, []bool{false, false, true},
			run.AtOncePipeline},
		"none": {AtOnce{}, "r/1", []string{"x p", "y p"}, []bool{true, true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.runs(h.by(row.first, "x", "p"), row.most)
			for i, who := range row.asks {
				full := h.asks(h.by(who+"/1", who[:1], who[2:]), row.most)
				require.Equal(t, row.fits[i], full == nil, who)
				if full != nil {
					require.Equal(t, row.bound, full.Bound)
				}
			}
		})
	}
}

// TestCallThatDoesNotFitHoldsUpNoOther: the first in the queue waits for its account, and the second one has another.
func TestCallThatDoesNotFitHoldsUpNoOther(t *testing.T) {
	h, most := newHost(t), AtOnce{Host: 2, Account: 1}
	h.runs(h.by("a/1", "x", "p"), most)
	h.runs(h.by("b/1", "y", "p"), most)
	require.NotNil(t, h.asks(h.by("c/1", "x", "p"), most))
	require.NotNil(t, h.asks(h.by("d/1", "z", "p"), most))
	h.ends("b/1")
	require.Equal(t, []string{"d/1"}, h.next())
	h.runs(h.by("d/1", "z", "p"), most)
	h.ends("a/1")
	require.Equal(t, []string{"c/1"}, h.next())
}

// TestOtherServersCallKeepsItsPlace: only a worker of its server can wake its run.
func TestOtherServersCallKeepsItsPlace(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	full, _, err := h.Reserve(t.Context(), h.call("b/1"), Terms{AtOnce: one, Server: "other"})
	require.NoError(t, err)
	require.NotNil(t, full)
	require.NotNil(t, h.asks(h.call("c/1"), one))
	h.ends("a/1")
	require.Nil(t, h.next())
	offered, err := h.Next(t.Context(), "other", func(w Waiting) AtOnce { return w.AtOnce })
	require.NoError(t, err)
	require.Equal(t, "b/1", offered[0].Call)
}

func TestCallThatNeverAsksAgainLeavesTheQueue(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	require.NotNil(t, h.asks(h.call("b/1"), one))
	h.now = h.now.Add(stays - time.Minute)
	require.Equal(t, []string{"b/1"}, h.queued())
	h.now = h.now.Add(2 * time.Minute)
	require.Empty(t, h.queued())
}

// TestBoundsInForceCount: more calls may run at once since the calls asked, or no bound is left.
func TestBoundsInForceCount(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	require.NotNil(t, h.asks(h.call("b/1"), one))
	require.NotNil(t, h.asks(h.call("c/1"), one))
	offered, err := h.Next(t.Context(), "", func(Waiting) AtOnce { return AtOnce{Host: 2} })
	require.NoError(t, err)
	require.Len(t, offered, 1)
	require.Nil(t, h.asks(h.call("c/1"), AtOnce{}))
	require.Equal(t, []string{"b/1"}, h.queued())
}

func TestPlaceIsOfferedForATime(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	require.NotNil(t, h.asks(h.call("b/1"), one))
	require.NotNil(t, h.asks(h.call("c/1"), one))
	h.ends("a/1")
	for range maxOffers {
		require.Equal(t, []string{"b/1"}, h.next())
		require.Nil(t, h.next(), "it is offered already")
		h.now = h.now.Add(OfferedFor)
	}
	require.Equal(t, []string{"c/1"}, h.next(), "b did not come")
	require.Equal(t, []string{"c/1"}, h.queued())
}

func TestRunLeavesTheQueue(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	first := h.asks(h.call("b/1"), one)
	require.NotNil(t, h.asks(h.call("c/1"), one))
	require.NotNil(t, h.asks(h.call("b/2"), one))
	require.NoError(t, h.Leave(t.Context(), "b", first.Number))
	require.Equal(t, []string{"c/1", "b/2"}, h.queued(), "a later request stays")
}

func TestOperatorsCallIsNext(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	require.NotNil(t, h.asks(h.call("b/1"), one))
	require.NotNil(t, h.asks(h.call("c/1"), one))
	full, _, err := h.Reserve(t.Context(), h.call("c/1"), Terms{AtOnce: one, First: true})
	require.NoError(t, err)
	require.Equal(t, 1, full.Place, "the bound counts for it too")
	require.Equal(t, []string{"c/1", "b/1"}, h.queued())
}

// TestCallOfADeadWorkerLeavesItsPlace: no program has settled it.
func TestCallOfADeadWorkerLeavesItsPlace(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	require.Nil(t, h.asks(h.call("a/1"), one))
	h.claim("a/1", 1, false)
	require.Nil(t, h.asks(h.call("b/1"), one))
}

// TestBudgetRefusesCallThatHasItsTurn: it waits for the next day, not in the queue.
func TestBudgetRefusesCallThatHasItsTurn(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	require.NotNil(t, h.asks(h.call("b/1"), one))
	h.ends("a/1")
	full, short, err := h.Reserve(t.Context(), h.call("b/1"), Terms{AtOnce: one, PerDay: Budget{Calls: 1}})
	require.NoError(t, err)
	require.Nil(t, full)
	require.NotNil(t, short)
	require.Empty(t, h.queued())
}

// TestDamagedQueueLosesOnlyTheOrder and a queue of a later release is refused.
func TestDamagedQueueLosesOnlyTheOrder(t *testing.T) {
	h, one := newHost(t), AtOnce{Host: 1}
	h.runs(h.call("a/1"), one)
	before := h.asks(h.call("b/1"), one)
	path := filepath.Join(h.dir, folder, queueFile)
	require.NoError(t, os.WriteFile(path, []byte(`{"versi`), 0o600))
	require.Empty(t, h.queued())
	after := h.asks(h.call("c/1"), one)
	require.Greater(t, after.Number, before.Number)
	require.Equal(t, []string{"c/1"}, h.queued())
	require.NoError(t, os.WriteFile(path, []byte(`{"version":2}`), 0o600))
	_, _, err := h.Reserve(t.Context(), h.call("d/1"), Terms{AtOnce: one})
	require.ErrorIs(t, err, errNewer)
}
