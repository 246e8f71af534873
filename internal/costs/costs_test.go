package costs

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// host is a ledger with one store.
type host struct {
	t   *testing.T
	dir string
	s   *store.Store
	now time.Time
	*Ledger
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir(), now: time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)}
	var err error
	h.s, err = store.Open(t.Context(), "file://"+filepath.Join(h.dir, "store"))
	require.NoError(t, err)
	h.Ledger = h.program()
	return h
}

// program opens the ledger as another program does.
func (h *host) program() *Ledger {
	return Open(h.dir, "here", Options{Now: func() time.Time { return h.now }, Zone: time.UTC, Worker: h.call("").Worker,
		Open: func(context.Context, string) (*store.Store, error) { return h.s, nil }})
}

func (h *host) call(id string) Call {
	h.t.Helper()
	self, err := process.Self()
	require.NoError(h.t, err)
	return Call{ID: id, Delivery: 1, Run: strings.Split(id, "/")[0], Pipeline: "p", Role: "writer", Store: h.s.URL(),
		Worker: self, Account: accounts.Account{ID: "0123456789abcdef", Name: "claude"}}
}

func (h *host) reserve(id string, b Budget) *Short {
	h.t.Helper()
	_, short, err := h.Reserve(h.t.Context(), h.call(id), Terms{PerDay: b})
	require.NoError(h.t, err)
	return short
}

func (h *host) of(id string) calls.Ledger { return calls.Ledger{Store: h.s, Call: id} }

// claim claims the delivery of a call; its supervisor is this process, or has ended.
func (h *host) claim(id string, n int, alive bool) {
	h.t.Helper()
	c := calls.Claim{Version: 1, Call: id, Host: "here", Role: "writer", Pipeline: "p", At: run.Time(h.now)}
	c.Supervisor.PID = 1 << 30
	if alive {
		c.Supervisor = h.call(id).Worker
	}
	require.NoError(h.t, h.of(id).Claim(h.t.Context(), c, n))
}

// settleAll settles as a call does that the budget does not cover.
func (l *Ledger) settleAll(t *testing.T) error {
	return l.locked(t.Context(), func() error { return l.settleOpen(t.Context(), l.opt.Now().Add(-time.Hour)) })
}

func exact(usd float64) run.Spend {
	return run.Spend{USD: usd, Known: run.CostExact, Model: "m", Tokens: run.Tokens{Input: 10}}
}

// answer stores the answer of a delivery.
func (h *host) answer(id string, n int, s run.Spend) {
	h.t.Helper()
	_, err := h.of(id).Put(h.t.Context(), calls.Answer{Version: 2, Call: id, Delivery: n, Host: "here",
		Read: calls.Reading{Spend: s}})
	require.NoError(h.t, err)
}

func (h *host) settled(id string) {
	h.t.Helper()
	require.NoError(h.t, h.Settle(h.t.Context(), h.s, id, 0))
}

func (h *host) used() Day {
	h.t.Helper()
	d, err := h.program().Today()
	require.NoError(h.t, err)
	return d
}

// since returns what the calls that were reserved since a time use.
func (h *host) since(from time.Time) (d Day) {
	h.t.Helper()
	all, err := h.program().records(from)
	require.NoError(h.t, err)
	for _, r := range all {
		d.add(r)
	}
	return d
}

func (h *host) file() string { return filepath.Join(h.dir, folder, "2026-11-25"+suffix) }

func TestCallIsSettledOnce(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	h.claim("r/1", 1, true)
	h.settled("r/1")
	require.Equal(t, 1, h.used().Reserved.Calls, "it is running")
	h.answer("r/1", 1, exact(2))
	for range 3 {
		h.settled("r/1")
		require.NoError(t, h.program().settleAll(t))
	}
	require.InDelta(t, 2, h.used().USD, 1e-9)
	require.Equal(t, 1, h.used().Calls)
	require.Zero(t, h.used().Reserved)
}

