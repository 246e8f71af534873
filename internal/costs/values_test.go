package costs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/accounts"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/run"
)

func TestBudgetOfDay(t *testing.T) {
	d := Day{USD: 3.2, Tokens: 120, Calls: 12, Reserved: Budget{USD: 0.5, Tokens: 30, Calls: 1}}
	for name, row := range map[string]struct {
		budget Budget
		call   Call
		left   Budget
		covers bool
		spent  bool
		text   string
		short  string
	}{
		"no bound": {Budget{}, Call{USD: 9, Tokens: 9}, Budget{}, true, false, "reserved: by 1 running call", ""},
		"dollars": {Budget{USD: 10}, Call{USD: 6.3}, Budget{USD: 6.3}, true, false,
			"$3.20 of $10.00, reserved: $0.50 by 1 running call", ""},
		"too few dollars": {Budget{USD: 10}, Call{USD: 6.31, Tokens: 900}, Budget{USD: 6.3}, false, false,
			"$3.20 of $10.00, reserved: $0.50 by 1 running call", "; it needs about $6.31"},
		"no dollar": {Budget{USD: 3.7}, Call{}, Budget{}, false, true,
			"$3.20 of $3.70, reserved: $0.50 by 1 running call", ""},
		"fewer than none": {Budget{USD: 1}, Call{}, Budget{}, false, true,
			"$3.20 of $1.00, reserved: $0.50 by 1 running call", ""},
		"tokens": {Budget{Tokens: 200}, Call{Tokens: 50, USD: 99}, Budget{Tokens: 50}, true, false,
			"120 of 200 tokens, reserved: 30 tokens by 1 running call", ""},
		"too few tokens": {Budget{Tokens: 200}, Call{Tokens: 51}, Budget{Tokens: 50}, false, false,
			"120 of 200 tokens, reserved: 30 tokens by 1 running call", "; it needs about 51 tokens"},
		"no token": {Budget{Tokens: 150}, Call{}, Budget{}, false, true,
			"120 of 150 tokens, reserved: 30 tokens by 1 running call", ""},
		"calls": {Budget{Calls: 14}, Call{}, Budget{Calls: 1}, true, false, "12 of 14 calls, reserved: by 1 running call",
			""},
		"no call": {Budget{Calls: 13}, Call{USD: 1, Tokens: 1}, Budget{}, false, true,
			"12 of 13 calls, reserved: by 1 running call", ""},
	} {
		require.Equal(t, row.left, d.Left(row.budget), name)
		require.Equal(t, row.covers, d.covers(row.budget, row.call), name)
		require.Equal(t, row.spent, d.Spent(row.budget), name)
		require.Equal(t, row.text, d.Text(row.budget), name)
		require.Equal(t, "the budget of the day does not cover the call: "+row.text+row.short,
			Short{row.budget, d, row.call}.Text(), name)
	}
	require.Equal(t, "≥ $1.00 (2 calls not fully known) of $5.00, 0 of 1 call",
		Day{USD: 1, Unknown: 2}.Text(Budget{USD: 5, Calls: 1}))
	require.True(t, Budget{Calls: 1}.Set())
	require.False(t, Budget{}.Set())
}

func spent(s run.Spend) part { return part{name: "r", spend: &s} }

// TestUseOfDay counts deliveries in each state.
func TestUseOfDay(t *testing.T) {
	partly := run.Spend{USD: 0.5, Known: run.CostAtLeast, Tokens: run.Tokens{Input: 3}}
	unknown := run.Spend{Known: run.CostUnknown}
	call := Call{USD: 2, Tokens: 50}
	for name, row := range map[string]struct {
		record record
		want   Day
		open   bool
		more   bool // of its costs may become known
	}{
		"open":     {record{Call: call}, Day{Reserved: Budget{USD: 2, Tokens: 50, Calls: 1}}, true, true},
		"released": {record{Call: call, released: true}, Day{}, false, true},
		"lost":     {record{Call: call, lost: true}, Day{USD: 2, Tokens: 50, Calls: 1, Unknown: 1}, false, true},
		"settled":  {record{Call: call, parts: []part{spent(exact(3))}}, Day{USD: 3, Tokens: 10, Calls: 1}, false, false},
		"unknown": {record{Call: call, parts: []part{spent(unknown)}}, Day{USD: 2, Tokens: 50, Calls: 1, Unknown: 1},
			false, false},
		"in part": {record{Call: call, parts: []part{spent(partly)}}, Day{USD: 2, Tokens: 50, Calls: 1, Unknown: 1}, false,
			false},
		"no model": {record{Call: call, parts: []part{{name: "e1"}}}, Day{}, false, true},
		"two parts": {record{Call: call, parts: []part{{"e1", &partly}, spent(exact(3))}},
			Day{USD: 3.5, Tokens: 50, Calls: 2, Unknown: 1}, false, false},
		"lost, then an answer": {record{Call: call, lost: true, parts: []part{spent(exact(1))}},
			Day{USD: 1, Tokens: 10, Calls: 1}, false, false},
	} {
		var d Day
		d.add(&row.record)
		row.want.Known = d.Known // see TestUnknownCostCountsAsReserved
		require.Equal(t, row.want, d, name)
		require.Equal(t, row.open, row.record.open(), name)
		require.Equal(t, row.more, row.record.unsettled(), name)
	}
	r := record{parts: []part{{name: "e1"}, {name: "r"}}}
	require.True(t, r.has("e1") && r.has("r"))
	require.False(t, r.has("s1"))
	covers := Day{Unknown: 1, Known: run.Totals{Unknown: 1}}
	covers.add(&record{parts: []part{spent(run.Spend{USD: 1, Known: run.CostExact, Covers: 1})}})
	covers.Known = run.Totals{}
	require.Equal(t, Day{USD: 1, Calls: 1}, covers, "the cost of the earlier call is known now")
}

