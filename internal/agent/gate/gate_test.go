package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
)

// machine is a boot of a machine, with its processes.
type machine struct {
	name string
	mu   sync.Mutex
	next int
	runs map[int]bool
}

func newMachine(t *testing.T, name string) *machine {
	m := &machine{name: name, runs: map[int]bool{}}
	t.Cleanup(process.Simulate(name, m))
	return m
}

func (m *machine) start() process.Identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	m.runs[m.next] = true
	return process.Identity{PID: m.next, StartTime: "1", BootID: m.name}
}

func (m *machine) kill(id process.Identity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.runs, id.PID)
}

func (m *machine) Alive(id process.Identity) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[id.PID]
}

func (m *machine) Signal(id process.Identity, _ syscall.Signal) { m.kill(id) }
func (m *machine) Worker() process.Identity                     { return m.start() }
func (m *machine) Start(process.Identity, string) (process.Identity, io.WriteCloser, chan struct{}) {
	panic("no supervisor is started")
}

var begin = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)

// host is a gate with one store.
type host struct {
	*Gate
	t      *testing.T
	dir    string
	s      *store.Store
	m      *machine
	worker process.Identity
	mu     sync.Mutex
	now    time.Time
	shown  map[string]bool // directories of calls whose provider answers
}

func newHost(t *testing.T, change ...func(*Options)) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir(), m: newMachine(t, "boot of "+t.Name()), now: begin, shown: map[string]bool{}}
	var err error
	h.s, err = store.Open(t.Context(), "file://"+filepath.Join(h.dir, "store"))
	require.NoError(t, err)
	h.worker = h.m.start()
	h.Gate = h.program(change...)
	return h
}

// program opens the gate as another program does.
func (h *host) program(change ...func(*Options)) *Gate {
	o := Options{Now: h.clock, Zone: time.UTC, Worker: h.worker,
		Open:    func(context.Context, string) (*store.Store, error) { return h.s, nil },
		Answers: func(dir, _ string) bool { return h.shown[dir] }}
	for _, f := range change {
		f(&o)
	}
	return Open(h.dir, "here", o)
}

func (h *host) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *host) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func perDay(b Budget) func(*Options)           { return func(o *Options) { o.PerDay = b } }
func atOnce(most config.AtOnce) func(*Options) { return func(o *Options) { o.AtOnce = most } }

var claude = Account{ID: "0123456789abcdef", Name: "claude"}

// need is a call of a new supervisor.
func (h *host) need(id string) Need {
	return Need{Retry: time.Minute, Dir: id, Call: Call{ID: id, Delivery: 1, Run: strings.Split(id, "/")[0], Pipeline: "p",
		Role: "writer", Store: h.s.URL(), Account: claude, Worker: h.worker, Holder: h.m.start()}}
}

// asks asks for a call; nil: it is reserved.
func (h *host) asks(n Need) *Refusal {
	h.t.Helper()
	no, err := h.Acquire(h.t.Context(), n)
	require.NoError(h.t, err)
	if no != nil {
		h.m.kill(n.Holder)
	}
	return no
}

func (h *host) of(id string) calls.Ledger { return calls.Ledger{Store: h.s, Call: id} }

// claim claims the delivery of a call.
func (h *host) claim(n Need) {
	h.t.Helper()
	c := calls.Claim{Version: 1, Call: n.ID, Host: "here", Role: n.Role, Pipeline: n.Pipeline, At: run.Time(h.clock()),
		Worker: n.Worker, Supervisor: n.Holder, Scratch: filepath.Join(h.dir, "scratch", n.ID)}
	require.NoError(h.t, h.of(n.ID).Claim(h.t.Context(), c, n.Delivery))
}

func exact(usd float64) run.Spend {
	return run.Spend{USD: usd, Known: run.CostExact, Model: "m", Tokens: run.Tokens{Input: 10}}
}

// answer ends a call with an answer, which no program has counted.
func (h *host) answer(n Need, s run.Spend) {
	h.t.Helper()
	_, err := h.of(n.ID).Put(h.t.Context(), calls.Answer{Version: 2, Call: n.ID, Delivery: n.Delivery, Host: "here",
		Read: calls.Reading{Spend: s}})
	require.NoError(h.t, err)
	h.m.kill(n.Holder)
}

