package host

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals returns a context that the first SIGINT or SIGTERM ends, and a channel that the second one closes.
func stopSignals(ctx context.Context) (first context.Context, second <-chan struct{}, stop func()) {
	signals, now := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	first, cancel := context.WithCancel(ctx)
	go func() {
		<-signals
		cancel()
		<-signals
		close(now)
	}()
	return first, now, func() { signal.Stop(signals); cancel() }
}
