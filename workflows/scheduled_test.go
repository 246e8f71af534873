package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/workflows"
)

var nightly = contract.Schedule{
	Name: "nightly", Host: "here", Config: "/p/pipeline.yaml", Root: "/runs", Store: "file:///store",
}

// scheduleOptions is a schedule's workflow in Temporal's test environment, with a host that starts runs.
type scheduleOptions struct {
	env     *testsuite.TestWorkflowEnvironment
	started []contract.Occurrence
	awaited int
}

func newScheduleHarness(start func(contract.Occurrence) (contract.ScheduledRun, error),
	end func(ctx context.Context) (contract.RunEnd, error)) *scheduleOptions {
	s := &scheduleOptions{env: workflows.NewTestEnvironment()}
	workflows.Register(s.env, nil, nil)
	s.env.SetStartTime(startTime)
	s.env.RegisterActivityWithOptions(func(_ context.Context, due contract.Occurrence) (contract.ScheduledRun, error) {
		s.started = append(s.started, due)
		return start(due)
	}, activity.RegisterOptions{Name: contract.StartScheduled})
	s.env.RegisterActivityWithOptions(func(ctx context.Context, _ contract.ScheduledRun) (contract.RunEnd, error) {
		s.awaited++
		return end(ctx)
	}, activity.RegisterOptions{Name: contract.AwaitRun})
	return s
}

func starts(contract.Occurrence) (contract.ScheduledRun, error) {
	return contract.ScheduledRun{RunID: "run-1", Directory: "/runs/nightly-20260102-030405"}, nil
}

func (s *scheduleOptions) result(t *testing.T, in contract.Schedule) (workflows.ScheduledResult, error) {
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
	s := newScheduleHarness(starts, func(context.Context) (contract.RunEnd, error) {
		return contract.RunEnd{Status: "done"}, nil
	})
	s.env.OnUpsertMemo(map[string]any{
		workflows.MemoRun: "run-1", workflows.MemoDirectory: "/runs/nightly-20260102-030405",
	}).Return(nil).Once()
	out, err := s.result(t, nightly)
	require.NoError(t, err)
	require.Equal(t, workflows.ScheduledResult{
		ScheduledRun: contract.ScheduledRun{RunID: "run-1", Directory: "/runs/nightly-20260102-030405"},
		RunEnd:       contract.RunEnd{Status: "done"},
	}, out)
	require.Len(t, s.started, 1)
	require.Equal(t, nightly, s.started[0].Schedule)
	require.Equal(t, "2026-01-02T03:04:05.000Z", s.started[0].At)
	require.Equal(t, 1, s.awaited)
	require.True(t, s.env.AssertExpectations(t))
}

func TestScheduledFailsWithItsRun(t *testing.T) {
	for name, end := range map[string]contract.RunEnd{
		"failed": {Status: "failed", Reason: "the plan is gone"}, "terminated": {Reason: "the plan is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScheduleHarness(starts, func(context.Context) (contract.RunEnd, error) { return end, nil })
			_, err := s.result(t, nightly)
			require.ErrorContains(t, err, "run run-1 in /runs/nightly-20260102-030405 failed: the plan is gone")
		})
	}
	for _, status := range []string{"halted", "cancelled"} { // on request
		s := newScheduleHarness(starts, func(context.Context) (contract.RunEnd, error) {
			return contract.RunEnd{Status: status}, nil
		})
		_, err := s.result(t, nightly)
		require.NoError(t, err)
	}
}

func TestScheduledRetriesTransientErrors(t *testing.T) {
	tries := 0
	s := newScheduleHarness(func(due contract.Occurrence) (contract.ScheduledRun, error) {
		if tries++; tries < 4 {
			return contract.ScheduledRun{}, context.DeadlineExceeded // such as a store that does not answer
		}
		return contract.ScheduledRun{},
			temporal.NewNonRetryableApplicationError("pipeline.yaml:3: unknown key", contract.ErrNotStarted, nil)
	}, nil)
	_, err := s.result(t, nightly)
	require.ErrorContains(t, err, "pipeline.yaml:3: unknown key")
	require.Equal(t, 4, tries)
	require.Zero(t, s.awaited)
	for _, due := range s.started {
		require.Equal(t, s.started[0], due, "every attempt is for the same run")
	}
}

func TestCancelScheduledCancelsRun(t *testing.T) {
	var s *scheduleOptions
	s = newScheduleHarness(starts, func(context.Context) (contract.RunEnd, error) {
		if s.awaited == 1 {
			s.env.CancelWorkflow()
			return contract.RunEnd{}, temporal.NewCanceledError()
		}
		return contract.RunEnd{Status: "cancelled"}, nil
	})
	s.env.OnRequestCancelExternalWorkflow(mock.Anything, "run-1", "").Return(nil).Once()
	_, err := s.result(t, nightly)
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.True(t, s.env.AssertExpectations(t))
	require.Equal(t, 2, s.awaited, "it waits until the run has ended")
}

func TestScheduledRefusesIncompleteInput(t *testing.T) {
	s := newScheduleHarness(starts, nil)
	_, err := s.result(t, contract.Schedule{Config: "pipeline.yaml"})
	for _, want := range []string{
		"name is missing", `config "pipeline.yaml" is not absolute`, "root is missing", "store is missing",
		"starter schedule create",
	} {
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, s.started)
}
