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

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/work"
)

// TestActivitiesWaitForASlotOfTheirKind fills the slots of one kind and has its activities end while they wait.
func TestActivitiesWaitForASlotOfTheirKind(t *testing.T) {
	for _, row := range []struct {
		activity string
		in       any
		kind     func(kinds) slots
	}{
		{work.Open, work.OpenInput{}, func(k kinds) slots { return k.projections }},
		{work.Project, work.ProjectInput{}, func(k kinds) slots { return k.projections }},
		{work.Inspect, work.InspectInput{}, func(k kinds) slots { return k.projections }},
		{work.Inspect, work.InspectInput{Tree: &work.Tree{}}, func(k kinds) slots { return k.checkouts }},
		{work.Seal, work.SealInput{}, func(k kinds) slots { return k.segments }},
		{work.Rebuild, work.RebuildInput{}, func(k kinds) slots { return k.segments }},
		{work.Carry, work.CarryInput{}, func(k kinds) slots { return k.checkouts }},
		{work.Deliver, work.DeliverInput{}, func(k kinds) slots { return k.checkouts }},
		{work.Notify, work.NotifyInput{}, func(k kinds) slots { return k.notices }},
		{work.TakeScreenshots, work.ShotsInput{}, func(k kinds) slots { return k.screenshots }},
	} {
		t.Run(row.activity, func(t *testing.T) {
			a := New(Config{Bounds: config.Concurrency{Projections: 2, Segments: 2, Checkouts: 2, Screenshots: 2, Notices: 2}, Scratch: t.TempDir()})
			env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
			a.RegisterDirectory(env)
			a.RegisterCalls(env)
			ended, end := context.WithCancel(t.Context())
			end()
			env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ended})
			for range 2 {
				row.kind(a.kinds) <- struct{}{}
			}
			_, err := env.ExecuteActivity(row.activity, row.in)
			require.ErrorContains(t, err, "wait for one of 2 slots")
		})
	}
}

// TestAWaitForASlotEndsInTimeForTheWork: an activity that has waited still has most of its time, or says that it has not begun.
func TestAWaitForASlotEndsInTimeForTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := make(slots, 1)
		free, err := s.take(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		_, err = s.take(ctx)
		require.Equal(t, 15*time.Minute, time.Since(began))
		require.NoError(t, ctx.Err())
		app := (*temporal.ApplicationError)(nil)
		require.ErrorAs(t, err, &app)
		require.Equal(t, work.ErrNoSlot, app.Type())
		require.EqualError(t, app, "wait for one of 1 slots (type: NoSlot, retryable: true): all are taken; it is tried again")
		free()
		_, err = s.take(ctx)
		require.NoError(t, err)
	})
}

func TestSlotsBoundWhatRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 3
		s := make(slots, bound)
		var running, most atomic.Int32
		var all sync.WaitGroup
		proceed := make(chan struct{})
		for range 50 {
			all.Go(func() {
				free, err := s.take(t.Context())
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