func (h *host) settled(id string) {
	h.t.Helper()
	require.NoError(h.t, h.Settle(h.t.Context(), h.s, h.s.URL(), id))
}

// makes makes a call that costs something.
func (h *host) makes(id string, usd float64) {
	h.t.Helper()
	n := h.need(id)
	require.Nil(h.t, h.asks(n))
	h.claim(n)
	h.answer(n, exact(usd))
	h.settled(id)
}

func (h *host) used() Day {
	h.t.Helper()
	d, err := h.program().Today()
	require.NoError(h.t, err)
	return d
}

func TestCallIsSettledOnce(t *testing.T) {
	h := newHost(t)
	n := h.need("r/1")
	require.Nil(t, h.asks(n))
	require.Nil(t, h.asks(n), "an earlier attempt has reserved it")
	h.claim(n)
	h.settled("r/1")
	require.Equal(t, 1, h.used().Reserved.Calls, "it is running")
	h.answer(n, exact(2))
	for range 3 {
		h.settled("r/1")
		require.InDelta(t, 2, h.used().Known.USD, 1e-9)
		require.Equal(t, 1, h.used().Known.Calls)
		require.Zero(t, h.used().Reserved)
	}
}

// TestDeliveriesWithoutAnAnswer: each part of a cost counts once, and one that is unknown as what was reserved.
func TestDeliveriesWithoutAnAnswer(t *testing.T) {
	h := newHost(t, perDay(Budget{USD: 100}))
	n := h.need("r/1")
	n.Most.USD = 3
	require.Nil(t, h.asks(n))
	h.claim(n)
	unknown := run.Spend{USD: 0.5, Known: run.CostAtLeast}
	require.NoError(t, h.of("r/1").End(t.Context(), 1, calls.End{Spend: &unknown}))
	h.m.kill(n.Holder)
	h.settled("r/1")
	require.InDelta(t, 0.5, h.used().Known.USD, 1e-9)
	require.InDelta(t, 2.5, h.used().Held.USD, 1e-9)
	require.Equal(t, 1, h.used().Known.Unknown)
	again := h.need("r/1")
	again.Delivery = 2
	require.Nil(t, h.asks(again))
	h.claim(again)
	h.answer(again, exact(2))
	late := n
	h.answer(late, exact(1.5)) // the first delivery has answered after all
	for range 2 {
		h.settled("r/1")
	}
	require.InDelta(t, 3.5, h.used().Known.USD, 1e-9)
	require.Zero(t, h.used().Known.Unknown)
	require.Zero(t, h.used().Reserved)
}

// TestAnswerThatWasPaidForElsewhere costs nothing: another call was charged.
func TestAnswerThatWasPaidForElsewhere(t *testing.T) {
	h := newHost(t, perDay(Budget{USD: 100}))
	n := h.need("r/1")
	require.Nil(t, h.asks(n))
	h.claim(n)
	_, err := h.of(n.ID).Put(t.Context(), calls.Answer{Version: 2, Call: n.ID, Delivery: n.Delivery, Host: "here",
		Source: "r/0", Read: calls.Reading{Spend: exact(2)}})
	require.NoError(t, err)
	h.m.kill(n.Holder)
	h.settled("r/1")
	require.Zero(t, h.used().Known.USD)
	require.Zero(t, h.used().Reserved)
}

// TestCallOfLostSupervisor is lost, unless its worker is storing the answer.
func TestCallOfLostSupervisor(t *testing.T) {
	for name, row := range map[string]struct{ exit, worker, claimed, open, lost bool }{
		"the worker stores the answer": {exit: true, worker: true, claimed: true, open: true},
		"the worker is gone too":       {exit: true, claimed: true, lost: true},
		"no exit was recorded":         {worker: true, claimed: true, lost: true},
		"it was not claimed":           {worker: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, perDay(Budget{USD: 100}))
			n := h.need("r/1")
			n.Worker, n.Most.USD = h.m.start(), 3
			require.Nil(t, h.asks(n))
			if row.claimed {
				h.claim(n)
			}
			if row.exit {
				dir := filepath.Join(h.dir, "scratch", "r/1", "1")
				require.NoError(t, os.MkdirAll(dir, 0o700))
				raw, err := json.Marshal(map[string]any{"version": supervisor.Version})
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, supervisor.ExitFile), raw, 0o600))
			}
			h.m.kill(n.Holder)
			if !row.worker {
				h.m.kill(n.Worker)
			}
			next := h.need("r/2")
			next.Role = "other"
			require.Nil(t, h.asks(next))
			require.Equal(t, map[bool]int{true: 2, false: 1}[row.open], h.used().Reserved.Calls)
			require.Equal(t, map[bool]int{true: 1}[row.lost], h.used().Known.Unknown)
			require.InDelta(t, map[bool]float64{true: 3}[row.lost], h.used().Held.USD, 1e-9)
			if row.claimed { // it has answered after all
				h.answer(n, exact(1))
				h.settled("r/1")
				require.InDelta(t, 1, h.used().Known.USD, 1e-9)
				require.Zero(t, h.used().Held)
			}
		})
	}
}

