package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"

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
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for one of %d slots: %w", cap(s), context.Cause(ctx))
	}
}

// bounded is an activity that waits for a slot first. The wait counts as work: the activity's time runs, and its heartbeats go on.
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
	return beatEvery(ctx, timeout.Milliseconds(), func() any { return work.Heartbeat{Host: a.cfg.Host, Trouble: met} })
}
