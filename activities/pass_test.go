package activities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/run"
)

func TestAnswerIsReused(t *testing.T) {
	h := newHarness(t, "answer")
	first, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, first.Outcome, first.Message)
	require.False(t, first.Reused)
	require.InDelta(t, 0.25, first.Spend.USD, 1e-9)
	h.noScratch()

	again, err := h.passOf(context.Background(), h.worker())
	require.NoError(t, err)
	require.True(t, again.Reused)
	require.Equal(t, 1, h.started(), "no process for an answer that is there")
	again.Reused = false
	require.Equal(t, first, again, "the same answer is judged the same")
}

func TestConcurrentDeliveriesShareProcess(t *testing.T) {
	h := newHarness(t, "wait")
	type outcome struct {
		res contract.PassResult
		err error
	}
	done := make(chan outcome, 2)
	deliver := func() {
		res, err := h.pass(context.Background())
		done <- outcome{res, err}
	}
	go deliver()
	h.awaitStart(1)
	go deliver()
	h.letGo()
	a, b := <-done, <-done
	require.NoError(t, errors.Join(a.err, b.err))
	require.Equal(t, 1, h.started())
	require.Equal(t, a.res.Reply, b.res.Reply)
	other := func(r contract.PassResult) bool { return r.Joined || r.Reused }
	require.NotEqual(t, other(a.res), other(b.res), "one paid, the other did not")
}

func TestCallSurvivesActivity(t *testing.T) {
	h := newHarness(t, "wait")
	ctx, lose := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { _, err := h.pass(ctx); done <- err }()
	h.awaitStart(1)
	lose() // the server is away
	require.Error(t, <-done)
	require.True(t, h.acts.isRunning(callID(h.in)), "the child continues")

	h.letGo()
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome)
	require.Equal(t, 1, h.started())
	require.True(t, res.Joined || res.Reused)
	h.noScratch()
}

func TestCancelEndsChild(t *testing.T) {
	tests := []struct {
		name  string
		cause error
		check func(t *testing.T, err error)
	}{
		{"a person", temporal.NewCanceledError(), func(t *testing.T, err error) {
			var cancelled *temporal.CanceledError
			require.ErrorAs(t, err, &cancelled)
			var cost run.Spend
			var notes []contract.SupersededResult
			require.NoError(t, cancelled.Details(&cost, &notes))
			require.Zero(t, cost, "it is noted")
			require.Len(t, notes, 1)
			require.Equal(t, []int{1, 1}, []int{notes[0].Number, notes[0].Ended})
			require.Equal(t, run.Spend{Known: run.CostUnknown}, notes[0].Spend, "the agent had started")
		}},
		{"the worker's stop", worker.ErrWorkerShutdown, func(t *testing.T, err error) {
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, contract.ErrWorkerStopping, app.Type())
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarness(t, "hang")
			ctx, end := context.WithCancelCause(context.Background())
			done := make(chan error, 1)
			go func() { _, err := h.pass(ctx); done <- err }()
			h.awaitStart(1)
			end(tt.cause)
			tt.check(t, <-done)
			require.False(t, h.acts.isRunning(callID(h.in)))
			ans, err := h.ledger().Result(context.Background())
			require.NoError(t, err)
			require.Nil(t, ans, "half an answer is none")
		})
	}
}

func TestMissingProgramIsOutcome(t *testing.T) {
	h := newHarness(t, "answer")
	h.lay(filepath.Join(h.dir, "no-such-agent"))
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategorySpawnFailed, res.Outcome)
	require.True(t, res.Permanent)
	require.Equal(t, 127, res.ExitCode)
	require.Zero(t, res.Spend, "nothing was called")
	require.Contains(t, res.Message, "no-such-agent")
	h.noScratch()
}

func TestWrittenFileIsArtifact(t *testing.T) {
	h := newHarness(t, "write")
	h.builder()
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome, res.Message)
	require.True(t, res.Modified)
	got, err := blobs.Get(context.Background(), h.s, res.Artifact.Digest)
	require.NoError(t, err)
	require.Equal(t, "<!DOCTYPE html>\n<html>written</html>\n", string(got))
	h.noScratch()
}

func TestUnstoredAnswerIsNotRepeated(t *testing.T) {
	h := newHarness(t, "lose the store")
	_, err := h.pass(context.Background())
	require.Error(t, err, "the store is away")
	require.NoError(t, os.Remove(filepath.Join(h.dir, "store", "blobs")))
	require.NoError(t, os.Rename(filepath.Join(h.dir, "store", "away"), filepath.Join(h.dir, "store", "blobs")))

	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, run.CategoryOK, res.Outcome)
	require.Equal(t, 1, h.started(), "the answer lies in the scratch directory")
}
