package hosting

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/volume"
)

// scheduled are the activities that start the runs of schedules and wait for their ends.
type scheduled struct {
	op   operations.Operator
	acts *activities.Activities // checks grants
}

func (s scheduled) register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(s.start, activity.RegisterOptions{Name: contract.StartScheduled})
	r.RegisterActivityWithOptions(s.await, activity.RegisterOptions{Name: contract.AwaitRun})
}

func (s scheduled) start(ctx context.Context, due contract.Occurrence) (contract.ScheduledRun, error) {
	if err := s.acts.Allowed(due); err != nil {
		return contract.ScheduledRun{}, s.redacted(err)
	}
	defer beat(ctx)()
	out, err := s.op.StartDue(context.WithoutCancel(ctx), due) // a start is not interrupted between its steps
	return out, s.redacted(err)
}

func (s scheduled) await(ctx context.Context, of contract.ScheduledRun) (contract.RunEnd, error) {
	if err := s.acts.Allowed(of); err != nil {
		return contract.RunEnd{}, s.redacted(err)
	}
	defer beat(ctx)()
	out, err := s.op.AwaitEnd(ctx, of.RunID)
	if err == nil {
		out.Reason = s.op.Redact.Text(out.Reason)
	}
	return out, s.redacted(err)
}

// redacted removes the secrets from an error, and names the file system of a failed write.
func (s scheduled) redacted(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	text := s.op.Redact.Text(volume.Explain(err).Error())
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.NonRetryable() {
		return temporal.NewNonRetryableApplicationError(s.op.Redact.Text(app.Message()), app.Type(), nil)
	}
	return errors.New(text)
}

// beat sends heartbeats until stop is called. A cancellation arrives with their answers.
func beat(ctx context.Context) (stop func()) {
	return activities.HeartbeatEvery(ctx, activity.GetInfo(ctx).HeartbeatTimeout.Milliseconds(),
		func() any { return nil })
}
