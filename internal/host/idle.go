package host

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"
)

// IdleStop returns the Idle function of a background worker. The function returns when no run was open and
// no starter was attached for the duration idle. It stops the embedded server first, while no starter
// can attach.
func IdleStop(c client.Client, namespace, stateDir string, idle time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		tick := time.NewTicker(max(idle/10, 200*time.Millisecond))
		defer tick.Stop()
		busy := time.Now()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case now := <-tick.C:
				if inUse(ctx, c, namespace, stateDir) {
					busy = now
				}
				if now.Sub(busy) < idle {
					continue
				}
			}
			if stopped, err := stopServer(ctx, stateDir); stopped || err != nil {
				return err
			}
		}
	}
}

func inUse(ctx context.Context, c client.Client, namespace, stateDir string) bool {
	if alone, err := NoTerminalAttached(stateDir); err != nil || !alone {
		return true
	}
	return AnyOpen(ctx, c, namespace)
}

// stopServer stops the embedded server unless a starter attached meanwhile.
func stopServer(ctx context.Context, stateDir string) (bool, error) {
	release, alone, err := Alone(stateDir)
	if err != nil || !alone {
		return false, err
	}
	if _, err := StopServer(ctx, stateDir, 10*time.Second); err != nil {
		return true, err
	}
	return true, release()
}
