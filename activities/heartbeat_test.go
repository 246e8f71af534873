package activities

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStopWaitsForHeartbeat(t *testing.T) {
	e := env(t.Context())
	var returned atomic.Bool
	work := func(ctx context.Context) (bool, error) {
		entered, release := make(chan struct{}), make(chan struct{})
		enter := sync.OnceFunc(func() { close(entered) })
		stop := HeartbeatEvery(ctx, 200, func() any {
			enter()
			<-release
			returned.Store(true)
			return nil
		})
		<-entered
		time.AfterFunc(50*time.Millisecond, func() { close(release) })
		stop()
		return returned.Load(), nil
	}
	e.RegisterActivity(work)
	result := must(e.ExecuteActivity(work))(t)
	var waited bool
	require.NoError(t, result.Get(&waited))
	require.True(t, waited, "stop returned while a report was under way")
}
