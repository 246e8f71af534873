package costs

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
)

// TestReleasedDeliveryIsReservedAgain: only the delivery that this process has ended is released, and a new attempt
// reserves it again.
func TestReleasedDeliveryIsReservedAgain(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	settle := func(mine int) int {
		require.NoError(t, h.Settle(t.Context(), h.s, "r/1", mine))
		return h.used().Reserved.Calls
	}
	require.Equal(t, 1, settle(0), "another process works on it")
	require.Equal(t, 1, settle(2), "another delivery")
	require.NoError(t, h.program().CountEnded(t.Context(), h.now.Add(-time.Hour)))
	reader := h.program()
	require.NoError(t, reader.CountEnded(t.Context(), h.now.Add(-time.Hour)))
	day, err := reader.Today()
	require.NoError(t, err)
	require.Equal(t, 1, day.Reserved.Calls, "it may still be claimed")
	require.Zero(t, settle(1))
	require.Zero(t, settle(1))
	require.Len(t, h.lines(), 2)
	require.Nil(t, h.reserve("r/1", Budget{}))
	require.Equal(t, 1, h.used().Reserved.Calls)
	h.claim("r/1", 1, true)
	require.Equal(t, 1, settle(1), "it is running")
	require.Len(t, h.lines(), 3, "nothing is written of a call that runs")
	h.answer("r/1", 1, exact(2))
	require.Zero(t, settle(1))
	require.InDelta(t, 2, h.used().USD, 1e-9)
}

// TestTwoWorkersReserveOneDelivery: the server gave up a delivery whose worker continues until it notices, and another
// worker makes the same one. What the first releases does not hide what the second spends.
func TestTwoWorkersReserveOneDelivery(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	other := h.call("r/1")
	var err error
	other.Worker, err = process.Of(os.Getppid())
	require.NoError(t, err)
	_, _, err = h.Reserve(t.Context(), other, Terms{})
	require.NoError(t, err)
	require.NoError(t, h.Settle(t.Context(), h.s, "r/1", 1))
	require.Equal(t, 1, h.used().Reserved.Calls, "the second worker is about to claim it")

	require.Nil(t, h.reserve("r/1", Budget{})) // the first once more, and ends before the second claims it
	require.NoError(t, h.Settle(t.Context(), h.s, "r/1", 1))
	require.Zero(t, h.used().Reserved.Calls)
	h.claim("r/1", 1, false)
	require.NoError(t, h.of("r/1").End(t.Context(), 1, calls.End{Spend: &run.Spend{Known: run.CostUnknown}}))
	h.settled("r/1")
	require.Equal(t, 1, h.used().Unknown)
	require.Zero(t, h.used().Reserved.Calls)
}

// TestSettleLooksAtOneCall, however long ago it was reserved, and at each part of its costs once.
func TestSettleLooksAtOneCall(t *testing.T) {
	h := newHost(t)
	for _, id := range []string{"r/1", "r/2"} {
		require.Nil(t, h.reserve(id, Budget{}))
		h.claim(id, 1, true)
		cost := exact(0.5)
		require.NoError(t, h.of(id).End(t.Context(), 1, calls.End{Spend: &cost}))
		h.answer(id, 1, exact(2))
	}
	reserved := h.now
	h.now = h.now.Add(30 * 24 * time.Hour)
	h.settled("r/1")
	sum := h.since(reserved.Add(-time.Hour))
	require.Equal(t, 2.0, sum.USD)
	require.Equal(t, 2, sum.Calls)
	require.Equal(t, 1, sum.Reserved.Calls)
	lines := h.lines()
	require.Len(t, lines, 4)
	for i, line := range lines {
		var r row
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Equal(t, i+1, r.N)
	}
	again := strings.Replace(lines[3], `"n":4`, `"n":5`, 1)
	require.NoError(t, os.WriteFile(h.file(), []byte(strings.Join(lines, "")+again), 0o600))
	require.Equal(t, 2.0, h.since(reserved.Add(-time.Hour)).USD, "the same part twice")
	found, err := h.program().Damages(reserved.Add(-time.Hour))
	require.NoError(t, err)
	require.Empty(t, found, "the same part twice")
}