// TestTwoWorkersReserveOneDelivery: the row follows the one that has claimed it.
func TestTwoWorkersReserveOneDelivery(t *testing.T) {
	h := newHost(t, atOnce(config.AtOnce{Host: 1}))
	first, second := h.need("r/1"), h.need("r/1")
	second.Worker = h.m.start()
	require.Nil(t, h.asks(first))
	require.Nil(t, h.asks(second), "it is the same call")
	h.claim(second)
	h.m.kill(first.Holder) // its claim came too late
	require.Equal(t, run.LimitAtOnce, h.asks(h.need("r/2")).Limit.Kind)
	h.m.kill(second.Holder)
	h.pass(time.Hour)
	require.Nil(t, h.asks(h.need("r/2")))
}

func TestOnlyTheOwnRowIsReleased(t *testing.T) {
	h := newHost(t)
	n, other := h.need("r/1"), h.need("r/1")
	require.Nil(t, h.asks(n))
	require.NoError(t, h.Release(t.Context(), other.Call))
	require.Equal(t, 1, h.used().Reserved.Calls)
	require.NoError(t, h.Release(t.Context(), n.Call))
	require.Zero(t, h.used().Reserved.Calls)
}

// TestBudgetOfTheDay: it covers what it has, beside what is used and reserved, and the next day begins anew.
func TestBudgetOfTheDay(t *testing.T) {
	h := newHost(t, perDay(Budget{USD: 10, Calls: 5}))
	h.makes("r/1", 4)
	n := h.need("r/2")
	require.Nil(t, h.asks(n), "the mean is 4")
	no := h.asks(h.need("r/3"))
	require.Equal(t, run.Limit{Kind: run.LimitBudgetDay, Reset: "2026-11-26T00:00:00.000Z"}, no.Limit)
	require.Equal(t, "the budget of the day does not cover the call: $4.00 of $10.00, 1 of 5 calls, "+
		"reserved: $4.00 by 1 running call; it needs about $4.00", no.Text)
	h.claim(n)
	h.answer(n, exact(1))
	h.settled("r/2")
	require.Nil(t, h.asks(h.need("r/3")), "the mean is 2.50")
	h.pass(14 * time.Hour)
	require.Zero(t, h.used().Known.USD)
	for i := range 4 {
		require.Nil(t, h.asks(h.need(fmt.Sprintf("s/%d", i))))
	}
	require.NotNil(t, h.asks(h.need("s/5")), "10 are reserved")
}

// TestCallsOfUnknownNeed run one at a time under a budget of dollars or tokens, and together under one of calls.
func TestCallsOfUnknownNeed(t *testing.T) {
	for _, row := range []struct {
		budget Budget
		busy   bool
	}{{Budget{USD: 9}, true}, {Budget{Tokens: 900}, true}, {Budget{Calls: 9}, false}} {
		h := newHost(t, perDay(row.budget))
		first := h.need("r/1")
		require.Nil(t, h.asks(first))
		_, err := h.Acquire(t.Context(), h.need("r/2"))
		require.Equal(t, row.busy, errors.Is(err, ErrBusy))
		other := h.need("r/3")
		other.Role = "reader"
		require.Nil(t, h.asks(other))
		known := h.need("r/4")
		known.Most = Budget{USD: 1, Tokens: 1}
		require.Nil(t, h.asks(known))
		h.m.kill(first.Holder)
		require.Nil(t, h.asks(h.need("r/2")))
	}
}