// A delivery that ended without an answer and one that came too late cost something too, each once.
func TestEndedAndSupersededDeliveriesCountOnce(t *testing.T) {
	h := newHost(t)
	two := h.call("r/1")
	two.Delivery = 2
	require.Nil(t, h.reserve("r/1", Budget{}))
	h.claim("r/1", 1, true)
	cost := exact(0.5)
	require.NoError(t, h.of("r/1").End(t.Context(), 1, calls.End{Spend: &cost}))
	_, _, err := h.Reserve(t.Context(), two, Terms{})
	require.NoError(t, err)
	h.claim("r/1", 2, true)
	h.answer("r/1", 2, exact(1))
	h.settled("r/1")
	h.settled("r/1")
	require.InDelta(t, 1.5, h.used().USD, 1e-9)
	h.answer("r/1", 1, exact(3)) // the first delivery answers after all: 2.5 more than was counted
	h.settled("r/1")
	h.settled("r/1")
	require.InDelta(t, 4, h.used().USD, 1e-9)
}

func TestNextReadSettlesCallsOfKilledWorkers(t *testing.T) {
	dead := process.Identity{PID: 1 << 30}
	for _, row := range []struct {
		name  string
		leave func(h *host)
		want  Day
	}{
		{"before the claim", func(*host) {}, Day{}},
		{"claimed, supervisor lost", func(h *host) { h.claim("r/1", 1, false) }, Day{Calls: 1, Unknown: 1}},
		{"answered", func(h *host) { h.claim("r/1", 1, false); h.answer("r/1", 1, exact(2)) },
			Day{Calls: 1, USD: 2, Tokens: 10}},
		{"ended", func(h *host) {
			h.claim("r/1", 1, false)
			require.NoError(h.t, h.of("r/1").End(h.t.Context(), 1, calls.End{}))
		}, Day{}},
		{"running", func(h *host) { h.claim("r/1", 1, true) }, Day{Reserved: Budget{Calls: 1}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t)
			c := h.call("r/1")
			c.Worker = dead
			_, _, err := h.Reserve(t.Context(), c, Terms{})
			require.NoError(t, err)
			row.leave(h)
			reader := h.program()
			require.NoError(t, reader.CountEnded(t.Context(), h.now.Add(-time.Hour)))
			for _, l := range []*Ledger{reader, h.Ledger} {
				if l == h.Ledger {
					require.NoError(t, l.settleAll(t))
				}
				got, err := l.Today()
				require.NoError(t, err)
				got.From, got.Until, got.Zone, got.Known = time.Time{}, time.Time{}, "", run.Totals{}
				require.Equal(t, row.want, got)
			}
		})
	}
	t.Run("lost, and answered after all", func(t *testing.T) {
		h := newHost(t)
		require.Nil(t, h.reserve("r/1", Budget{}))
		h.claim("r/1", 1, false)
		h.settled("r/1")
		require.Equal(t, 1, h.used().Unknown)
		h.answer("r/1", 1, exact(2))
		h.settled("r/1")
		require.Zero(t, h.used().Unknown)
		require.InDelta(t, 2, h.used().USD, 1e-9)
	})
}

// TestParallelCallsOvershootByWhatTheyDidNotReserve: ten programs at once; no more is used than the budget, and what
// the calls in flight cost beyond what they reserved.
func TestParallelCallsOvershootByWhatTheyDidNotReserve(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r0/1", Budget{}))
	h.claim("r0/1", 1, true)
	h.answer("r0/1", 1, exact(1))
	h.settled("r0/1")
	budget := Budget{USD: 10}
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			l := h.program()
			for n := 1; ; n++ {
				c := h.call("r" + string(rune('a'+i)) + "/" + string(rune('0'+n)))
				_, short, err := l.Reserve(t.Context(), c, Terms{PerDay: budget})
				if !assertNil(t, err) || short != nil {
					return
				}
				h.claim(c.ID, 1, true)
				cost := 0.7 + 0.2*float64((i+n)%4)
				h.answer(c.ID, 1, exact(cost))
				if !assertNil(t, l.Settle(t.Context(), h.s, c.ID, 0)) {
					return
				}
			}
		})
	}
	group.Wait()
	used := h.used()
	require.Zero(t, used.Reserved)
	require.Greater(t, used.USD, 8.0, "no call is refused that the budget covers")
	all, err := h.program().records(h.now.Add(-time.Hour))
	require.NoError(t, err)
	excess := 0.0
	for _, r := range all {
		for _, s := range r.spends() {
			excess += max(0, s.USD-r.USD)
		}
	}
	require.Positive(t, excess)
	require.LessOrEqual(t, used.USD, budget.USD+excess)
}

