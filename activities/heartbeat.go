package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// startHeartbeat sends a heartbeat at once, then as HeartbeatEvery does. Only stop waits for the first one: it is a
// write to the server's database.
func startHeartbeat(ctx context.Context, heartbeatMS int64, details func() any) (stop func()) {
	var first sync.WaitGroup
	first.Go(func() { activity.RecordHeartbeat(ctx, details()) })
	end := HeartbeatEvery(ctx, heartbeatMS, details)
	return func() {
		first.Wait()
		end()
	}
}

// HeartbeatEvery sends four heartbeats per timeout until stop is called. stop waits for a heartbeat in progress, so
// details is not used afterwards. An activity that ends sooner sends none.
func HeartbeatEvery(ctx context.Context, heartbeatMS int64, details func() any) (stop func()) {
	ticker := time.NewTicker(max(time.Duration(heartbeatMS)*time.Millisecond/4, 50*time.Millisecond))
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
				activity.RecordHeartbeat(ctx, details())
			}
		}
	})
	return func() {
		close(done)
		reporter.Wait()
	}
}
