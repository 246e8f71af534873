package activities

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

func newLedger(t *testing.T) calls.Ledger {
	t.Helper()
	s := must(store.Open(context.Background(), "file://"+t.TempDir()))(t)
	return calls.Ledger{Store: s, Call: "run-1/g0.001.1.-.1"}
}

func TestDeliveryIsClaimedOnce(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	require.NoError(t, l.Claim(ctx, calls.Claim{Version: calls.Version, Host: "here"}, 1))
	require.ErrorIs(t, l.Claim(ctx, calls.Claim{Version: calls.Version, Host: "there"}, 1), calls.ErrTaken)
	require.Len(t, must(l.Claims(ctx))(t), 1)
	require.NoError(t, l.Claim(ctx, calls.Claim{Version: calls.Version}, 2))
}

func TestEndedDeliveryIsNotAwaited(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	self := must(process.Self())(t)
	require.NoError(t, l.Claim(ctx, calls.Claim{Version: calls.Version, Host: "here", Worker: self}, 1))
	require.NoError(t, l.End(ctx, 1, calls.End{}))
	// The owner is this very process: it lives.
	ans := must(newActivities(t, Config{}).awaitOtherWorker(ctx, l, 1, self, self, t.TempDir()))(t)
	require.Nil(t, ans)
}

func TestFirstResultWins(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	require.Nil(t, must(l.Result(ctx))(t))

	won := must(l.Put(ctx, calls.Answer{Version: calls.Version, Delivery: 1, Host: "first"}))(t)
	require.True(t, won)
	won = must(l.Put(ctx, calls.Answer{Version: calls.Version, Delivery: 2, Host: "second"}))(t)
	require.False(t, won)

	require.Equal(t, "first", must(l.Result(ctx))(t).Host)
	require.Contains(t, string(must(l.Store.ReadName(ctx, l.Name("superseded-2")))(t)), `"second"`)
}

func TestSupersededResultIsCounted(t *testing.T) {
	h := newHarness(t, "wait")
	frozen := h.begin(t.Context(), h.acts)
	h.awaitStart(1)
	there := h.worker()
	there.cfg.Host, there.cfg.Scratch = "there", filepath.Join(h.dir, "scratch-there")
	h.answered(calls.Answer{Delivery: 2, Host: "there"}, "I was faster.")
	judged := h.resultOf(there)
	require.Empty(t, judged.Superseded, "nothing has come yet")

	h.letGo()
	thawed := <-frozen
	require.NoError(t, thawed.err)
	require.Equal(t, judged.Reply, thawed.Reply, "the first answer counts")
	next := *h
	next.in.Call = strings.Replace(h.in.Call, ".1.-.1", ".1.-.2", 1)
	require.NotEqual(t, h.in.Call, next.in.Call)
	next.answered(calls.Answer{}, "Next.")
	superseded := next.resultOf(there).Superseded
	require.Len(t, superseded, 1)
	late := superseded[0]
	require.Equal(t, 1, late.Number)
	require.Equal(t, callID(h.in), late.Call)
	require.InDelta(t, 0.25, late.Spend.USD, 1e-9)
	require.Equal(t, &run.Blob{Digest: h.in.Prompt.Digest}, late.Prompt)
	for _, evidence := range []*run.Blob{late.Output, late.Envelope} {
		require.Contains(t, h.text(evidence.Digest), "An answer.")
	}
	next.in.SupersededSeen = 1
	require.Empty(t, next.resultOf(there).Superseded)
}
