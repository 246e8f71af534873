package activities

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/store"
)

func newLedger(t *testing.T) ledger {
	t.Helper()
	s, err := store.Open(context.Background(), "file://"+t.TempDir())
	require.NoError(t, err)
	return ledger{s: s, call: "run-1/g0.001.1.-.1"}
}

func TestEachClaimHasItsOwnNumber(t *testing.T) {
	ctx, l := context.Background(), newLedger(t)
	numbers := make(chan int, 8)
	errs := make(chan error, 8)
	for range 8 {
		go func() {
			n, err := l.claim(ctx, claim{Version: callVersion, Call: l.call, Host: "here"})
			errs <- err
			numbers <- n
		}()
	}
	seen := map[int]bool{}
	for range 8 {
		require.NoError(t, <-errs)
		seen[<-numbers] = true
	}
	require.Len(t, seen, 8)
	claims, err := l.claims(ctx)
	require.NoError(t, err)
	require.Len(t, claims, 8)
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