// TestDaysBeginAtMidnight of the zone of the reader.
func TestDaysBeginAtMidnight(t *testing.T) {
	h := newHost(t)
	h.now = time.Date(2026, 11, 25, 18, 10, 0, 0, time.UTC) // 23:40 in India
	h.makes("r/1", 1)
	h.pass(20 * time.Minute)
	h.makes("r/2", 2)
	india := h.program(func(o *Options) { o.Zone = time.FixedZone("IST", 5*3600+1800) })
	d, err := india.Today()
	require.NoError(t, err)
	require.InDelta(t, 2, d.Known.USD, 1e-9)
	require.Equal(t, "IST", d.Zone)
	require.InDelta(t, 3, h.used().Known.USD, 1e-9)
}

// hurts are ways in which a file is lost.
var hurts = map[string]func(t *testing.T, path string){
	"deleted":   func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
	"truncated": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 8192)) },
	"cut short": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 100)) },
	"emptied":   func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
	"filled with zeros": func(t *testing.T, path string) {
		fi, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, make([]byte, fi.Size()), 0o600))
	},
	"of another program": func(t *testing.T, path string) {
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("hello\n", 9000)), 0o600))
	},
}

// TestLostFileIsMadeAgain from the calls of the stores: costs, and calls that run.
func TestLostFileIsMadeAgain(t *testing.T) {
	for name, hurt := range hurts {
		t.Run(name, func(t *testing.T) {
			bounds := func(o *Options) { o.PerDay, o.AtOnce = Budget{USD: 10}, config.AtOnce{Host: 2} }
			h := newHost(t, bounds)
			h.makes("r/1", 2)
			h.makes("r/2", 3)
			n := h.need("r/3")
			require.Nil(t, h.asks(n))
			h.claim(n)
			other := calls.Claim{Version: 1, Call: "r/other", Host: "there", Role: "writer", At: run.Time(begin)}
			require.NoError(t, h.of("r/other").Claim(t.Context(), other, 1))
			h.answer(h.need("r/other"), exact(4))
			hurt(t, h.path)
			require.Nil(t, h.asks(h.need("r/4")))
			d := h.used()
			require.InDelta(t, 5, d.Known.USD, 1e-9)
			require.Equal(t, Budget{USD: 5, Calls: 2}, Budget{USD: d.Reserved.USD, Calls: d.Reserved.Calls})
			require.Equal(t, run.LimitAtOnce, h.asks(h.need("r/5")).Limit.Kind, "two run")
			h.answer(n, exact(3))
			h.settled("r/3")
			require.Equal(t, run.LimitBudgetDay, h.asks(h.need("r/5")).Limit.Kind)
			whole := name == "deleted" || name == "emptied"
			require.Equal(t, whole, len(h.Damaged(begin)) == 0)
			require.Empty(t, h.Damaged(begin.Add(time.Hour)))
		})
	}
}

// TestStoreThatIsAway: what its calls have cost is not known, so the budget in dollars waits, and is at least what is
// known.
func TestStoreThatIsAway(t *testing.T) {
	away := errors.New("it is away")
	open := func(o *Options) {
		o.PerDay, o.Stores = Budget{USD: 10}, func() []string { return []string{"s3://other"} }
		o.Open = func(context.Context, string) (*store.Store, error) { return nil, away }
	}
	h := newHost(t, open)
	no := h.asks(h.need("r/1"))
	require.Equal(t, run.Limit{Kind: run.LimitBudgetDay, Reset: "2026-11-26T00:00:00.000Z",
		Again: "2026-11-25T10:01:00.000Z"}, no.Limit)
	require.Contains(t, no.Text, "the calls of the store s3://other are not counted yet: it is away")
	require.Equal(t, "at least $0.00 of $10.00", h.used().Text(Budget{USD: 10}))
	away = nil
	h.Gate = h.program(open, func(o *Options) {
		o.Open = func(context.Context, string) (*store.Store, error) { return h.s, away }
	})
	require.NotNil(t, h.asks(h.need("r/1")), "it is not tried again at once")
	h.pass(retryStore)
	require.Nil(t, h.asks(h.need("r/1")))
	calls := h.program(open, perDay(Budget{Calls: 9}))
	n := h.need("r/2")
	no, err := calls.Acquire(t.Context(), n)
	require.NoError(t, err)
	require.Nil(t, no, "a budget of calls needs no dollars")
}

