package activities

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestActivitiesWaitForSlot(t *testing.T) {
	for _, row := range []struct {
		activity string
		in       any
		kind     func(slotPools) slots
	}{
		{contract.Open, contract.OpenInput{}, func(k slotPools) slots { return k.projections }},
		{contract.Project, contract.ProjectInput{}, func(k slotPools) slots { return k.projections }},
		{contract.Inspect, contract.InspectInput{}, func(k slotPools) slots { return k.projections }},
		{contract.Inspect, contract.InspectInput{Tree: &contract.Tree{}},
			func(k slotPools) slots { return k.checkouts }},
		{contract.ArchiveSegment, contract.ArchiveSegmentInput{}, func(k slotPools) slots { return k.segments }},
		{contract.Rebuild, contract.RebuildInput{}, func(k slotPools) slots { return k.segments }},
		{contract.SyncWorkspace, contract.SyncWorkspaceInput{}, func(k slotPools) slots { return k.checkouts }},
		{contract.Deliver, contract.DeliverInput{}, func(k slotPools) slots { return k.checkouts }},
		{contract.Notify, contract.NotifyInput{}, func(k slotPools) slots { return k.notices }},
		{contract.TakeScreenshots, contract.ShotsInput{}, func(k slotPools) slots { return k.screenshots }},
	} {
		t.Run(row.activity, func(t *testing.T) {
			a := newActivities(t, Config{
				Concurrency: config.Concurrency{Projections: 2, Segments: 2, Checkouts: 2, Screenshots: 2, Notices: 2},
				Scratch:     t.TempDir(),
			})
			ended, end := context.WithCancel(t.Context())
			end()
			e := env(ended)
			a.RegisterDirectory(e)
			a.RegisterCalls(e)
			for range 2 {
				row.kind(a.slots) <- struct{}{}
			}
			_, err := e.ExecuteActivity(row.activity, row.in)
			failed(t, err, contract.ErrNoSlot)
		})
	}
}

// TestLargeOutputsAreReadOneByOne: a worker holds one output of more than 1 MiB in memory, whatever it runs.
func TestLargeOutputsAreReadOneByOne(t *testing.T) {
	a, large, small := newActivities(t, Config{}), &runningCall{dir: t.TempDir()}, &runningCall{dir: t.TempDir()}
	write(filepath.Join(large.dir, calls.StderrFile), "")
	require.NoError(t, os.Truncate(filepath.Join(large.dir, calls.StderrFile), 1<<20+1))
	free := must(a.outputSlot(t.Context(), large))(t)
	must(a.outputSlot(t.Context(), small))(t)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := a.outputSlot(ended, large)
	require.ErrorIs(t, err, context.Canceled)
	free()
	must(a.outputSlot(t.Context(), large))(t)
}

func TestSlotWaitLeavesTimeForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(slots, 1)
		free := must(s.acquire(t.Context()))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err := s.acquire(ctx)
		require.Equal(t, 15*time.Minute, time.Since(began))
		require.NoError(t, ctx.Err())
		app := failed(t, err, contract.ErrNoSlot)
		require.False(t, app.NonRetryable())
		free()
		must(s.acquire(ctx))(t)
	})
}
