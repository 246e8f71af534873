package host

import (
	"context"
	"errors"
	"time"
)

// idle returns when no run was open and no starter was attached for the time of the setting. It stops the embedded
// server first, while no starter can attach.
func (o WorkerConfig) idle(ctx context.Context) error {
	most := o.Settings.Idle
	tick := time.NewTicker(max(most/10, 200*time.Millisecond))
	defer tick.Stop()
	busy := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-tick.C:
			if alone, err := NoTerminalAttached(o.Settings.StateDir); err != nil || !alone ||
				AnyOpen(ctx, o.Client, o.Namespace) {
				busy = now
			}
			if now.Sub(busy) < most {
				continue
			}
		}
		release, alone, err := Alone(o.Settings.StateDir)
		if err != nil {
			return err
		}
		if alone { // no starter attached meanwhile
			return errors.Join(StopServer(ctx, o.Settings.StateDir, 10*time.Second), release())
		}
	}
}
