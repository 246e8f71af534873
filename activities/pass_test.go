package activities

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestAnswerIsReused(t *testing.T) {
	h := newHarness(t, "answer")
	first := h.accepted()
	require.False(t, first.Reused)
	require.InDelta(t, 0.25, first.Spend.USD, 1e-9)
	h.noScratch()

	again := h.resultOf(h.worker())
	require.True(t, again.Reused)
	require.Equal(t, 1, h.started(), "no process for an answer that is there")
	again.Reused = false
	require.Equal(t, first, again, "the same answer is judged the same")
}

func TestConcurrentDeliveriesShareProcess(t *testing.T) {
	h := newHarness(t, "wait")
	one := h.begin(t.Context(), h.acts)
	h.awaitStart(1)
	other := h.begin(t.Context(), h.acts)
	h.letGo()
	a, b := <-one, <-other
	require.NoError(t, errors.Join(a.err, b.err))
	require.Equal(t, 1, h.started())
	require.Equal(t, a.Reply, b.Reply)
	require.NotEqual(t, a.Joined || a.Reused, b.Joined || b.Reused, "one paid, the other did not")
}

func TestCallSurvivesActivity(t *testing.T) {
	h := newHarness(t, "wait")
	ctx, lose := context.WithCancel(context.Background())
	done := h.begin(ctx, h.acts)
	h.awaitStart(1)
	lose() // the server is away
	require.Error(t, (<-done).err)
	require.True(t, h.acts.isRunning(callID(h.in)), "the child continues")

	h.letGo()
	res := h.accepted()
	require.Equal(t, 1, h.started())
	require.True(t, res.Joined || res.Reused)
	h.noScratch()
}

// cancelled starts the agent, ends the activity with a cause, and returns its error.
func (h *harness) cancelled(cause error) error {
	h.t.Helper()
	ctx, end := context.WithCancelCause(context.Background())
	done := h.begin(ctx, h.acts)
	h.awaitStart(1)
	end(cause)
	err := (<-done).err
	require.False(h.t, h.acts.isRunning(callID(h.in)))
	ans, none := h.ledger().Result(context.Background())
	require.NoError(h.t, none)
	require.Nil(h.t, ans, "half an answer is none")
	h.noScratch()
	return err
}

func TestCancelEndsChild(t *testing.T) {
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, newHarness(t, "hang").cancelled(temporal.NewCanceledError()), &cancelled)
	var cost run.Spend
	var notes []contract.SupersededResult
	require.NoError(t, cancelled.Details(&cost, &notes))
	require.Zero(t, cost, "it is noted")
	require.Len(t, notes, 1)
	require.Equal(t, 1, notes[0].Number)
	require.Equal(t, 1, notes[0].Ended)
	require.Equal(t, run.Spend{Known: run.CostUnknown}, notes[0].Spend, "the agent had started")
}

func TestStoppingWorkerEndsChild(t *testing.T) {
	var app *temporal.ApplicationError
	require.ErrorAs(t, newHarness(t, "hang").cancelled(worker.ErrWorkerShutdown), &app)
	require.Equal(t, contract.ErrWorkerStopping, app.Type())
}

func TestMissingProgramIsOutcome(t *testing.T) {
	h := newHarness(t, "answer")
	h.runAgent(filepath.Join(h.dir, "no-such-agent"))
	res := h.result()
	require.Equal(t, run.CategorySpawnFailed, res.Outcome)
	require.True(t, res.Permanent)
	require.Equal(t, 127, res.ExitCode)
	require.Zero(t, res.Spend, "nothing was called")
	require.Contains(t, res.Message, "no-such-agent")
	h.noScratch()
}

func TestWrittenFileIsArtifact(t *testing.T) {
	h := newHarness(t, `sh printf '<!DOCTYPE html>\n<html>written</html>\n' >page.html`+thenAnswer)
	h.builder()
	res := h.accepted()
	require.True(t, res.Modified)
	require.Equal(t, "<!DOCTYPE html>\n<html>written</html>\n", h.text(res.Artifact.Digest))
	h.noScratch()
}

// TestUnstoredAnswerIsNotRepeated reads the answer in the scratch directory once the store is back.
func TestUnstoredAnswerIsNotRepeated(t *testing.T) {
	for _, kind := range []string{adapter.ClaudeJSON, adapter.Text} {
		t.Run(kind, func(t *testing.T) {
			h := newHarness(t, "sh true"+thenAnswer+thenLoseStore)
			h.define(adapter.ClaudeJSON, kind)
			for range 2 {
				_, err := h.pass(t.Context())
				app := failed(t, err, contract.ErrUnstored)
				var from contract.Heartbeat
				require.NoError(t, app.Details(&from))
				require.Equal(t, "here", from.Host, "the answer is nowhere else")
			}
			h.storeBack()
			res := h.accepted()
			require.Equal(t, 1, h.started())
			require.Zero(t, res.ExitCode)
			require.Positive(t, res.DurationMS, "its own times count")
			h.noScratch()
		})
	}
}
