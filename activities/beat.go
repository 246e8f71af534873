package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatEvery reports that the activity lives, four times in the time after which it counts as lost, until the returned function is called.
func beatEvery(ctx context.Context, heartbeatMS int64, details func() any) (stop func()) {
	activity.RecordHeartbeat(ctx, details())
	ticker := time.NewTicker(max(time.Duration(heartbeatMS)*time.Millisecond/4, 50*time.Millisecond))
	done := make(chan struct{})
	go func() {
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
	}()
	return func() { close(done) }
}
