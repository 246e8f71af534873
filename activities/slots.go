package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/work"
)

// slots bound how much of one kind of work this worker does at once.
type slots chan struct{}

// kinds are the slots of each kind of work, whatever queue it comes from.
type kinds struct {
	projections, segments, checkouts, screenshots, notices slots
}

func kindsOf(c config.Concurrency) kinds {
	return kinds{
		projections: make(slots, c.Projections), segments: make(slots, c.Segments), checkouts: make(slots, c.Checkouts),
		screenshots: make(slots, c.Screenshots), notices: make(slots, c.Notices),
	}
}

// take waits for a slot. The returned function frees it.
func (s slots) take(ctx context.Context) (free func(), err error) {
	ctx, cancel := untilLate(ctx)
	defer cancel()
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, temporal.NewApplicationErrorWithCause(fmt.Sprintf("wait for one of %d slots", cap(s)), work.ErrNoSlot, context.Cause(ctx))
	}
}

var errLate = errors.New("all are taken; it is tried again")

// untilLate ends after a quarter of the time that an activity has: the rest is for its work, however long it has waited.
func untilLate(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, time.Until(end)/4, errLate)
}

// bounded is an activity that waits for a slot first, while its heartbeats go on. One that gets none in time ends with work.ErrNoSlot, and is asked for again:
// it has not begun, so no attempt is used up.
func bounded[In, Out any](a *Activities, s slots, f func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		stop := a.waiting(ctx)
		free, err := s.take(ctx)
		stop()
		if err != nil {
			var none Out
			return none, err
		}
		defer free()
		return f(ctx, in)
	}
}

// waiting reports that an activity lives that waits for a slot. What an earlier attempt met stays known.
func (a *Activities) waiting(ctx context.Context) (stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout == 0 {
		return func() {}
	}
	met := lastTrouble(ctx)
	return BeatEvery(ctx, timeout.Milliseconds(), func() any { return work.Heartbeat{Host: a.cfg.Host, Trouble: met} })
}
