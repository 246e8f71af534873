package activities

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

func newLedger(t *testing.T) calls.Ledger {
	t.Helper()
	s, err := store.Open(context.Background(), "file://"+t.TempDir())
	require.NoError(t, err)
	return calls.Ledger{Store: s, Call: "run-1/g0.001.1.-.1"}
}

func TestDeliveryIsClaimedOnce(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	errs := make(chan error, 8)
	for range 8 {
		go func() { errs <- l.Claim(ctx, calls.Claim{Version: calls.Version, Call: l.Call, Host: "here"}, 1) }()
	}
	won := 0
	for range 8 {
		if err := <-errs; err == nil {
			won++
		} else {
			require.ErrorIs(t, err, calls.ErrTaken)
		}
	}
	require.Equal(t, 1, won)
	claims, err := l.Claims(ctx)
	require.NoError(t, err)
	require.Len(t, claims, 1)
	require.NoError(t, l.Claim(ctx, calls.Claim{Version: calls.Version}, 2))
}

func TestEndedDeliveryIsNotAwaited(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	self, err := process.Self()
	require.NoError(t, err)
	require.NoError(t, l.Claim(ctx, calls.Claim{Version: calls.Version, Host: "here", Worker: self}, 1))
	require.NoError(t, l.End(ctx, 1, calls.End{}))
	// The owner is this very process: it lives.
	ans, err := newActivities(t, Config{}).awaitOtherWorker(ctx, l, 1, self, self, t.TempDir())
	require.NoError(t, err)
	require.Nil(t, ans)
}

func TestFirstResultWins(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	none, err := l.Result(ctx)
	require.NoError(t, err)
	require.Nil(t, none)

	won, err := l.Put(ctx, calls.Answer{Version: calls.Version, Delivery: 1, Host: "first"})
	require.NoError(t, err)
	require.True(t, won)
	won, err = l.Put(ctx, calls.Answer{Version: calls.Version, Delivery: 2, Host: "second"})
	require.NoError(t, err)
	require.False(t, won)

	got, err := l.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, "first", got.Host)
	kept, err := l.Store.ReadName(ctx, l.Name("superseded-2"))
	require.NoError(t, err)
	require.Contains(t, string(kept), `"second"`)
}

func TestSupersededResultIsCounted(t *testing.T) {
	ctx := context.Background()
	h := newHarness(t, "wait")
	type outcome struct {
		res contract.PassResult
		err error
	}
	frozen := make(chan outcome, 1)
	go func() {
		res, err := h.pass(ctx)
		frozen <- outcome{res, err}
	}()
	h.awaitStart(1)
	there := h.worker()
	there.cfg.Host, there.cfg.Scratch = "there", filepath.Join(h.dir, "scratch-there")
	won, err := h.ledger().Put(ctx, calls.Answer{
		Version: calls.Version, Call: callID(h.in), Delivery: 2, Host: "there",
		Stdout: h.put(envelopeOf("I was faster.")),
		Stderr: h.put(""),
	})
	require.NoError(t, err)
	require.True(t, won)
	judged, err := h.passOf(ctx, there)
	require.NoError(t, err)
	require.Empty(t, judged.Superseded, "nothing has come yet")

	h.letGo()
	thawed := <-frozen
	require.NoError(t, thawed.err)
	require.Equal(t, judged.Reply, thawed.res.Reply, "the first answer counts")
	next := h.in
	next.Call = strings.Replace(next.Call, ".1.-.1", ".1.-.2", 1)
	require.NotEqual(t, h.in.Call, next.Call)
	_, err = calls.Ledger{
		Store: h.s, Call: callID(next),
	}.Put(ctx, calls.Answer{
		Version: calls.Version, Call: callID(next), Stdout: h.put(envelopeOf("Next.")), Stderr: h.put(""),
	})
	require.NoError(t, err)
	late := func(known int) []contract.SupersededResult {
		in := next
		in.SupersededSeen = known
		h.in, in = in, h.in
		defer func() { h.in = in }()
		res, err := h.passOf(ctx, there)
		require.NoError(t, err)
		return res.Superseded
	}
	require.Len(t, late(0), 1)
	require.Equal(t, 1, late(0)[0].Number)
	require.Equal(t, callID(h.in), late(0)[0].Call)
	require.InDelta(t, 0.25, late(0)[0].Spend.USD, 1e-9)
	require.Empty(t, late(1))
	require.Equal(t, &run.Blob{Digest: h.in.Prompt.Digest}, late(0)[0].Prompt)
	for _, b := range []*run.Blob{late(0)[0].Output, late(0)[0].Envelope} {
		raw, err := blobs.Get(ctx, h.s, b.Digest)
		require.NoError(t, err)
		require.Contains(t, string(raw), "An answer.", "its evidence comes along")
	}
}