func TestFileOfALaterVersionIsRefused(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.asks(h.need("r/1")))
	db, err := bbolt.Open(h.path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(x *bbolt.Tx) error {
		return x.Bucket([]byte(metaRows)).Put([]byte("version"), []byte("7"))
	}))
	require.NoError(t, db.Close())
	_, err = h.Acquire(t.Context(), h.need("r/2"))
	require.ErrorContains(t, err, "its version is 7, and this program knows version 1")
	_, err = h.Today()
	require.ErrorContains(t, err, "its version is 7")
	require.Empty(t, h.Damaged(begin))
}

// TestNoFileIsEmpty: a program that only reads creates none.
func TestNoFileIsEmpty(t *testing.T) {
	h := newHost(t)
	require.Zero(t, h.used().Known)
	all, err := h.Waiting()
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoFileExists(t, h.path)
	require.Nil(t, h.asks(h.need("r/1")))
	fi, err := os.Stat(h.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
}

// TestOldRowsArePruned: the file does not grow with the calls of months.
func TestOldRowsArePruned(t *testing.T) {
	h := newHost(t)
	for day := range 30 {
		h.makes(fmt.Sprintf("r/%d", day), 1)
		h.pass(24 * time.Hour)
	}
	require.NoError(t, h.view(func(x *tx) {
		require.Len(t, list[string](x, settledRows, ""), 9)
		require.LessOrEqual(t, len(list[sum](x, sumRows, "")), 9)
	}))
}

func shutUntil(t *testing.T, h *host, until time.Time, call string) Shut {
	t.Helper()
	s, err := h.Close(t.Context(), claude, Limit{Kind: run.LimitPlan, Until: until, Call: call,
		Wait: func(n int) time.Duration { return time.Duration(n) * time.Hour }})
	require.NoError(t, err)
	return s
}

// TestOneCallFirstAfterTheReset: the others ask again, until it is answered or the account counts as open.
func TestOneCallFirstAfterTheReset(t *testing.T) {
	reset := begin.Add(2 * time.Hour)
	shut := run.Limit{Kind: run.LimitPlan, Reset: run.Time(reset), Account: "claude", AccountID: claude.ID}
	for name, row := range map[string]struct {
		then func(h *host, first Need)
		wait string // of another call: shut, again, first, open
	}{
		"it runs":       {func(h *host, _ Need) { h.pass(30 * time.Second) }, "again"},
		"it shows text": {func(h *host, first Need) { h.shown[first.Dir] = true }, "open"},
		"it is answered": {func(h *host, first Need) {
			require.NoError(h.t, h.Opened(h.t.Context(), claude.ID, first.ID))
		}, "open"},
		"another is answered": {func(h *host, _ Need) {
			require.NoError(h.t, h.Opened(h.t.Context(), claude.ID, "r/other"))
		}, "again"},
		"it is silent": {func(h *host, _ Need) { h.pass(time.Minute) }, "open"},
		"it has ended, and its worker has not recorded how": {func(h *host, first Need) { h.m.kill(first.Holder) }, "again"},
		"it was killed with its worker": {func(h *host, first Need) {
			h.m.kill(first.Holder)
			h.m.kill(first.Worker)
		}, "first"},
		"it ended a minute ago": {func(h *host, first Need) { h.m.kill(first.Holder); h.pass(time.Minute) }, "first"},
		"it meets the next limit": {func(h *host, first Need) {
			shutUntil(h.t, h, begin.Add(9*time.Hour), first.ID)
		}, "shut"},
		"the clock is set back an hour": {func(h *host, _ Need) { h.pass(-time.Hour) }, "shut"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.makes("r/0", 1)
			shutUntil(t, h, reset, "r/0")
			require.Equal(t, shut, h.asks(h.need("r/1")).Limit)
			h.pass(2 * time.Hour)
			first := h.need("r/1")
			first.Worker = h.m.start()
			at, cause, err := h.Ask(t.Context(), shut)
			require.NoError(t, err)
			require.Zero(t, at)
			require.Equal(t, run.LimitProbe, cause)
			require.Nil(t, h.asks(first))
			row.then(h, first)
			at, cause, err = h.Ask(t.Context(), shut)
			require.NoError(t, err)
			require.Equal(t, row.wait == "again", !at.IsZero())
			switch no := h.asks(h.need("r/2")); row.wait {
			case "again":
				want := shut
				want.Again = run.Time(h.now.Add(time.Minute))
				require.Equal(t, want, no.Limit)
				require.Equal(t, want.Again, run.Time(at))
			case "shut":
				require.Empty(t, no.Limit.Again)
				require.Equal(t, run.LimitTimer, cause, "the call finds out")
			case "first":
				require.Nil(t, no)
				require.Equal(t, run.LimitProbe, cause)
				require.NotNil(t, h.asks(h.need("r/3")))
			case "open":
				require.Nil(t, no)
				require.Equal(t, run.LimitAccount, cause)
				require.Nil(t, h.asks(h.need("r/3")))
			}
		})
	}
}

