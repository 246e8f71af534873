package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestAdoptedConversationWaitsForItsLimit: the first call is made after the reset, with the conversation; later calls
// have their own.
func TestAdoptedConversationWaitsForItsLimit(t *testing.T) {
	w := newHarness(t, twoPasses)
	until := startTime.Add(2 * time.Hour)
	w.in.Start.Adopted = &run.Adopted{Program: "claude", Session: "s-1", Digest: "d", Host: "here", File: "run-1/s-1",
		Phase: w.in.Start.Stages[0].Name, Role: "builder", Brief: run.Blob{Digest: "the brief"},
		Limited: &run.LimitedCall{Limit: run.Limit{Kind: run.LimitPlan}, Until: run.Time(until), Since: run.Time(startTime), N: 1}}
	w.onLimit(func() {
		s := w.dir.state(t)
		require.Equal(t, run.WaitingLimit, s.Status)
		require.Equal(t, run.Time(until), s.Limited.Until)
		require.Empty(t, w.agent.inputs)
	})
	w.agent.will(call(1, 1), func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Session = &run.KeptSession{ID: "s-2", Host: "here", Call: "call", Digest: "kept"}
		return ok, nil
	})
	var composed []contract.ComposeInput
	w.composing = func(in contract.ComposeInput) { composed = append(composed, in) }
	w.done()
	require.Len(t, w.waits, 1)
	require.GreaterOrEqual(t, w.waits[0], 119*time.Minute)
	require.Len(t, w.agent.inputs, 2)
	require.Equal(t, "run-1/s-1", w.agent.inputs[0].Session.File)
	require.Equal(t, "the brief", composed[0].Context.Adopted.Digest)
	require.Equal(t, "s-2", w.agent.inputs[1].Session.ID)
	require.Nil(t, composed[1].Context.Adopted)
	require.Nil(t, w.dir.state(t).Limited)
}
