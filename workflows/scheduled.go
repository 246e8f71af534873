package workflows

import (
	"fmt"
	"path"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// ScheduledName is the type of the workflow that a schedule starts. It stays open as long as its run, so that the
// schedule's overlap policy applies to runs. Cancelling it cancels the run.
const ScheduledName = "Scheduled"

// runFailedError is the error type of a Scheduled workflow whose run failed.
const runFailedError = "RunFailed"

// Keys of the memo of a Scheduled workflow.
const (
	MemoRun       = "run_id"
	MemoDirectory = "directory"
)

// attrDue is Temporal's own attribute: the scheduled start time.
var attrDue = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// ScheduledResult is the run of an occurrence, and how it ended.
type ScheduledResult struct {
	contract.ScheduledRun
	contract.RunEnd
}

// Scheduled starts a run on the host of the schedule and waits for its end. It fails if the run cannot be started,
// or fails.
func Scheduled(ctx workflow.Context, in contract.Schedule) (ScheduledResult, error) {
	info := workflow.GetInfo(ctx)
	if err := checkSchedule(in, info.WorkflowExecution.ID); err != nil {
		return ScheduledResult{}, err
	}
	due := contract.Occurrence{Schedule: in, At: run.Time(scheduledTime(ctx)), Execution: info.OriginalRunID}
	var out ScheduledResult
	if err := workflow.ExecuteActivity(scheduleOptions(ctx, time.Hour, "start "+in.Name), contract.StartScheduled,
		due).Get(ctx, &out.ScheduledRun); err != nil {
		if temporal.IsCanceledError(err) {
			return out, err
		}
		return out, temporal.NewNonRetryableApplicationError(errorMessage(err), contract.ErrNotStarted, nil)
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoRun: out.RunID, MemoDirectory: out.Directory}); err != nil {
		return out, err
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Run `%s` in `%s`", out.RunID, out.Directory))
	return awaitRunEnd(ctx, out)
}

// awaitRunEnd waits for the end of the run.
func awaitRunEnd(ctx workflow.Context, out ScheduledResult) (ScheduledResult, error) {
	wait := func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(scheduleOptions(ctx, 24*time.Hour, "run "+out.RunID), contract.AwaitRun,
			out.ScheduledRun).Get(ctx, &out.RunEnd)
	}
	err := wait(ctx)
	if ctx.Err() != nil { // cancelled by an operator or the overlap policy
		free, stop := workflow.NewDisconnectedContext(ctx)
		defer stop()
		if err := workflow.RequestCancelExternalWorkflow(free, out.RunID, "").Get(free, nil); err != nil {
			workflow.GetLogger(ctx).Warn("the run cannot be cancelled; it may have ended", "run", out.RunID, "error",
				err)
		}
		if err := wait(free); err != nil {
			return out, err
		}
		return out, ctx.Err()
	}
	if err != nil {
		return out, err
	}
	if s := run.Status(out.Status); s == run.Failed || s == "" {
		return out, temporal.NewNonRetryableApplicationError(
			strings.TrimSpace(fmt.Sprintf("run %s in %s failed: %s", out.RunID, out.Directory, out.Reason)),
			runFailedError, nil,
		)
	}
	return out, nil
}

// scheduledTime returns the scheduled start time, or the actual one if no schedule started the workflow.
func scheduledTime(ctx workflow.Context) time.Time {
	if at, known := workflow.GetTypedSearchAttributes(ctx).GetTime(attrDue); known {
		return at
	}
	return workflow.GetInfo(ctx).WorkflowStartTime
}

// scheduleOptions are for activities on the host of the schedule, whose queue the workflow uses. They wait for the
// host.
func scheduleOptions(ctx workflow.Context, most time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: most,
		HeartbeatTimeout:    30 * time.Second,
		WaitForCancellation: true,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
			NonRetryableErrorTypes: []string{tooLarge, contract.ErrNotStarted},
		},
	})
}

// checkSchedule validates an input that was written by hand. The error names everything that is missing.
func checkSchedule(in contract.Schedule, workflowID string) error {
	var wrong []string
	for _, f := range []struct {
		name, value string
		path        bool
	}{{"name", in.Name, false}, {"config", in.Config, true}, {"root", in.Root, true}, {"store", in.Store, false}} {
		switch {
		case f.value == "":
			wrong = append(wrong, f.name+" is missing")
		case f.path && !path.IsAbs(f.value):
			wrong = append(wrong, fmt.Sprintf("%s %q is not absolute", f.name, f.value))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf("start workflow %s: invalid input: %s; create "+
		"schedules with the starter binary: starter schedule create NAME",
		workflowID, strings.Join(wrong, ", ")), contract.ErrBadInput, nil)
}