func assertNil(t *testing.T, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func TestReservationsBoundTheOvershoot(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/0", Budget{}))
	h.claim("r/0", 1, true)
	h.answer("r/0", 1, exact(2))
	h.settled("r/0")
	budget := Budget{USD: 9, Calls: 5}
	for _, id := range []string{"r/1", "r/2", "r/3"} {
		require.Nil(t, h.reserve(id, budget))
		h.claim(id, 1, true)
	}
	short := h.reserve("r/4", budget)
	require.NotNil(t, short, "1.00 is left, and the mean is 2.00")
	require.Equal(t, "the budget of the day does not cover the call: $2.00 of $9.00, 1 of 5 calls, "+
		"reserved: $6.00 by 3 running calls; it needs about $2.00", short.Text())
	require.Equal(t, time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC), short.Day.Until)
	h.answer("r/1", 1, exact(0.5)) // the next count settles it
	require.Nil(t, h.reserve("r/4", budget))
	require.NotNil(t, h.reserve("r/5", Budget{Calls: 5}))
	h.now = h.now.Add(14 * time.Hour)
	require.Nil(t, h.reserve("r/5", budget), "the next day has its own budget")
}

func TestFirstCallOfRoleRunsAlone(t *testing.T) {
	h := newHost(t)
	budget := Budget{USD: 10}
	require.Nil(t, h.reserve("r/1", budget))
	h.claim("r/1", 1, true)
	_, _, err := h.Reserve(t.Context(), h.call("r/2"), Terms{PerDay: budget})
	require.ErrorIs(t, err, ErrBusy)
	_, _, err = h.Reserve(t.Context(), h.call("r/2"), Terms{PerDay: budget, PerCall: Budget{USD: 3}})
	require.NoError(t, err, "the maximum of one call is known")
	require.InDelta(t, 3, h.used().Reserved.USD, 1e-9)
	h.answer("r/1", 1, exact(2))
	require.Nil(t, h.reserve("r/3", budget))
	require.InDelta(t, 5, h.used().Reserved.USD, 1e-9)
}

func TestUnknownCostCountsAsReserved(t *testing.T) {
	h := newHost(t)
	_, _, err := h.Reserve(t.Context(), h.call("r/1"), Terms{PerDay: Budget{USD: 9}, PerCall: Budget{USD: 4, Tokens: 100}})
	require.NoError(t, err)
	h.claim("r/1", 1, true)
	h.answer("r/1", 1, run.Spend{Known: run.CostUnknown})
	h.settled("r/1")
	require.InDelta(t, 4, h.used().USD, 1e-9)
	require.Equal(t, int64(100), h.used().Tokens)
	require.Equal(t, run.Totals{Calls: 1, Known: run.CostUnknown, Unknown: 1}, h.used().Known)
	require.Equal(t, 1, h.used().Unknown)
}

// TestDaysAreLocal: a call counts on the day of its host's time zone on which it was reserved.
func TestDaysAreLocal(t *testing.T) {
	h := newHost(t)
	zone, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	h.opt.Zone = zone
	h.now = time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC) // 22:00 on the 25th
	require.Nil(t, h.reserve("r/1", Budget{}))
	h.claim("r/1", 1, true)
	h.now = h.now.Add(3 * time.Hour) // 01:00 on the 26th
	h.answer("r/1", 1, exact(1))
	h.settled("r/1")
	require.Equal(t, 1, h.since(h.now.Add(-7*24*time.Hour)).Calls)
	day, err := h.Today()
	require.NoError(t, err)
	require.Equal(t, "America/New_York", day.Zone)
	require.Zero(t, day.Calls)
	require.Equal(t, time.Date(2026, 11, 27, 5, 0, 0, 0, time.UTC), day.Until.UTC())
}
