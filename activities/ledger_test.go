package activities

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
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
	ans, err := New(Config{}).waitForOther(ctx, l, 1, self, self, t.TempDir()) // this very process: it lives
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

// TestALateAnswerIsAccountedFor: another host takes a call over from a worker that was frozen, and answers first. What the first agent says afterwards is kept,
// and its cost reaches the run with its next call, although the call itself was judged long before. It reaches it once.
func TestALateAnswerIsAccountedFor(t *testing.T) {
	ctx := context.Background()
	h := newHouse(t, "wait")
	type outcome struct {
		res work.PassResult
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
	won, err := h.ledger().put(ctx, answer{
		Version: callVersion, Call: asked(h.in), Delivery: 2, Host: "there", Stdout: h.put(envelopeOf("I was faster.")), Stderr: h.put(""),
	})
	require.NoError(t, err)
	require.True(t, won)
	judged, err := h.passOf(ctx, there)
	require.NoError(t, err)
	require.Empty(t, judged.Late, "nothing has come yet")

	h.letGo()
	thawed := <-frozen
	require.NoError(t, thawed.err)
	require.Equal(t, judged.Reply, thawed.res.Reply, "the first answer counts")
	next := h.in
	next.Call = strings.Replace(next.Call, ".1.-.1", ".1.-.2", 1)
	require.NotEqual(t, h.in.Call, next.Call)
	_, err = ledger{s: h.s, call: asked(next)}.put(ctx, answer{Version: callVersion, Call: asked(next), Stdout: h.put(envelopeOf("Next.")), Stderr: h.put("")})
	require.NoError(t, err)
	late := func(known int) []work.Late {
		in := next
		in.Late = known
		h.in, in = in, h.in
		defer func() { h.in = in }()
		res, err := h.passOf(ctx, there)
		require.NoError(t, err)
		return res.Late
	}
	require.Len(t, late(0), 1)
	require.Equal(t, 1, late(0)[0].Number)
	require.Equal(t, asked(h.in), late(0)[0].Call)
	require.InDelta(t, 0.25, late(0)[0].Spend.USD, 1e-9)
	require.Empty(t, late(1))
	require.Equal(t, &run.Blob{Digest: h.in.Prompt.Digest}, late(0)[0].Prompt)
	for _, b := range []*run.Blob{late(0)[0].Output, late(0)[0].Envelope} {
		raw, err := load(ctx, h.s, b.Digest)
		require.NoError(t, err)
		require.Contains(t, string(raw), "An answer.", "its evidence comes along")
	}
}
