package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/work"
	"github.com/passbook-run/passbook/workflows"
)

var nightly = work.Schedule{Name: "nightly", Host: "here", Config: "/p/pipeline.yaml", Root: "/runs", Store: "file:///store"}

// scheduling is a schedule's workflow in Temporal's test environment, with a host that starts runs.
type scheduling struct {
	env     *testsuite.TestWorkflowEnvironment
	started []work.Due
	awaited int
}

func newScheduling(start func(work.Due) (work.ScheduledRun, error), end func(ctx context.Context) (work.RunEnd, error)) *scheduling {
	s := &scheduling{env: (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()}
	workflows.Register(s.env, nil)
	s.env.SetStartTime(begin)
	s.env.RegisterActivityWithOptions(func(_ context.Context, due work.Due) (work.ScheduledRun, error) {
		s.started = append(s.started, due)
		return start(due)
	}, activity.RegisterOptions{Name: work.StartScheduled})
	s.env.RegisterActivityWithOptions(func(ctx context.Context, _ work.ScheduledRun) (work.RunEnd, error) {
		s.awaited++
		return end(ctx)
	}, activity.RegisterOptions{Name: work.AwaitRun})
	return s
}

func starts(work.Due) (work.ScheduledRun, error) {
	return work.ScheduledRun{RunID: "run-1", Directory: "/runs/nightly-20260102-030405"}, nil
}

func (s *scheduling) result(t *testing.T, in work.Schedule) (workflows.ScheduledResult, error) {
	t.Helper()
	s.env.ExecuteWorkflow(workflows.ScheduledName, in)
	require.True(t, s.env.IsWorkflowCompleted())
	var out workflows.ScheduledResult
	err := s.env.GetWorkflowError()
	if err == nil {
		require.NoError(t, s.env.GetWorkflowResult(&out))
	}
	return out, err
}

func TestScheduledStaysOpenUntilItsRunEnds(t *testing.T) {
	s := newScheduling(starts, func(context.Context) (work.RunEnd, error) { return work.RunEnd{Status: "done"}, nil })
	s.env.OnUpsertMemo(map[string]any{workflows.MemoRun: "run-1", workflows.MemoDirectory: "/runs/nightly-20260102-030405"}).Return(nil).Once()
	out, err := s.result(t, nightly)
	require.NoError(t, err)
	require.Equal(t, workflows.ScheduledResult{ScheduledRun: work.ScheduledRun{RunID: "run-1", Directory: "/runs/nightly-20260102-030405"}, RunEnd: work.RunEnd{Status: "done"}}, out)
	require.Len(t, s.started, 1)
	require.Equal(t, nightly, s.started[0].Schedule)
	require.Equal(t, "2026-01-02T03:04:05.000Z", s.started[0].At)
	require.Equal(t, 1, s.awaited)
	require.True(t, s.env.AssertExpectations(t))
}

func TestScheduledFailsWhereItsRunDoes(t *testing.T) {
	for name, end := range map[string]work.RunEnd{"failed": {Status: "failed", Reason: "the plan is gone"}, "terminated": {Reason: "the plan is gone"}} {
		t.Run(name, func(t *testing.T) {
			s := newScheduling(starts, func(context.Context) (work.RunEnd, error) { return end, nil })
			_, err := s.result(t, nightly)
			require.ErrorContains(t, err, "run run-1 in /runs/nightly-20260102-030405 failed: the plan is gone")
		})
	}
	for _, status := range []string{"halted", "cancelled"} { // as somebody wanted it
		s := newScheduling(starts, func(context.Context) (work.RunEnd, error) { return work.RunEnd{Status: status}, nil })
		_, err := s.result(t, nightly)
		require.NoError(t, err)
	}
}

func TestScheduledRetriesOnlyWhatMayPass(t *testing.T) {
	tries := 0
	s := newScheduling(func(due work.Due) (work.ScheduledRun, error) {
		if tries++; tries < 4 {
			return work.ScheduledRun{}, context.DeadlineExceeded // such as a store that does not answer
		}
		return work.ScheduledRun{}, temporal.NewNonRetryableApplicationError("pipeline.yaml:3: unknown key", work.ErrNotStarted, nil)
	}, nil)
	_, err := s.result(t, nightly)
	require.ErrorContains(t, err, "pipeline.yaml:3: unknown key")
	require.Equal(t, 4, tries)
	require.Zero(t, s.awaited)
	for _, due := range s.started {
		require.Equal(t, s.started[0], due, "every attempt is for the same run")
	}
}

func TestCancelOfScheduledCancelsItsRun(t *testing.T) {
	var s *scheduling
	s = newScheduling(starts, func(context.Context) (work.RunEnd, error) {
		if s.awaited == 1 {
			s.env.CancelWorkflow()
			return work.RunEnd{}, temporal.NewCanceledError()
		}
		return work.RunEnd{Status: "cancelled"}, nil
	})
	s.env.OnRequestCancelExternalWorkflow(mock.Anything, "run-1", "").Return(nil).Once()
	_, err := s.result(t, nightly)
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.True(t, s.env.AssertExpectations(t))
	require.Equal(t, 2, s.awaited, "it waits until the run has ended")
}

func TestScheduledRefusesAnIncompleteInput(t *testing.T) {
	s := newScheduling(starts, nil)
	_, err := s.result(t, work.Schedule{Config: "pipeline.yaml"})
	for _, want := range []string{"name is missing", `config "pipeline.yaml" is not absolute`, "root is missing", "store is missing", "starter schedule create"} {
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, s.started)
}