// TestCallsOfOneLimitShareIt, and waits for unknown resets grow.
func TestCallsOfOneLimitShareIt(t *testing.T) {
	h := newHost(t)
	require.Equal(t, run.Time(begin.Add(time.Hour)), shutUntil(t, h, time.Time{}, "r/1").Until)
	h.pass(time.Minute)
	require.Equal(t, run.Time(begin.Add(time.Hour)), shutUntil(t, h, time.Time{}, "r/2").Until)
	require.Equal(t, run.Time(begin.Add(2*time.Hour)), shutUntil(t, h, begin.Add(2*time.Hour), "r/3").Until)
	require.Equal(t, run.Time(begin.Add(2*time.Hour)), shutUntil(t, h, begin.Add(time.Hour), "r/4").Until)
	h.pass(2 * time.Hour)
	require.Nil(t, h.asks(h.need("r/5")), "it is the first one")
	s := shutUntil(t, h, time.Time{}, "r/0") // which began before the limit
	require.Nil(t, s.First)
	require.Equal(t, 2, s.Count)
	require.Equal(t, run.Time(h.now.Add(2*time.Hour)), s.Until)
	require.Equal(t, run.Time(begin), s.Since)
	asked := h.need("r/6")
	asked.Now = true
	require.Nil(t, h.asks(asked), "an operator asks")
	require.NoError(t, h.Opened(t.Context(), claude.ID, "r/6"))
	all, err := h.Shut()
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestEachBoundCounts the calls that it is about.
func TestEachBoundCounts(t *testing.T) {
	other := func(n *Need) { n.Account = Account{ID: "fedcba9876543210", Name: "other"} }
	elsewhere := func(n *Need) { n.Pipeline = "q" }
	for name, row := range map[string]struct {
		most     config.AtOnce
		pipeline int
		change   func(n *Need)
		bound    run.AtOnceBound
	}{
		"host":                  {config.AtOnce{Host: 1}, 0, other, run.AtOnceHost},
		"account":               {config.AtOnce{Account: 1}, 0, elsewhere, run.AtOnceAccount},
		"named account":         {config.AtOnce{Account: 9, Accounts: config.Words{"claude=1"}}, 0, elsewhere, run.AtOnceAccount},
		"another account":       {config.AtOnce{Account: 1}, 0, other, ""},
		"pipeline":              {config.AtOnce{}, 1, other, run.AtOncePipeline},
		"another pipeline":      {config.AtOnce{}, 1, elsewhere, ""},
		"none":                  {config.AtOnce{}, 0, func(*Need) {}, ""},
		"the first that counts": {config.AtOnce{Host: 1, Account: 1}, 1, func(*Need) {}, run.AtOnceHost},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, atOnce(row.most))
			require.Nil(t, h.asks(h.need("r/1")))
			n := h.need("r/2")
			n.AtOnce = row.pipeline
			row.change(&n)
			no := h.asks(n)
			require.Equal(t, row.bound == "", no == nil)
			if no != nil {
				require.Equal(t, row.bound, no.Limit.Bound)
				require.Equal(t, 1, no.Limit.Most)
			}
		})
	}
}

