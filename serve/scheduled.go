package serve

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/volume"
	"github.com/passbook-run/passbook/work"
)

// scheduled are the activities that start the runs of schedules and wait for their ends.
type scheduled struct{ op operate.Operator }

func (s scheduled) register(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(s.start, activity.RegisterOptions{Name: work.StartScheduled})
	r.RegisterActivityWithOptions(s.await, activity.RegisterOptions{Name: work.AwaitRun})
}

func (s scheduled) start(ctx context.Context, due work.Due) (work.ScheduledRun, error) {
	defer beat(ctx)()
	out, err := s.op.StartDue(context.WithoutCancel(ctx), due) // a start is not cut off between its steps
	return out, s.hide(err)
}

func (s scheduled) await(ctx context.Context, of work.ScheduledRun) (work.RunEnd, error) {
	defer beat(ctx)()
	out, err := s.op.AwaitEnd(ctx, of.RunID)
	if err == nil {
		out.Reason = s.op.Redact.Text(out.Reason)
	}
	return out, s.hide(err)
}

// hide takes the secrets out of an error, and names the file system that refused something.
func (s scheduled) hide(err error) error {
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

// beat reports that the activity lives; a cancellation comes with the answer.
func beat(ctx context.Context) (stop func()) {
	return activities.BeatEvery(ctx, activity.GetInfo(ctx).HeartbeatTimeout.Milliseconds(), func() any { return nil })
}