// TestNeedOfCalls takes the mean of the nearest calls that have a known cost.
func TestNeedOfCalls(t *testing.T) {
	h := newHost(t)
	add := func(id, pipeline, role string, s run.Spend) {
		c := h.call(id)
		c.Pipeline, c.Role = pipeline, role
		_, _, err := h.Reserve(t.Context(), c, Terms{})
		require.NoError(t, err)
		h.claim(id, 1, true)
		h.answer(id, 1, s)
		h.settled(id)
	}
	need := func(pipeline, role string) Call {
		c := Call{Pipeline: pipeline, Role: role}
		require.NoError(t, h.needs(&c, Budget{USD: 7, Tokens: 70}))
		return c
	}
	cost := func(usd float64, tokens int64) run.Spend {
		return run.Spend{USD: usd, Known: run.CostExact, Tokens: run.Tokens{Input: tokens, Output: tokens}}
	}
	add("a/1", "p", "writer", cost(1, 10))
	add("a/2", "p", "writer", cost(2, 20))
	add("a/3", "p", "writer", run.Spend{USD: 90, Known: run.CostAtLeast})
	add("a/4", "q", "writer", cost(6, 30))
	add("a/5", "p", "tester", cost(5, 50))
	require.Equal(t, Call{Pipeline: "p", Role: "writer", USD: 1.5, Tokens: 30}, need("p", "writer"))
	require.Equal(t, Call{Pipeline: "q", Role: "writer", USD: 6, Tokens: 60}, need("q", "writer"))
	require.Equal(t, Call{Pipeline: "x", Role: "writer", USD: 3, Tokens: 40}, need("x", "writer"), "of all pipelines")
	require.Equal(t, Call{Pipeline: "p", Role: "new", USD: 7, Tokens: 70}, need("p", "new"))
	h.now = h.now.Add(8 * 24 * time.Hour)
	require.Equal(t, 7.0, need("p", "writer").USD, "older calls do not count")
	c := Call{Role: "new"}
	require.NoError(t, h.needs(&c, Budget{}))
	require.True(t, c.Unknown)
	require.NoError(t, h.needs(&c, Budget{Tokens: 1}))
	require.False(t, c.Unknown)
}

func TestLinesOfLedger(t *testing.T) {
	const at = `"at":"2026-11-25T10:00:00.000Z"`
	for line, want := range map[string]string{
		`{"n":1,"v":1,` + at + `,"kind":"reserved","reserved":{"call":"r/1"}}`:         "",
		`{"n":2,` + at + `,"kind":"reserved","reserved":{"run":"r"}}`:                  "line 2 is not a line of a ledger",
		`{"n":3,` + at + `,"kind":"reserved"}`:                                         "line 3 is not a line of a ledger",
		`{"n":4,` + at + `,"kind":"cost","of":{"call":"r/1","delivery":1},"part":"r"}`: "",
		`{"n":5,` + at + `,"kind":"cost","of":{"call":"r/1"}}`:                         "line 5 is not a line of a ledger",
		`{"n":6,` + at + `,"kind":"cost","part":"r"}`:                                  "line 6 is not a line of a ledger",
		`{"n":7,` + at + `,"kind":"released","of":{"call":"r/1"}}`:                     "",
		`{"n":8,` + at + `,"kind":"ended"}`:                                            "line 8 is not a line of a ledger",
		`{"n":9,` + at + `,"kind":"damaged","damage":{"day":"d"}}`:                     "",
		`{"n":10,` + at + `,"kind":"damaged"}`:                                         "line 10 is not a line of a ledger",
		`{"n":11,` + at + `,"kind":"other","of":{"call":"r/1"}}`:                       "line 11 is not a line of a ledger",
		`{"n":12,"at":"soon","kind":"ended","of":{"call":"r/1"}}`:                      "line 12 is not a line of a ledger",
		`{"n":13,"v":2,` + at + `,"kind":"new"}`:                                       errNewer.Error(),
		`{`:                                                                            "unexpected end of JSON input",
	} {
		_, err := decode([]byte(line))
		if want == "" {
			require.NoError(t, err, line)
		} else {
			require.EqualError(t, err, want, line)
		}
	}
	all, rest := lines([]byte("a\n\nb\nc"))
	require.Equal(t, "[a  b] c", "["+string(all[0])+" "+string(all[1])+" "+string(all[2])+"] "+string(rest))
	all, rest = lines([]byte("a\n"))
	require.Len(t, all, 1)
	require.Empty(t, rest)
	for want, d := range map[string]Damage{
		"These costs are incomplete. The next call of that day restores f from the stores.": {Open: true,
			Problem: "p"},
		"Costs may be incomplete, because a store could not be read: p. The damaged file is f.":       {Problem: "p"},
		"It was restored: 2 calls. Only costs of removed runs may be missing. The damaged file is f.": {Restored: 2},
	} {
		d.Day, d.File, d.Lines = "2026-11-25", "f", 1
		require.Equal(t, "The ledger of 2026-11-25 (UTC) was damaged: 1 line could not be read. "+want, d.Text())
	}
}