// TestCallsWaitInOrder: nothing passes a call that asks in time, except one that has another bound, or that an operator
// asks for.
func TestCallsWaitInOrder(t *testing.T) {
	h := newHost(t, atOnce(config.AtOnce{Account: 1}))
	running := h.need("r/1")
	require.Nil(t, h.asks(running))
	for i, id := range []string{"r/2", "r/3", "r/4"} {
		require.Contains(t, h.asks(h.need(id)).Text, fmt.Sprintf("as number %d of %d: account claude may make 1 call at once",
			i+1, i+1))
	}
	other := h.need("r/9")
	other.Account = Account{ID: "fedcba9876543210", Name: "other"}
	require.Nil(t, h.asks(other))
	order := func() (out []string) {
		all, err := h.Waiting()
		require.NoError(t, err)
		for _, w := range all {
			out = append(out, w.Call)
		}
		return out
	}
	require.Equal(t, []string{"r/2", "r/3", "r/4"}, order())
	h.m.kill(running.Holder)
	require.NotNil(t, h.asks(h.need("r/3")), "r/2 is before it")
	at, cause, err := h.Ask(t.Context(), run.Limit{Kind: run.LimitAtOnce, AccountID: ticket("r/2")})
	require.NoError(t, err)
	require.Zero(t, at)
	require.Equal(t, run.LimitTurn, cause)
	asked := h.need("r/5")
	asked.Now = true
	require.Nil(t, h.asks(asked), "an operator asks")
	now := h.need("r/6")
	now.Now = true
	require.NotNil(t, h.asks(now), "a call runs")
	require.Equal(t, []string{"r/6", "r/2", "r/3", "r/4"}, order())
	h.m.kill(asked.Holder)
	at, _, err = h.Ask(t.Context(), run.Limit{Kind: run.LimitAtOnce, AccountID: ticket("r/2")})
	require.NoError(t, err)
	require.False(t, at.IsZero())
	next := h.need("r/6")
	require.Nil(t, h.asks(next))
	h.m.kill(next.Holder)
	next = h.need("r/2")
	require.Nil(t, h.asks(next))
	h.m.kill(next.Holder)

	h.pass(soonest + overdue)
	require.NotNil(t, h.asks(h.need("r/4")), "r/3 is not overdue yet")
	h.pass(time.Second)
	next = h.need("r/4")
	require.Nil(t, h.asks(next), "r/3 has not asked")
	require.NotNil(t, h.asks(h.need("r/3")))
	require.Equal(t, []string{"r/3"}, order())
	h.m.kill(next.Holder)
	h.pass(2 * stays)
	require.Empty(t, order())
	require.Nil(t, h.asks(h.need("r/7")))
}

// TestWaitDependsOnThePlace and on how long calls take.
func TestWaitDependsOnThePlace(t *testing.T) {
	h := newHost(t, atOnce(config.AtOnce{Host: 2}))
	for i := range 4 { // the mean of calls is a minute
		n := h.need(fmt.Sprintf("r/%d", i))
		require.Nil(t, h.asks(n))
		h.claim(n)
		h.pass(time.Minute)
		h.answer(n, exact(1))
		h.settled(n.ID)
	}
	require.Nil(t, h.asks(h.need("s/1")))
	require.Nil(t, h.asks(h.need("s/2")))
	for i := range 20 {
		want := min(max(time.Duration(i/2)*time.Minute, soonest), latest)
		require.Equal(t, run.Time(h.now.Add(want)), h.asks(h.need(fmt.Sprintf("w/%d", i))).Limit.Again, "place %d", i)
	}
}

// TestHoldersThatEnd free their places at once: killed with SIGKILL, of another boot, and whatever the clock shows.
func TestHoldersThatEnd(t *testing.T) {
	for name, end := range map[string]func(h *host, n *Need){
		"killed": func(h *host, n *Need) { h.m.kill(n.Holder) },
		"another boot": func(_ *host, n *Need) {
			self, err := process.Self()
			require.NoError(t, err)
			self.BootID = "an earlier one"
			n.Holder = self
		},
		"killed, and its store is away":  func(h *host, n *Need) { h.m.kill(n.Holder) },
		"killed, and the clock set back": func(h *host, n *Need) { h.m.kill(n.Holder); h.pass(-time.Hour) },
		"killed, and the clock set on":   func(h *host, n *Need) { h.m.kill(n.Holder); h.pass(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, atOnce(config.AtOnce{Host: 1}))
			if name == "killed, and its store is away" {
				h.Gate = h.program(atOnce(config.AtOnce{Host: 1}), func(o *Options) { o.Open = nil })
			}
			n := h.need("r/1")
			if name == "another boot" {
				end(h, &n)
			}
			_, err := h.Acquire(t.Context(), n)
			require.NoError(t, err)
			end(h, &n)
			require.Nil(t, h.asks(h.need("r/2")))
			require.NotNil(t, h.asks(h.need("r/3")))
		})
	}
}

