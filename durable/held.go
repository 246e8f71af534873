package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Held says whether somebody holds the lock at path at this moment. Nothing is created or written: a missing file is held by nobody. To find
// out it shares the lock for an instant, which [WaitLock] waits out and a [TryLock] at that very instant finds held.
func Held(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for the lock %s: %w", path, err)
	}
	err = flock(f, unix.LOCK_SH|unix.LOCK_NB)
	held := errors.Is(err, unix.EWOULDBLOCK)
	if held {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("ask for the lock %s: %w", path, err)
	}
	return held, nil
}
