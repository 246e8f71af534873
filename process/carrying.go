package process

import (
	"context"
	"errors"
	"syscall"
)

// EndCarrying ends every process that has name=value in its environment, with SIGKILL, and returns when none is left. A value that is used once
// names those that one process has started, however they have moved since, and never a stranger. Where environments cannot be looked at it does
// nothing. The error is the context's cause if that ends first, or one of the process table.
func EndCarrying(ctx context.Context, name, value string) error {
	for {
		found, err := Carrying(name, value)
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
