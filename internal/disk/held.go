package disk

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Held reports whether a lock is held. It creates and writes nothing: a missing file is not locked. It
// shares the lock for an instant, in which [TryLock] finds it held; [WaitLock] waits.
func Held(in Folder, name string) (bool, error) {
	path := in.Path(name)
	f, err := in.OpenFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("inspect the lock %s: %w", path, err)
	}
	err = flock(f, unix.LOCK_SH|unix.LOCK_NB)
	held := errors.Is(err, unix.EWOULDBLOCK)
	if held {
		err = nil
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("inspect the lock %s: %w", path, err)
	}
	return held, nil
}
