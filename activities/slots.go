package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/workflows/contract"
)

// slots limit concurrent work of one kind.
type slots chan struct{}

// slotPools are the slots of each kind of work, for all queues.
type slotPools struct {
	projections, segments, checkouts, screenshots, notices slots

	outputs slots // one: reading a large output needs several times its memory
}

func newSlotPools(c config.Concurrency) slotPools {
	return slotPools{
		projections: make(slots, c.Projections), segments: make(slots, c.Segments), checkouts: make(slots, c.Checkouts),
		screenshots: make(slots, c.Screenshots), notices: make(slots, c.Notices), outputs: make(slots, 1),
	}
}

// acquire waits for a slot. free releases it.
func (s slots) acquire(ctx context.Context) (free func(), err error) {
	ctx, cancel := slotDeadline(ctx)
	defer cancel()
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, temporal.NewApplicationErrorWithCause(fmt.Sprintf("wait for one of %d slots", cap(s)),
			contract.ErrNoSlot, context.Cause(ctx))
	}
}

var errNoSlotInTime = errors.New("all are in use; the activity is retried")

// slotDeadline ends after a quarter of an activity's time: the rest is for its work.
func slotDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Until(end)/4, errNoSlotInTime)
}

// withSlot returns an activity that first waits for a slot while it sends heartbeats. Without a slot in time it
// fails with contract.ErrNoSlot and is scheduled again: no attempt is used up.
func withSlot[In, Out any](a *Activities, s slots, f func(context.Context, In) (Out, error)) func(context.Context,
	In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		stop := a.beatWhileWaiting(ctx)
		free, err := s.acquire(ctx)
		stop()
		if err != nil {
			var none Out
			return none, err
		}
		defer free()
		return f(ctx, in)
	}
}

// beatWhileWaiting sends heartbeats while an activity waits for a slot. They keep the error of an earlier attempt.
func (a *Activities) beatWhileWaiting(ctx context.Context) (stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout == 0 {
		return func() {}
	}
	met := lastError(ctx)
	return HeartbeatEvery(ctx, timeout.Milliseconds(),
		func() any { return contract.Heartbeat{Host: a.cfg.Host, LastError: met} })
}
