package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beat reports at once that the activity lives, and then as BeatEvery does. Only the end of the activity waits for the first report: it is a write
// in the server's database.
func beat(ctx context.Context, heartbeatMS int64, details func() any) (stop func()) {
	var first sync.WaitGroup
	first.Go(func() { activity.RecordHeartbeat(ctx, details()) })
	end := BeatEvery(ctx, heartbeatMS, details)
	return func() {
		first.Wait()
		end()
	}
}

// BeatEvery reports that the activity lives, four times in the time after which it counts as lost, until the returned function is called. That
// function waits for a report under way, so none follows it and details is not in use any more. An activity that ends sooner reports nothing.
func BeatEvery(ctx context.Context, heartbeatMS int64, details func() any) (stop func()) {
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
