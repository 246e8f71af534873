package process

import (
	"context"
	"errors"
	"syscall"
)

// KillWithEnv kills every process that has name=value in its environment, and returns when none is left. A unique
// value identifies the descendants of one process, whatever group they moved to. If environments are unreadable it
// does nothing. The error is the context's cause, or one of the process table.
func KillWithEnv(ctx context.Context, name, value string) error {
	for {
		found, err := WithEnv(name, value)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, id := range found {
			if err := id.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
				return err
			}
		}
		for _, id := range found {
			if err := id.AwaitEnd(ctx); err != nil {
				return err
			}
		}
	}
}
