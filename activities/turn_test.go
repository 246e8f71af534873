package activities

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

func (h *harness) turn(ctx context.Context, in contract.ProjectInput) (contract.TurnResult, error) {
	return doIn(ctx, h.acts.Turn, contract.TurnInput{Project: in, Call: h.in})
}

// TestTurnWritesThenCalls, and the supervisor of the call starts before the events are written.
func TestTurnWritesThenCalls(t *testing.T) {
	h := newHarness(t, "answer")
	supervisors := h.supervisors()
	in := h.startsAs(filepath.Join(h.dir, "run"))
	written := func() bool {
		raw, err := os.ReadFile(filepath.Join(in.Dir, rundir.EventsFile))
		return err == nil && string(raw) == in.Lines[0]+"\n"
	}
	before, waits := false, false
	h.acts.cfg.OnPoint = func(p Point, _ string) {
		before, waits = before || p == PointRequested && written(), waits || p == PointRequested && h.early() != nil
	}
	res := must(h.turn(t.Context(), in))(t)
	require.Equal(t, "written", string(res.Project.Outcome))
	meta := must(rundir.At(in.Dir).Meta())(t)
	require.Equal(t, run.Tail{Seq: in.First + int64(len(in.Lines)) - 1, Chain: in.Prev.Over(in.Lines)}, run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain})
	require.Equal(t, run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain}, res.Project.Tail)
	require.NotNil(t, res.Pass)
	require.True(t, before, "the call began before its events were on disk")
	require.True(t, waits)
	require.Len(t, supervisors(), 1, "the call has another supervisor than the one that waited for it")
	require.Empty(t, h.acts.early)
	again := must(h.turn(t.Context(), in))(t)
	require.Equal(t, res.Project, again.Project)
	require.True(t, again.Pass.Reused)
	require.Equal(t, 1, h.started(), "the answered call was made again")
	h.noSupervisors(supervisors())
}

func TestTurnCallsNothingUnlessItWrites(t *testing.T) {
	for name, row := range map[string]struct {
		prepare func(h *harness, in *contract.ProjectInput)
		outcome string
	}{
		"lost events":      {func(_ *harness, in *contract.ProjectInput) { in.First = 5 }, "behind"},
		"other events":     {func(_ *harness, in *contract.ProjectInput) { in.Lines[0] += " " }, "newer"},
		"a later epoch":    {func(_ *harness, in *contract.ProjectInput) { in.Epoch = -1 }, "newer"},
		"an unknown store": {func(_ *harness, in *contract.ProjectInput) { in.Store = "gopher://bucket" }, ""},
		"a file in the way": {func(h *harness, in *contract.ProjectInput) {
			in.Dir = filepath.Join(h.dir, "file")
			require.NoError(h.t, os.WriteFile(in.Dir, nil, 0o600))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "answer")
			in := h.startsAs(filepath.Join(h.dir, "run"))
			h.projected(in)
			row.prepare(h, &in)
			supervisors := h.supervisors()
			res := must(h.turn(t.Context(), in))(t)
			require.Equal(t, row.outcome, string(res.Project.Outcome))
			require.Nil(t, res.Pass)
			require.Zero(t, h.started())
			require.Len(t, supervisors(), 1, "it starts early")
			h.noSupervisors(supervisors())
			h.noScratch()
		})
	}
}

func TestTurnOfAStoppedWorkerCallsNothing(t *testing.T) {
	h := newHarness(t, "answer")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the worker stops"))
	_, err := h.turn(ctx, h.startsAs(filepath.Join(h.dir, "run")))
	require.ErrorContains(t, err, "the worker stops")
	require.Zero(t, h.started())
}