// TestCallOfLostSupervisorIsLost: a call whose supervisor is gone is lost, unless its worker is storing the answer.
func TestCallOfLostSupervisorIsLost(t *testing.T) {
	for name, row := range map[string]struct {
		exit, worker bool
		scratch      string
		open         bool
	}{
		"the worker stores the answer": {true, true, "scratch", true},
		"the worker is gone too":       {true, false, "scratch", false},
		"no exit was recorded":         {false, true, "scratch", false},
		"an exit of another call":      {true, true, "other", false},
	} {
		h := newHost(t)
		require.Nil(t, h.reserve("r/1", Budget{USD: 9}))
		c := calls.Claim{Version: 1, Call: "r/1", Host: "here", Role: "writer", At: run.Time(h.now),
			Scratch: filepath.Join(h.dir, row.scratch)}
		c.Supervisor.PID, c.Worker.PID = 1<<30, 1<<30
		if row.worker {
			c.Worker = h.call("").Worker
		}
		require.NoError(t, h.of("r/1").Claim(t.Context(), c, 1))
		if row.exit {
			dir := filepath.Join(h.dir, "scratch", "1")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			raw, err := json.Marshal(map[string]any{"version": supervisor.Version})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, supervisor.ExitFile), raw, 0o600))
		}
		h.settled("r/1")
		require.Equal(t, map[bool]int{true: 1}[row.open], h.used().Reserved.Calls, name)
		require.Equal(t, map[bool]int{false: 1}[row.open], h.used().Unknown, name)
	}
}

// TestAnswerStoredByAnotherDelivery: at any moment of a settlement by another call, the worker stores the answer and
// removes the folder of its call. The call is not lost, and costs what it costs.
func TestAnswerStoredByAnotherDelivery(t *testing.T) {
	moment := 0
	for stored := true; stored; {
		moment++
		h := newHost(t)
		require.Nil(t, h.reserve("r/1", Budget{}))
		dir := filepath.Join(h.dir, "scratch")
		c := calls.Claim{Version: 1, Call: "r/1", Host: "here", Role: "writer", At: run.Time(h.now), Scratch: dir}
		c.Supervisor.PID, c.Worker = 1<<30, h.call("").Worker
		require.NoError(t, h.of("r/1").Claim(t.Context(), c, 1))
		exit := filepath.Join(dir, "1", supervisor.ExitFile)
		require.NoError(t, os.MkdirAll(filepath.Dir(exit), 0o700))
		raw, err := json.Marshal(map[string]any{"version": supervisor.Version})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(exit, raw, 0o600))
		now := h.opt.Now
		at := 0
		stored = false
		h.opt.Now = func() time.Time {
			if at++; at == moment {
				stored = true
				h.answer("r/1", 1, exact(2))
				require.NoError(t, os.RemoveAll(dir))
			}
			return now()
		}
		require.NoError(t, h.settleAll(t))
		h.opt.Now = now
		h.settled("r/1")
		require.Len(t, h.lines(), map[bool]int{false: 1, true: 2}[stored], "moment %d", moment)
		require.InDelta(t, map[bool]float64{true: 2}[stored], h.used().USD, 1e-9)
	}
	require.Greater(t, moment, 3, "one moment is between two reads of the store")
}

// stores opens stores by their URLs; one that it lacks is away.
type stores map[string]*store.Store

func (s stores) open(_ context.Context, url string) (*store.Store, error) {
	if one := s[url]; one != nil {
		return one, nil
	}
	return nil, errors.New("it is away")
}

// twoStores is a host with a call in each of two stores.
func twoStores(t *testing.T) (*host, stores) {
	t.Helper()
	h := newHost(t)
	first, all := h.s, stores{}
	second, err := store.Open(t.Context(), "file://"+filepath.Join(h.dir, "second"))
	require.NoError(t, err)
	all[first.URL()], all[second.URL()] = first, second
	h.opt.Open = all.open
	for id, s := range map[string]*store.Store{"a/1": second, "b/1": first} {
		h.s = s
		require.Nil(t, h.reserve(id, Budget{}))
		h.claim(id, 1, false)
		h.answer(id, 1, exact(2))
	}
	return h, all
}

// TestUnavailableStore leaves its calls open, and those of other stores are settled.
func TestUnavailableStore(t *testing.T) {
	h, all := twoStores(t)
	for url := range all {
		if strings.HasSuffix(url, "/second") {
			delete(all, url)
		}
	}
	reader := h.program()
	reader.opt.Open = all.open
	require.NoError(t, reader.CountEnded(t.Context(), h.now.Add(-time.Hour)))
	for _, l := range []*Ledger{reader, h.Ledger} {
		if l == h.Ledger {
			require.NoError(t, l.settleAll(t))
		}
		day, err := l.Today()
		require.NoError(t, err)
		require.Equal(t, 2.0, day.USD)
		require.Equal(t, 1, day.Calls)
		require.Equal(t, 1, day.Reserved.Calls)
	}
	none := h.program()
	none.opt.Open = nil
	require.NoError(t, none.CountEnded(t.Context(), h.now.Add(-time.Hour)))
	require.NoError(t, none.settleAll(t))
	day, err := none.Today()
	require.NoError(t, err)
	require.Equal(t, 1, day.Reserved.Calls)
}

