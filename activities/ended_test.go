package activities

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lose kills the supervisor of delivery 1 and returns the error of its activity.
func (h *harness) lose(done <-chan outcome) error {
	h.t.Helper()
	rec, ok, err := supervisor.ReadRecord(h.deliveryDir())
	require.NoError(h.t, err)
	require.True(h.t, ok)
	require.NoError(h.t, syscall.Kill(rec.Process.PID, syscall.SIGKILL))
	return (<-done).err
}

// TestLostDeliveryWithoutUsageIsUnknown: the error of a delivery that reported nothing names its cost, and so does the
// answer of the next one: under the same number, which the run counts once.
func TestLostDeliveryWithoutUsageIsUnknown(t *testing.T) {
	h := newHarness(t, "hang")
	done := h.begin(context.Background(), h.acts)
	h.awaitStart(1)
	err := h.lose(done)
	app := failed(t, err, contract.ErrNoAnswer)
	var none run.Spend
	var notes []contract.SupersededResult
	require.NoError(t, app.Details(&none, &notes))
	want := []contract.SupersededResult{{
		Number: 1, Ended: 1, Call: h.ledger().Call, Spend: run.Spend{Known: run.CostUnknown},
	}}
	require.Equal(t, want, notes)

	require.NoError(t, h.ledger().End(t.Context(), 1, calls.End{Spend: &want[0].Spend}), "another worker notes it too")
	t.Setenv(playing, "answer")
	res := h.result()
	require.Equal(t, want, res.Superseded)
	require.Equal(t, run.CostExact, res.Spend.Known)
	h.in.SupersededSeen = 1
	res = h.result()
	require.Empty(t, res.Superseded)
}

// codex prints the events of `codex exec --json`. The totals of a continued session contain its earlier part.
func codex(t *testing.T, plays ...string) *harness {
	t.Helper()
	h := claude(t, plays...)
	program := filepath.Join(h.dir, "bin", "codex")
	require.NoError(t, os.Rename(h.agent, program))
	h.define(adapter.ClaudeStream, adapter.CodexJSONL)
	h.runAgent(program + ", exec, --json, -m, gpt-5.1-codex")
	return h
}

const (
	thread    = `printf '{"type":"thread.started","thread_id":"s-1"}\n'; `
	completed = thread + `printf '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"done"}}\n` +
		`{"type":"turn.completed","usage":{"input_tokens":300000,"cached_input_tokens":100000,"output_tokens":100000}}\n'`
)

// TestContinuedTotalCoversEarlierCalls: the total of the last call is exact, and contains what was unknown before.
func TestContinuedTotalCoversEarlierCalls(t *testing.T) {
	h := codex(t, thread+"sleep 600", thread+"sleep 600", completed)
	h.in.TimeoutMS = 5 * h.startTime().Milliseconds()
	var total run.Totals
	failed, err := h.pass(t.Context()) // asked to finish, and ended again
	require.NoError(t, err)
	require.Equal(t, run.CategoryAgentTimeout, failed.Outcome)
	for _, l := range failed.Superseded {
		total.Add(l.Spend)
	}
	total.Add(failed.Spend)
	require.Equal(t, 2, total.Unknown)
	require.Equal(t, run.CostUnknown, total.Known)

	h.again()
	h.in.SupersededSeen, h.in.TimeoutMS = len(failed.Superseded), time.Minute.Milliseconds()
	res := h.accepted()
	require.Equal(t, "s-1", res.ResumedFrom)
	require.Equal(t, run.CostExact, res.Spend.Known)
	require.Equal(t, 2, res.Spend.Covers)
	total.Add(res.Spend)
	require.Equal(t, 3, total.Calls)
	require.Zero(t, total.Unknown)
	require.Equal(t, run.CostExact, total.Known)
	require.Equal(t, run.Tokens{Input: 200000, CacheRead: 100000, Output: 100000}, total.Tokens)
	require.InDelta(t, 0.2*1.25+0.1*0.125+0.1*10, total.USD, 1e-9)
}

// TestAnswerOfAbandonedDeliveryIsKnown: it comes after its end was noted.
func TestAnswerOfAbandonedDeliveryIsKnown(t *testing.T) {
	h := newHarness(t, "answer")
	l := h.ledger()
	require.NoError(t, l.End(t.Context(), 1, calls.End{Spend: &run.Spend{Known: run.CostUnknown}}))
	won := must(l.Put(t.Context(), calls.Answer{
		Version: calls.AnswerVersion, Call: l.Call, Delivery: 1,
		Read: calls.Reading{Spend: run.Spend{USD: 2, Known: run.CostExact}},
	}))(t)
	require.True(t, won)
	ans := must(l.Result(t.Context()))(t)
	notes := must(calls.SupersededSince(t.Context(), h.s, h.in))(t)
	require.Len(t, notes, 1)
	var total run.Totals
	total.Add(notes[0].Spend)
	total.Add(ans.Read.Spend)
	require.InDelta(t, 2, total.USD, 1e-9)
	require.Zero(t, total.Unknown)
	require.Equal(t, run.CostExact, total.Known)
}