// TestFileHasWhatWasReserved reads the lines that calls leave.
func TestFileHasWhatWasReserved(t *testing.T) {
	h := newHost(t)
	c := h.call("r/1")
	c.Delivery = 3
	_, _, err := h.Reserve(t.Context(), c, Terms{})
	require.NoError(t, err)
	_, _, err = h.Reserve(t.Context(), c, Terms{PerDay: Budget{USD: 0.01}, PerCall: Budget{USD: 1}})
	require.NoError(t, err, "it is reserved already")
	h.claim("r/1", 3, true)
	cost := run.Spend{USD: 1.5, Known: run.CostExact, Model: "m", Prices: []run.ModelPrice{{Model: "m"}}}
	h.now = h.now.Add(time.Minute)
	h.answer("r/1", 3, cost)
	h.settled("r/1")
	raw, err := os.ReadFile(h.file())
	require.NoError(t, err)
	texts := strings.Split(strings.TrimSpace(string(raw)), "\n")
	require.Len(t, texts, 2)
	var reserved, settled row
	require.NoError(t, json.Unmarshal([]byte(texts[0]), &reserved))
	require.NoError(t, json.Unmarshal([]byte(texts[1]), &settled))
	require.Equal(t, row{N: 1, Version: 1, At: "2026-11-25T10:00:00.000Z", Kind: kindReserved, Call: &c}, reserved)
	require.Equal(t, accounts.Account{ID: "0123456789abcdef", Name: "claude"}, reserved.Call.Account)
	cost.Prices = nil
	require.Equal(t, 2, settled.N)
	require.Equal(t, "2026-11-25T10:01:00.000Z", settled.At)
	require.Equal(t, kindCost, settled.Kind)
	require.Equal(t, key{"r/1", 3}, settled.Of)
	require.Equal(t, &cost, settled.Spend)
	info, err := os.Stat(h.file())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.WriteFile(h.file()+".bak", nil, 0o600))
	require.NoError(t, os.WriteFile(h.path("notes"), nil, 0o600))
	names, err := h.names(h.now.Add(-24 * time.Hour))
	require.NoError(t, err)
	require.Equal(t, []string{"2026-11-25"}, names)
	names, err = h.names(h.now.Add(24 * time.Hour))
	require.NoError(t, err)
	require.Empty(t, names)
}

// TestCallOfAnotherHostCostsNothingHere: the host that claimed the delivery counts it.
func TestCallOfAnotherHostCostsNothingHere(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	c := calls.Claim{Version: 1, Call: "r/1", Host: "there", At: run.Time(h.now)}
	c.Supervisor.PID = 1 << 30
	require.NoError(t, h.of("r/1").Claim(t.Context(), c, 1))
	h.settled("r/1")
	d := h.used()
	require.Zero(t, d.Calls+d.Unknown+d.Reserved.Calls)
	require.Zero(t, d.USD)
}

// TestAnswerOfAnotherRunCostsNothing: a replay takes the recorded answer, which was paid for when it was made.
func TestAnswerOfAnotherRunCostsNothing(t *testing.T) {
	h := newHost(t)
	for id, source := range map[string]string{"r/1": "r-0/1", "r/2": ""} {
		require.Nil(t, h.reserve(id, Budget{}))
		h.claim(id, 1, true)
		_, err := h.of(id).Put(t.Context(), calls.Answer{Version: 2, Call: id, Delivery: 1, Host: "here", Source: source,
			Read: calls.Reading{Spend: exact(2)}})
		require.NoError(t, err)
		h.settled(id)
	}
	d := h.used()
	require.Equal(t, 2.0, d.USD)
	require.Equal(t, 1, d.Calls)
	require.Equal(t, 0, d.Reserved.Calls)
}