// TestDamageIsRestoredFromAllStores that the rest of the file names, and the store of the call; a store that is away is
// named, and no other store's calls are lost.
func TestDamageIsRestoredFromAllStores(t *testing.T) {
	for _, away := range []bool{false, true} {
		h, all := twoStores(t)
		require.NoError(t, h.settleAll(t))
		lines := h.lines()
		require.Len(t, lines, 4)
		for i, line := range lines { // only the reservation of the second store's call remains
			if !strings.Contains(line, `"call":"a/1"`) || strings.Contains(line, `"kind":"cost"`) {
				lines[i] = strings.Repeat("x", 9) + "\n"
			}
		}
		require.NoError(t, os.WriteFile(h.file(), []byte(strings.Join(lines, "")), 0o600))
		first, second := h.s, ""
		for url := range all {
			if strings.HasSuffix(url, "/second") {
				second = url
			} else {
				first = all[url]
			}
		}
		if away {
			delete(all, second)
		}
		h.s, h.Ledger = first, h.program()
		h.opt.Open = all.open
		require.Nil(t, h.reserve("c/1", Budget{}))
		damages := h.damages()
		require.Len(t, damages, 1)
		require.Equal(t, 3, damages[0].Lines)
		require.Equal(t, 1, damages[0].Restored)
		require.False(t, damages[0].Open)
		if away {
			require.Equal(t, second+": it is away", damages[0].Problem)
			require.InDelta(t, 2, h.used().USD, 1e-9)
		} else {
			require.Empty(t, damages[0].Problem)
			require.InDelta(t, 4, h.used().USD, 1e-9)
		}
	}
}

// TestRestoredCallsAreThoseOfHostAndDay: a store has the calls of other hosts, days and commands too.
func TestRestoredCallsAreThoseOfHostAndDay(t *testing.T) {
	h := newHost(t)
	worker := h.call("").Worker
	claim := func(id string, change func(*calls.Claim)) {
		c := calls.Claim{Version: 1, Call: id, Host: "here", Role: "writer", Pipeline: "p", At: run.Time(h.now),
			Account: "0123456789abcdef", AccountName: "claude", Worker: worker, Deadline: "soon"}
		c.Supervisor.PID = 1 << 30
		change(&c)
		require.NoError(t, h.of(id).Claim(t.Context(), c, 1))
		h.answer(id, 1, exact(2))
	}
	claim("r/mine", func(*calls.Claim) {})
	claim("r/host", func(c *calls.Claim) { c.Host = "there" })
	claim("r/command", func(c *calls.Claim) { c.Role = "" })
	claim("r/day", func(c *calls.Claim) { c.At = run.Time(h.now.Add(-24 * time.Hour)) })
	require.NoError(t, os.MkdirAll(filepath.Dir(h.file()), 0o700))
	require.NoError(t, os.WriteFile(h.file(), []byte("x\n"), 0o600))
	require.Nil(t, h.reserve("r/new", Budget{}))
	var rows []row
	for _, line := range h.lines() {
		r, err := decode([]byte(line))
		require.NoError(t, err)
		rows = append(rows, r)
	}
	require.Len(t, rows, 4)
	require.Equal(t, &Call{ID: "r/mine", Delivery: 1, Run: "r", Pipeline: "p", Role: "writer", Store: h.s.URL(),
		Account: accounts.Account{ID: "0123456789abcdef", Name: "claude"}, Worker: worker}, rows[0].Call)
	require.Equal(t, []string{kindReserved, kindCost, kindDamaged, kindReserved},
		[]string{rows[0].Kind, rows[1].Kind, rows[2].Kind, rows[3].Kind})
	require.Equal(t, 1, rows[2].Damage.Restored)
	require.NotEqual(t, process.Identity{}, rows[0].Call.Worker)
}

// TestDamageOfTheDayBefore: midnight of the host is another day in UTC; its file is restored from the call's store.
func TestDamageOfTheDayBefore(t *testing.T) {
	h := newHost(t)
	h.opt.Zone = time.FixedZone("west", -8*3600)
	all := stores{h.s.URL(): h.s}
	h.opt.Open = all.open
	h.claim("r/1", 1, false)
	h.answer("r/1", 1, exact(2))
	require.NoError(t, os.MkdirAll(filepath.Dir(h.file()), 0o700))
	require.NoError(t, os.WriteFile(h.file(), []byte("x\n"), 0o600))
	h.now = time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC) // 18:00 on the 25th
	require.NotNil(t, h.reserve("r/2", Budget{USD: 3}))
	day, err := h.Today()
	require.NoError(t, err)
	require.InDelta(t, 2, day.USD, 1e-9)
}
