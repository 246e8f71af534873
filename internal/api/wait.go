package api

import (
	"context"
	"time"

	"github.com/passbook-run/passbook/rundir"
)

// Refresh is how often a client reads a run directory that it follows.
const Refresh = 150 * time.Millisecond

// Poll calls f at once and after each interval, until it returns true or an error, or ctx ends.
func Poll(ctx context.Context, interval time.Duration, f func(time.Time) (over bool, err error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for now := time.Now(); ; {
		if over, err := f(now); over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case now = <-tick.C:
		}
	}
}

// recordWait is how long an operation waits for the directory to record its effect.
const recordWait = 10 * time.Second

// AwaitDirectory returns when the directory records a change, so that the next reader sees it. Without a worker it
// stops waiting after a while; the message is not lost.
func AwaitDirectory(ctx context.Context, d rundir.Dir, there func(rundir.Meta) bool) error {
	ctx, cancel := context.WithTimeout(ctx, recordWait)
	defer cancel()
	return Poll(ctx, Refresh, func(time.Time) (bool, error) {
		m, err := d.Meta()
		return err == nil && there(m), nil //nolint:nilerr // meta.json may be replaced at this moment
	})
}
