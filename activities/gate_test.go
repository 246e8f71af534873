package activities

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// counting is a harness whose worker has a state directory, and so a gate.
func counting(t *testing.T, play string, change ...func(*Config)) *harness {
	t.Helper()
	h := newHarness(t, play)
	h.gated(change...)
	return h
}

// gated sets the gate of the worker, with settings.
func (h *harness) gated(change ...func(*Config)) {
	h.acts.cfg.StateDir = h.dir
	for _, f := range change {
		f(&h.acts.cfg)
	}
	h.acts.gate = h.acts.newGate(diskOf(h.acts.cfg))
}

// spent is what another program reads since yesterday.
func (h *harness) spent() gate.Day {
	h.t.Helper()
	yesterday := func() time.Time { return time.Now().Add(-24 * time.Hour) }
	return must(gate.Open(h.dir, "here", gate.Options{Now: yesterday}).Today())(h.t)
}

func TestCallIsRecordedAtTheGate(t *testing.T) {
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
	no, err := h.acts.gate.Acquire(t.Context(), gate.Need{Call: gate.Call{ID: callID(h.in), Delivery: 1, Run: "run-1",
		Role: "reader", Worker: dead, Holder: dead, Store: h.in.Store}})
	require.NoError(t, err)
	require.Nil(t, no)
	h.leave(dead, dead, envelopeOf("From beyond.")+"\n")
	h.result()
	require.Zero(t, h.spent().Reserved)
	require.InDelta(t, 0.25, h.spent().Known.USD, 1e-9)
}

// TestUnclaimedCallIsReleased: the supervisor does not start, and so nothing was spent.
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
	h := counting(t, "answer", func(c *Config) { c.PerDay = config.PerDay{Calls: 1} })
	h.result()
	h.in.Call = "run-1/g0.002.1.-.2"
	res := h.result()
	now := time.Now()
	midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.Local)
	require.Equal(t, &run.Limit{Kind: run.LimitBudgetDay, Reset: run.Time(midnight)}, res.Limit)
	require.Equal(t, run.CategoryBudgetExceeded, res.Outcome)
	require.True(t, res.Uncalled)
	require.Equal(t, 1, h.started())
	require.Empty(t, h.claims())
	h.in.Call = "run-1/g0.002.1.-.1"
	res = h.result()
	require.Nil(t, res.Limit, "an answer that exists costs nothing")
}

// TestSecondCallOfARoleWaitsForTheFirst: until that ends, it is not known what a call of the role needs.
func TestSecondCallOfARoleWaitsForTheFirst(t *testing.T) {
	h := counting(t, "wait", func(c *Config) { c.PerDay = config.PerDay{USD: 0.25} })
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

// TestCallWaitsForAPlace until the other call has ended. Then its run may make it.
func TestCallWaitsForAPlace(t *testing.T) {
	h := counting(t, "answer", func(c *Config) { c.AtOnce = config.AtOnce{Host: 1} })
	other := gate.Call{ID: "other/1", Delivery: 1, Run: "other", Worker: h.acts.worker, Holder: h.acts.worker}
	no, err := h.acts.gate.Acquire(t.Context(), gate.Need{Call: other})
	require.NoError(t, err)
	require.Nil(t, no)
	res := h.result()
	require.True(t, res.Uncalled)
	require.Equal(t, run.CategoryRateLimit, res.Outcome)
	require.Equal(t, run.LimitAtOnce, res.Limit.Kind)
	require.Empty(t, h.claims(), "nothing was claimed")
	ask := func() contract.AskResult {
		return must(h.acts.Ask(t.Context(), contract.AskInput{RunID: "run-1", Limits: []run.Limit{*res.Limit}}))(t)
	}
	require.NotEmpty(t, ask().Again)
	require.NoError(t, h.acts.gate.Release(t.Context(), other))
	require.Equal(t, contract.AskResult{Cause: run.LimitTurn, Limit: *res.Limit}, ask())
	h.accepted()
	require.Empty(t, must(h.acts.gate.Waiting())(t))
}

// TestLimitShutsTheAccount for all calls until its reset, except for one that an operator asks for.
func TestLimitShutsTheAccount(t *testing.T) {
	h := counting(t, "answer")
	h.accepted()
	acc := gate.Account{ID: h.claims()[0].Account, Name: h.claims()[0].AccountName}
	reset := time.Now().Add(time.Hour)
	must(h.acts.gate.Close(t.Context(), acc, gate.Limit{Kind: run.LimitPlan, Until: reset}))(t)
	require.Equal(t, []AccountLimit{{acc.Name, run.LimitPlan, run.Time(reset)}}, h.acts.Limits())
	h.in.Call = "run-1/g0.002.1.-.2"
	res := h.result()
	require.Equal(t, &run.Limit{Kind: run.LimitPlan, Reset: run.Time(reset), Account: acc.Name, AccountID: acc.ID}, res.Limit)
	require.True(t, res.Uncalled)
	h.in.Now = true
	h.accepted()
	require.Empty(t, h.acts.Limits(), "its provider has answered")
}

// TestFullWindowShutsTheAccount: the answer counts, and the next call waits for the reset.
func TestFullWindowShutsTheAccount(t *testing.T) {
	h := counting(t, "full")
	h.accepted()
	require.Len(t, h.acts.Limits(), 1)
	h.in.Call = "run-1/g0.002.1.-.2"
	res := h.result()
	require.True(t, res.Uncalled)
	require.Equal(t, run.LimitPlan, res.Limit.Kind)
	reset := must(time.Parse(run.TimeFormat, res.Limit.Reset))(t)
	require.InDelta(t, time.Hour.Minutes(), time.Until(reset).Minutes(), 1)
}

func TestBoundOfAnAccount(t *testing.T) {
	most := config.AtOnce{Account: 3, Accounts: config.Words{"work=1", "free (3f2a91bc)=0"}}
	for account, bound := range map[string]int{"work": 1, "free (3f2a91bc)": 0, "other": 3} {
		require.Equal(t, bound, most.Of(account), account)
	}
}