// TestClockSetBack: calls that run keep their places, and those that wait their order; none is passed, and one that
// never asks again holds up the others no longer than before.
func TestClockSetBack(t *testing.T) {
	h := newHost(t, atOnce(config.AtOnce{Host: 1}))
	running := h.need("r/1")
	require.Nil(t, h.asks(running))
	require.NotNil(t, h.asks(h.need("r/2")))
	require.NotNil(t, h.asks(h.need("r/3")))
	h.pass(-time.Hour)
	require.NotNil(t, h.asks(h.need("r/3")), "the call still runs")
	h.m.kill(running.Holder)
	require.NotNil(t, h.asks(h.need("r/3")), "r/2 is before it")
	h.pass(soonest + overdue + time.Second)
	require.Nil(t, h.asks(h.need("r/3")), "r/2 never asks again")
}

// TestDayIsKeptByTenRuns that ask at once, through losses of the file: what is spent is never more than the budget and
// what the running calls cost more than their mean.
func TestDayIsKeptByTenRuns(t *testing.T) {
	for _, name := range []string{"whole", "deleted", "truncated", "filled with zeros"} {
		t.Run(name, func(t *testing.T) {
			const budget, cost = 12.0, 0.5
			h := newHost(t, perDay(Budget{USD: budget}))
			var group sync.WaitGroup
			var mu sync.Mutex
			made := 0
			for i := range 10 {
				g := h.program(perDay(Budget{USD: budget}))
				group.Go(func() {
					for j := 0; ; j++ {
						n := h.need(fmt.Sprintf("r%d/%d", i, j))
						no, err := g.Acquire(t.Context(), n)
						for errors.Is(err, ErrBusy) {
							no, err = g.Acquire(t.Context(), n)
						}
						if err != nil {
							t.Error(err)
							return
						}
						if no != nil {
							return
						}
						h.claim(n)
						mu.Lock()
						made++
						if hurt := hurts[name]; made == 8 && hurt != nil {
							hurt(t, h.path)
						}
						mu.Unlock()
						h.answer(n, exact(cost))
						if err := g.Settle(t.Context(), h.s, h.s.URL(), n.ID); err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			require.Equal(t, int(budget/cost), made)
			require.InDelta(t, budget, h.used().Known.USD, 1e-9)
			require.Zero(t, h.used().Reserved)
		})
	}
}

// TestDamageAnywhere overwrites each part of a file. Whatever is hurt, calls are decided, and no place is given twice
// that the stores know of.
func TestDamageAnywhere(t *testing.T) {
	h := newHost(t, atOnce(config.AtOnce{Host: 3}))
	for i := range 3 {
		n := h.need(fmt.Sprintf("r/%d", i))
		require.Nil(t, h.asks(n))
		h.claim(n)
	}
	for i := range 40 {
		require.NotNil(t, h.asks(h.need(fmt.Sprintf("w/%02d", i))))
	}
	whole, err := os.ReadFile(h.path)
	require.NoError(t, err)
	const step = 512
	for at := 0; at < len(whole); at += step {
		for _, fill := range []byte{0, 0xff, '{'} {
			hurt := slices.Clone(whole)
			for i := at; i < at+step; i++ {
				hurt[i] = fill
			}
			require.NoError(t, os.WriteFile(h.path, hurt, 0o600))
			no, err := h.Acquire(t.Context(), h.need("new/1"))
			require.NoError(t, err, "%d bytes of %x at %d", step, fill, at)
			require.NotNil(t, no, "%d bytes of %x at %d", step, fill, at)
			if _, err := h.Today(); err != nil {
				require.ErrorAs(t, err, new(*DamageError))
			}
			for _, path := range h.Damaged(begin) {
				require.NoError(t, os.Remove(path))
			}
		}
	}
}
