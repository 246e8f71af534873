package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/store"
)

func newLedger(t *testing.T) ledger {
	t.Helper()
	s, err := store.Open(context.Background(), "file://"+t.TempDir())
	require.NoError(t, err)
	return ledger{s: s, call: "run-1/g0.001.1.-.1"}
}

func TestOneWorkerTakesADelivery(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	errs := make(chan error, 8)
	for range 8 {
		go func() { errs <- l.claim(ctx, claim{Version: callVersion, Call: l.call, Host: "here"}, 1) }()
	}
	won := 0
	for range 8 {
		if err := <-errs; err == nil {
			won++
		} else {
			require.ErrorIs(t, err, errTaken)
		}
	}
	require.Equal(t, 1, won)
	claims, err := l.claims(ctx)
	require.NoError(t, err)
	require.Len(t, claims, 1)
	require.NoError(t, l.claim(ctx, claim{Version: callVersion}, 2))
}

func TestADeliveryThatEndedIsNotWaitedFor(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	self, err := process.Self()
	require.NoError(t, err)
	require.NoError(t, l.claim(ctx, claim{Version: callVersion, Host: "here", Worker: self}, 1))
	require.NoError(t, l.end(ctx, 1))
	ans, err := waitForOther(ctx, l, 1, self) // this very process: it lives
	require.NoError(t, err)
	require.Nil(t, ans)
}

func TestTheFirstResultWinsAndTheSecondIsKept(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	none, err := l.result(ctx)
	require.NoError(t, err)
	require.Nil(t, none)

	won, err := l.put(ctx, answer{Version: callVersion, Delivery: 1, Host: "first"})
	require.NoError(t, err)
	require.True(t, won)
	won, err = l.put(ctx, answer{Version: callVersion, Delivery: 2, Host: "second"})
	require.NoError(t, err)
	require.False(t, won)

	got, err := l.result(ctx)
	require.NoError(t, err)
	require.Equal(t, "first", got.Host)
	kept, err := l.s.ReadName(ctx, l.name("superseded-2"))
	require.NoError(t, err)
	require.Contains(t, string(kept), `"second"`)
}
