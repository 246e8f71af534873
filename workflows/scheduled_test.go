package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

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
	server  *fakeServer
}

func newScheduleHarness(start func(contract.Occurrence) (contract.ScheduledRun, error),
	end func(ctx context.Context) (contract.RunEnd, error)) *scheduleOptions {
	server := newFakeServer()
	s := &scheduleOptions{env: workflows.NewTestEnvironment(&observes{server: server}), server: server}
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

var nightlyRun = contract.ScheduledRun{RunID: "run-1", Directory: "/runs/nightly-20260102-030405"}

func starts(contract.Occurrence) (contract.ScheduledRun, error) { return nightlyRun, nil }

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

// requireOptions wants the start of a run, and the wait for its end, to be repeated until the host answers.
func (s *scheduleOptions) requireOptions(t *testing.T) {
	t.Helper()
	most := map[string]time.Duration{"start nightly": time.Hour, "run run-1": 24 * time.Hour}
	for _, options := range s.server.activities {
		got := options[0]
		got.TaskQueue = ""
		require.Equal(t, workflow.ActivityOptions{StartToCloseTimeout: most[got.Summary], HeartbeatTimeout: 30 * time.Second,
			WaitForCancellation: true, Summary: got.Summary, RetryPolicy: &temporal.RetryPolicy{
				InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
				NonRetryableErrorTypes: []string{"payloadSizeError", contract.ErrNotStarted},
			}}, got)
	}
}

// TestScheduled: an execution stays open until its run has ended, and fails with it. Transient errors of the start are
// retried, each time for the same run.
func TestScheduled(t *testing.T) {
	const away = 3 // times that the store does not answer
	failed := contract.RunEnd{Status: "failed", Reason: "the plan is gone"}
	for name, row := range map[string]struct {
		in      contract.Schedule
		away    int
		refused error
		end     contract.RunEnd
		code    string // type of the error
		text    string
		started int
	}{
		"done":         {in: nightly, end: contract.RunEnd{Status: "done"}, started: 1},
		"halted":       {in: nightly, end: contract.RunEnd{Status: "halted"}, started: 1},
		"cancelled":    {in: nightly, end: contract.RunEnd{Status: "cancelled"}, started: 1},
		"a store away": {in: nightly, away: away, end: contract.RunEnd{Status: "done"}, started: away + 1},
		"failed":       {in: nightly, end: failed, code: "RunFailed", text: failed.Reason, started: 1},
		"terminated":   {in: nightly, end: contract.RunEnd{Reason: "gone"}, code: "RunFailed", text: "gone", started: 1},
		"cannot start": {in: nightly, away: away, refused: temporal.NewNonRetryableApplicationError("unknown key",
			contract.ErrNotStarted, nil), code: contract.ErrNotStarted, text: "unknown key", started: away + 1},
		"incomplete": {in: contract.Schedule{Config: "pipeline.yaml"}, code: contract.ErrBadInput, text: "name is missing, " +
			`config "pipeline.yaml" is not absolute, root is missing, store is missing; `},
	} {
		t.Run(name, func(t *testing.T) {
			left := row.away
			s := newScheduleHarness(func(due contract.Occurrence) (contract.ScheduledRun, error) {
				if left--; left >= 0 {
					return contract.ScheduledRun{}, context.DeadlineExceeded
				}
				if row.refused != nil {
					return contract.ScheduledRun{}, row.refused
				}
				return starts(due)
			}, func(context.Context) (contract.RunEnd, error) { return row.end, nil })
			awaits := row.end != contract.RunEnd{}
			if awaits {
				s.env.OnUpsertMemo(map[string]any{workflows.MemoRun: "run-1", workflows.MemoDirectory: nightlyRun.Directory}).
					Return(nil).Once()
			}
			out, err := s.result(t, row.in)
			require.Len(t, s.started, row.started)
			for _, due := range s.started {
				require.Equal(t, nightly, due.Schedule)
				require.Equal(t, "2026-01-02T03:04:05.000Z", due.At)
				require.Equal(t, s.started[0], due)
			}
			require.Equal(t, awaits, s.awaited == 1)
			require.True(t, s.env.AssertExpectations(t))
			s.requireOptions(t)
			if row.code == "" {
				require.NoError(t, err)
				require.Equal(t, workflows.ScheduledResult{ScheduledRun: nightlyRun, RunEnd: row.end}, out)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, row.code, app.Type())
			require.ErrorContains(t, err, row.text)
		})
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
