package activities

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
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
			env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
			a.RegisterDirectory(env)
			a.RegisterCalls(env)
			ended, end := context.WithCancel(t.Context())
			end()
			env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ended})
			for range 2 {
				row.kind(a.slots) <- struct{}{}
			}
			_, err := env.ExecuteActivity(row.activity, row.in)
			require.ErrorContains(t, err, "wait for one of 2 slots")
		})
	}
}

func TestSlotWaitLeavesTimeForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(slots, 1)
		free, err := s.acquire(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err = s.acquire(ctx)
		require.Equal(t, 15*time.Minute, time.Since(began))
		require.NoError(t, ctx.Err())
		app := (*temporal.ApplicationError)(nil)
		require.ErrorAs(t, err, &app)
		require.Equal(t, contract.ErrNoSlot, app.Type())
		require.EqualError(
			t, app, "wait for one of 1 slots (type: NoSlot, retryable: true): all are in use; the activity is retried",
		)
		free()
		_, err = s.acquire(ctx)
		require.NoError(t, err)
	})
}

func TestSlotsLimitConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 3
		s := make(slots, bound)
		var running, most atomic.Int32
		var all sync.WaitGroup
		proceed := make(chan struct{})
		for range 50 {
			all.Go(func() {
				free, err := s.acquire(t.Context())
				require.NoError(t, err)
				defer free()
				most.Store(max(most.Load(), running.Add(1)))
				<-proceed
				running.Add(-1)
			})
		}
		synctest.Wait()
		require.EqualValues(t, bound, running.Load(), "the others wait")
		close(proceed)
		all.Wait()
		require.LessOrEqual(t, most.Load(), int32(bound))
		require.Empty(t, s, "a slot is not freed")
	})
}
